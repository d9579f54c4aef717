package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"doortab/fleet"
	"doortab/mqtt"
)

func TestAnExternalBrokerAsksAndARotatedSecretsConnectionEnds(t *testing.T) {
	t.Parallel()
	const hook = "a secret of the broker"
	in, broker := newInstallation(t, 2), mosquitto(t)
	s := in.serve("--mqtt-url="+broker.URL(), "--mqtt-username=workers", "--mqtt-password=w", "--mqtt-hook-secret="+hook)
	asked := newHTTPClient(t, hook)
	secret := in.secret(firstDevice)
	for password, want := range map[string]string{secret: "allow", secret + "x": "deny"} {
		var answer struct{ Result string }
		body := fmt.Sprintf(`{"username":"%d","clientid":"%d","password":%q}`, firstDevice, firstDevice, password)
		asked.do(http.MethodPost, s.http+"/mqtt/auth", body, http.StatusOK, &answer)
		if answer.Result != want {
			t.Errorf("the broker is told %s, want %s", answer.Result, want)
		}
	}

	old := connect(t, connection{url: broker.URL(), clientID: fmt.Sprint(firstDevice)})
	other := connect(t, connection{url: broker.URL(), clientID: fmt.Sprint(firstDevice + 1)})
	in.secret(firstDevice)
	e := evictor{
		registry: fleet.NewRegistry(in.db), done: map[fleet.Rotation]time.Time{},
		client: mqtt.Config{URL: broker.URL(), Logger: slog.New(slog.DiscardHandler)},
	}
	rotated := time.Now()
	for _, after := range []time.Duration{0, evictAfter + evictEvery, evictAfter + 2*evictEvery, 2 * evictUntil} {
		if err := e.pass(t.Context(), rotated.Add(after)); err != nil {
			t.Fatal(err)
		}
		if after == 0 && len(e.done) != 0 {
			t.Error("a connection was ended while its secret may still be let in")
		}
	}
	eventually(t, 10*time.Second, "the old connection was ended, and is made anew", func() bool { return old.client.Stats().Connects > 1 })
	if n := old.client.Stats().Connects; n != 2 {
		t.Errorf("it was ended %d times", n-1)
	}
	if n := other.client.Stats().Connects; n != 1 || len(e.done) != 0 {
		t.Errorf("another cabinet was disturbed %d times, %d rotations are remembered for ever", n-1, len(e.done))
	}
}

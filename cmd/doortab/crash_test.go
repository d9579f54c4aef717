package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"doortab/services"
	"doortab/services/servicestest"
)

func TestKilledAgainAndAgainUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		in, broker := newInstallation(t, 20), mosquitto(t)
		box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), time.Second)
		killAgainAndAgain(in, box, 20, "--mqtt-url="+broker.URL(), "--instance=a", "--redis-url="+servicestest.Redis(t).URL())
	})
	t.Run("embedded broker", func(t *testing.T) {
		t.Parallel()
		in, listen := newInstallation(t, 1), nobody(t)
		first := in.serve("--mqtt-listen=" + listen)
		box := newOutbox(connectCabinet(t, first.mqtt, firstDevice, in.secret(firstDevice)), time.Second)
		first.kill()
		killAgainAndAgain(in, box, 1, "--mqtt-listen="+listen)
	})
}

func killAgainAndAgain(in *installation, box *outbox, devices int, args ...string) {
	in.t.Helper()
	seed := uint64(time.Now().UnixNano())
	in.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	stop := box.load(short(200, 100), devices)
	for round := range short(10, 3) {
		s := in.serve(args...)
		settled := in.count("SELECT COUNT(*) FROM settlements")
		eventually(in.t, 20*time.Second, fmt.Sprintf("round %d settles", round), func() bool {
			return in.count("SELECT COUNT(*) FROM settlements") > settled
		})
		during(in.t, time.Duration(random.IntN(700))*time.Millisecond)
		s.kill()
	}
	events := stop()
	began := time.Now()
	in.serve(args...)
	box.drain(time.Minute)
	in.t.Logf("%d events; the rest settled %s after the last start", events, time.Since(began).Round(time.Millisecond))
	box.consistent()
	in.settledOnce(events)
}

// A worker that is gone must not keep its share of the messages (section 3 of the design).
func TestKilledForGoodBesideAnother(t *testing.T) {
	t.Parallel()
	const devices, resend = 20, 3 * time.Second
	in, broker := newInstallation(t, devices), mosquitto(t)
	doomed := in.serve("--mqtt-url="+broker.URL(), "--instance=doomed")
	in.serve("--mqtt-url="+broker.URL(), "--instance=other")
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), resend)
	stop := box.load(200, devices)
	eventually(t, 20*time.Second, "both work", func() bool { return box.answered() > 200 })
	doomed.kill()
	during(t, short(5*time.Second, time.Second))
	events := stop()
	box.drain(30 * time.Second)
	t.Logf("%d events, the longest wait for a receipt was %s", events, box.longest().Round(time.Millisecond))
	if longest := box.longest(); longest > resend*3/2 {
		t.Errorf("an event waited %s for its receipt: one resend after %s did not help", longest, resend)
	}
	box.consistent()
	in.settledOnce(events)
}

// A crash of the database leaves COMMITs whose answer is lost (R6).
func TestDatabaseKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const devices = 20
	server := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()}).MariaDB
	in, broker := newInstallationOn(t, server, devices), mosquitto(t)
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), 2*time.Second)
	in.serve("--mqtt-url=" + broker.URL())
	stop := box.load(200, devices)
	for range short(5, 2) {
		answered := box.answered()
		eventually(t, 20*time.Second, "events are settled", func() bool { return box.answered() > answered+50 })
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events := stop()
	began := time.Now()
	box.drain(time.Minute)
	t.Logf("%d events; the rest settled %s after the last start", events, time.Since(began).Round(time.Millisecond))
	box.consistent()
	in.settledOnce(events)
}

func TestBrokerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const devices = 20
	in, broker := newInstallation(t, devices), mosquitto(t)
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), time.Second)
	s := in.serve("--mqtt-url=" + broker.URL())
	stop := box.load(200, devices)
	for range short(3, 1) {
		answered := box.answered()
		eventually(t, 20*time.Second, "events are settled", func() bool { return box.answered() > answered+50 })
		if err := broker.Kill(); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, "serve says that it isn't ready", func() bool { return in.client.status(s.http+"/readyz") == 503 })
		if err := broker.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events := stop()
	box.drain(time.Minute)
	box.consistent()
	in.settledOnce(events)
}

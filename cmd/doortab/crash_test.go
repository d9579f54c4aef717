package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"doortab/services/servicestest"
)

func TestKilledAgainAndAgainUnderLoad(t *testing.T) {
	t.Parallel()
	const devices = 20
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	in, broker := newInstallation(t, devices), mosquitto(t)
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), time.Second)
	args := []string{"--mqtt-url=" + broker.URL(), "--instance=a", "--redis-url=" + servicestest.Redis(t).URL()}
	stop := box.load(short(200, 100), devices)
	for round := range short(10, 3) {
		s := in.serve(args...)
		settled := in.count("SELECT COUNT(*) FROM settlements")
		eventually(t, 20*time.Second, fmt.Sprintf("round %d settles", round), func() bool {
			return in.count("SELECT COUNT(*) FROM settlements") > settled
		})
		during(t, time.Duration(random.IntN(700))*time.Millisecond)
		s.kill()
	}
	events := stop()
	began := time.Now()
	in.serve(args...)
	box.drain(time.Minute)
	t.Logf("%d events; the rest settled %s after the last start", events, time.Since(began).Round(time.Millisecond))
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
	if longest := box.longest(); longest > resend+time.Second {
		t.Errorf("an event waited %s for its receipt, the resend interval is %s", longest, resend)
	}
	box.consistent()
	in.settledOnce(events)
}

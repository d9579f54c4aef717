package main

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/database/databasetest"
	"doortab/services"
	"doortab/services/servicestest"
)

// stopLimit is how long a serving process may take to end.
const stopLimit = 10 * time.Second

func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	const devices = 20
	in, broker := newInstallation(t, devices), mosquitto(t)
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), 2*time.Second)
	s := in.serve("--mqtt-url=" + broker.URL())
	stop := box.load(200, devices)
	eventually(t, 20*time.Second, "the load is settled", func() bool { return box.answered() > 100 })
	began := time.Now()
	s.signal(syscall.SIGTERM)
	if status := s.status(stopLimit); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
	committed := in.count("SELECT COUNT(*) FROM settlements")
	eventually(t, 5*time.Second, "a receipt for each committed outcome, although it stopped",
		func() bool { return box.answered() >= committed })
	if n := box.answered(); n != committed {
		t.Errorf("%d events answered, %d outcomes committed", n, committed)
	}
	in.serve("--mqtt-url=" + broker.URL())
	events := stop()
	box.drain(30 * time.Second)
	box.consistent()
	in.settledOnce(events)
}

func TestStopWithoutADatabase(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		trouble func(*services.MariaDB) error
	}{
		{"killed", func(m *services.MariaDB) error { return m.Kill() }},
		{"hanging", func(m *services.MariaDB) error { return m.Pause() }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()}).MariaDB
			in, broker := newInstallationOn(t, server, 5), mosquitto(t)
			stopWithout(in, broker, func() error { return c.trouble(server) })
		})
	}
}

func stopWithout(in *installation, broker *services.Mosquitto, trouble func() error) {
	in.t.Helper()
	s := in.serve("--mqtt-url=" + broker.URL())
	c := connect(in.t, connection{url: broker.URL(), clientID: "cabinets"})
	if err := trouble(); err != nil {
		in.t.Fatal(err)
	}
	for n := range 50 {
		device := firstDevice + int64(n%5)
		c.publish(device, sale(device, fmt.Sprint("event-", n), 1, 1))
	}
	during(in.t, time.Second) // in which they reach the workers, and no metric can be read without a database
	began := time.Now()
	s.signal(syscall.SIGTERM)
	if status := s.status(stopLimit); status != 0 {
		in.t.Errorf("exit status %d, want 0", status)
	}
	in.t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
	if n := c.answered(); n != 0 {
		in.t.Errorf("%d receipts without a database", n)
	}
}

func TestServeRefusesAnOlderSchema(t *testing.T) {
	t.Parallel()
	status, _, stderr := command(t, "serve", "--database-dsn="+databasetest.Empty(t), "--http-addr=127.0.0.1:0", "--mqtt-listen=127.0.0.1:0")
	if status != 1 || !strings.Contains(stderr, "doortab migrate up") {
		t.Errorf("status %d, %q; want 1 and the command to run", status, stderr)
	}
}

// A taken address, a wrong currency and the like end serve at once, with what to do.
func TestServeRefusesWrongSettings(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	taken := in.serve()
	cases := []struct {
		name, flag, want string
	}{
		{"no database", "--database-dsn=", "DOORTAB_DATABASE_DSN"},
		{"unreadable DSN", "--database-dsn=mysql://root:secret@host/x", "user:password@tcp(host:port)/schema"},
		{"HTTP address in use", "--http-addr=" + strings.TrimPrefix(taken.http, "http://"), "--http-addr"},
		{"MQTT address in use", "--mqtt-listen=" + strings.TrimPrefix(taken.mqtt, "tcp://"), "listen"},
		{"wrong currency", "--currency=yuan", "ISO 4217"},
		{"wrong MQTT URL", "--mqtt-url=http://broker", "mqtt://host:1883"},
		{"hooks without a broker", "--mqtt-hook-secret=0123456789abcdef", "--mqtt-url"},
		{"wrong share", "--mqtt-share=a/b", "--mqtt-share"},
		{"wrong Redis URL", "--redis-url=localhost:6379:secret", "redis://"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, _, stderr := command(t, "serve", "--database-dsn="+in.dsn, "--http-addr=127.0.0.1:0", "--mqtt-listen=127.0.0.1:0", c.flag)
			if status != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, %q; want 1 and %q", status, stderr, c.want)
			}
			if strings.Contains(stderr, ":secret") || strings.Contains(stderr, "0123456789abcdef") {
				t.Errorf("%q shows a password", stderr)
			}
		})
	}
}

func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	s := in.serve()
	old := in.secret(firstDevice)
	before := connectCabinet(t, s.mqtt, firstDevice, old)
	before.publish(firstDevice, sale(firstDevice, "before", 1, 1))
	before.receipt(firstDevice, "before", 10*time.Second)

	var fresh struct{ Username, Secret string }
	url := fmt.Sprintf("%s/v1/cabinets/%d/credentials", s.http, firstDevice)
	in.client.do("POST", url, "", 201, &fresh)
	began := time.Now()
	second := connect(t, connection{url: s.mqtt, clientID: fresh.Username + "-new", user: fresh.Username, password: fresh.Secret})
	second.publish(firstDevice, sale(firstDevice, "after", 1, 1))
	second.receipt(firstDevice, "after", 10*time.Second)
	eventually(t, time.Minute, "the old connection ends", func() bool { return !before.client.Connected() })
	t.Logf("the old connection ended %s after the rotation", time.Since(began).Round(time.Millisecond))
	connects := before.client.Stats().Connects
	during(t, 2*time.Second) // in which it tries again ten times
	if more := before.client.Stats().Connects - connects; more != 0 {
		t.Errorf("the old secret was let in %d times more", more)
	}
	if !second.client.Connected() {
		t.Error("the new connection ended too")
	}
}

// 100,000 cabinets whose states a broker hands over at every connection don't stand before a door.
func TestRetainedStatesOfAWholeFleet(t *testing.T) {
	t.Parallel()
	const doors, mostMiB = 100, 256
	fleet := short(100_000, 5_000)
	program := build(t)
	// As the configuration in deploy sets it: with its stock 1000 Mosquitto drops states that it hands over too fast.
	in, broker := newInstallation(t, 0), mosquitto(t, "max_queued_messages 1000000", "max_queued_bytes 67108864")
	in.register(fleet)
	c := connect(t, connection{url: broker.URL(), clientID: "cabinets"})
	began := time.Now()
	publishStates(c, fleet)
	t.Logf("%d retained states published in %s", fleet, time.Since(began).Round(time.Millisecond))

	began = time.Now()
	s := in.serveProgram(program, "--mqtt-url="+broker.URL())
	slowest := time.Duration(0)
	for n := range doors {
		device, id := firstDevice+int64(n), fmt.Sprint("door-", n)
		posted := time.Now()
		c.publish(device, sale(device, id, 1, 1))
		c.receipt(device, id, 20*time.Second)
		slowest = max(slowest, time.Since(posted))
	}
	eventually(t, 3*time.Minute, "all cabinets are online", func() bool {
		return in.count("SELECT COUNT(*) FROM cabinets WHERE online AND last_seen_at IS NOT NULL") == fleet
	})
	t.Logf("slowest door %s; all online %s after the start; most memory %d MiB", slowest.Round(time.Millisecond),
		time.Since(began).Round(time.Millisecond), peakMiB(t, s.cmd.Process.Pid))
	if slowest > 3*time.Second {
		t.Errorf("a door waited %s for its receipt", slowest)
	}
	if peak := peakMiB(t, s.cmd.Process.Pid); peak > mostMiB && !testing.Short() {
		t.Errorf("serve took %d MiB, at most %d are allowed", peak, mostMiB)
	}
	var last struct{ Online bool }
	in.client.get(fmt.Sprintf("%s/v1/cabinets/%d", s.http, firstDevice+fleet-1), &last)
	if !last.Online {
		t.Error("REST says that the last cabinet is offline")
	}
}

func publishStates(c *cabinets, fleet int) {
	c.t.Helper()
	var publishing sync.WaitGroup
	const senders = 64
	for sender := range senders {
		publishing.Go(func() {
			for n := sender; n < fleet; n += senders {
				topic := cabinet.StatusTopic(firstDevice + int64(n))
				if err := c.client.Publish(c.t.Context(), topic, []byte(`{"online":true,"bootId":"b"}`), 1, true); err != nil {
					c.t.Errorf("state of cabinet %d: %v", n, err)
					return
				}
			}
		})
	}
	publishing.Wait()
}

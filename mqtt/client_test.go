package mqtt_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/mqtt"
)

func TestAcknowledgementsGoOutInOrderOfArrival(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		got, line := make(inbox, 10), tapOn(r)
		cfg := r.worker("w", got.take)
		cfg.Dial = line.dial
		run(t, cfg)
		c := r.cabinet(t, "1001")
		var held []*mqtt.Message
		for i := range 5 {
			c.publish(r.topic("1001", "door-closed"), fmt.Sprint(i))
			held = append(held, await(t, got))
		}
		for _, i := range []int{4, 2, 1, 3} {
			held[i].Ack()
		}
		if acks := line.acked(); len(acks) != 0 {
			t.Fatalf("acknowledged %v before the first", acks)
		}
		held[0].Ack()
		held[0].Ack()
		eventually(t, "all are acknowledged", func() bool { return len(line.acked()) >= 5 })
		if diff := cmp.Diff([]uint16{1, 2, 3, 4, 5}, line.acked()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDeferredMessageDoesNotHoldUpThoseBehindIt(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		const others = 200
		got, line := make(inbox, others+1), tapOn(r)
		cfg := r.worker("w", got.take)
		cfg.Dial = line.dial
		run(t, cfg)
		c := r.cabinet(t, "1001")
		c.publish(r.topic("1001", "door-closed"), "stuck")
		stuck := await(t, got)
		go func() {
			for i := range others {
				c.Publish(r.topic("1001", "door-closed"), 1, false, fmt.Sprint(i))
			}
		}()
		for i := range others {
			m := await(t, got)
			if string(m.Payload) != fmt.Sprint(i) {
				t.Fatalf("message %d is %q", i, m.Payload)
			}
			m.Ack()
			if i == 0 {
				stuck.Defer()
			}
		}
		stuck.Ack()
		eventually(t, "the deferred one is acknowledged too", func() bool { return len(line.acked()) == others+1 })
		if acks := line.acked(); acks[others] != 1 {
			t.Errorf("the last acknowledgement is for %d, want 1", acks[others])
		}
	})
}

// With a clean session the cabinet's outbox is what brings a message again, not the broker (R2).
func TestUnacknowledgedMessageIsGoneAfterReconnect(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		got, line := make(inbox, 10), tapOn(r)
		connects := make(chan struct{}, 10)
		cfg := r.worker("w", got.take)
		cfg.Dial, cfg.OnConnect = line.dial, func() { connects <- struct{}{} }
		run(t, cfg)
		await(t, connects)
		c := r.cabinet(t, "1001")
		c.publish(r.topic("1001", "door-closed"), "before")
		before := await(t, got)
		line.cut()
		await(t, connects)
		before.Ack()
		c.publish(r.topic("1001", "door-closed"), "resent")
		resent := await(t, got)
		if string(resent.Payload) != "resent" {
			t.Fatalf("got %q", resent.Payload)
		}
		if acks := line.acked(); len(acks) != 0 {
			t.Fatalf("the late acknowledgement reached the new connection: %v", acks)
		}
		resent.Ack()
		eventually(t, "the resent one is acknowledged", func() bool { return len(line.acked()) == 1 })
	})
}

func TestClientFindsItsBrokerAgain(t *testing.T) {
	t.Parallel()
	eachMortalBroker(t, func(t *testing.T, r *rig) {
		r.kill()
		got := make(inbox, 10)
		client, stop := start(t, r.worker("w", got.take)) // before its broker is there
		t.Cleanup(stop)
		for range 2 {
			r.revive()
			eventually(t, "the client connects", client.Connected)
			r.cabinet(t, "1001").publish(r.topic("1001", "door-closed"), "hello")
			await(t, got).Ack()
			r.kill()
			eventually(t, "the client notices", func() bool { return !client.Connected() })
			if err := client.Publish(t.Context(), "t", nil, 1, false); !errors.Is(err, mqtt.ErrNotConnected) {
				t.Fatalf("publish without a broker: %v", err)
			}
		}
	})
}

func TestSharedSubscriptionGoesOnWithoutTheOneThatVanished(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		const messages = 60
		first, second := make(inbox, messages), make(inbox, 2*messages)
		line := tapOn(r)
		cfg := r.worker("first", first.take)
		cfg.Dial, cfg.MinBackoff, cfg.MaxBackoff = line.dial, time.Hour, time.Hour
		gone := run(t, cfg)
		run(t, r.worker("second", second.take))
		c := r.cabinet(t, "1001")
		for range messages {
			c.publish(r.topic("1001", "door-closed"), "x")
			select {
			case m := <-first:
				m.Ack()
			case m := <-second:
				m.Ack()
			case <-time.After(patience):
				t.Fatal("nobody got the message")
			}
		}
		line.cut()
		eventually(t, "the first is gone", func() bool { return !gone.Connected() })
		before := gone.Stats().Received
		if before == 0 || before == messages {
			t.Errorf("the first of two workers got %d of %d messages", before, messages)
		}
		// A message may still go to the one that is gone before the broker knows; a cabinet sends it again.
		eventually(t, "the second gets one", func() bool {
			c.publish(r.topic("1001", "door-closed"), "y")
			return len(second) > 0
		})
		for len(second) > 0 {
			await(t, second).Ack()
		}
		for range messages {
			c.publish(r.topic("1001", "door-closed"), "z")
			await(t, second).Ack()
		}
	})
}

func TestLongPayloadIsCut(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		got := make(inbox, 2)
		cfg := r.worker("w", got.take)
		cfg.MaxPayload = 1000
		run(t, cfg)
		c := r.cabinet(t, "1001")
		whole := strings.Repeat("door", 1<<18)
		c.publish(r.topic("1001", "door-closed"), whole)
		c.publish(r.topic("1001", "door-closed"), whole[:1000])
		m := await(t, got)
		if string(m.Payload) != whole[:1000] || m.Size != len(whole) || !m.Truncated() {
			t.Errorf("kept %d of %d bytes", len(m.Payload), m.Size)
		}
		if m.Digest != sha256.Sum256([]byte(whole)) {
			t.Error("the digest is not that of the whole payload")
		}
		if m := await(t, got); m.Truncated() || m.Digest != [32]byte{} {
			t.Error("a payload of the greatest length was cut")
		}
	})
}

func TestRefusedMessagesAreOfferedAgainInOrder(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		const messages = 100
		got := make(inbox, 1)
		run(t, r.worker("w", got.take))
		c := r.cabinet(t, "1001")
		for i := range messages {
			c.publish(r.topic("1001", "door-closed"), fmt.Sprint(i))
		}
		for i := range messages {
			m := await(t, got)
			if string(m.Payload) != fmt.Sprint(i) {
				t.Fatalf("message %d is %q", i, m.Payload)
			}
			m.Ack()
		}
	})
}

// Mosquitto sends all that has queued up once the first acknowledgement comes, whatever its own window.
func TestClientHoldsNoMoreThanItsWindow(t *testing.T) {
	t.Parallel()
	windows := map[string]func(*mqtt.Config){
		"by number": func(c *mqtt.Config) { c.Window = 10 },
		"by bytes":  func(c *mqtt.Config) { c.WindowBytes = 10 * 1000 },
	}
	for name, limit := range windows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBroker(t, func(t *testing.T, r *rig) {
				const messages, under = 200, 8 // on their way from the network to the handler
				got := make(inbox, messages)
				cfg := r.worker("w", got.take)
				limit(&cfg)
				client := run(t, cfg)
				c := r.cabinet(t, "1001")
				for i := range messages {
					go c.Publish(r.topic("1001", "door-closed"), 1, false, fmt.Sprintf("%01000d", i))
				}
				eventually(t, "the window is full", func() bool { return client.Stats().Unacknowledged >= 10 })
				for range messages {
					m := await(t, got)
					if held := client.Stats().Unacknowledged; held > 10+under {
						t.Fatalf("%d messages are held", held)
					}
					m.Ack()
				}
				if s := client.Stats(); s.Dropped != 0 || s.Connects != 1 || s.Received != messages {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestMessagesGoToTheSubscriptionThatMatches(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		doors, rest := make(inbox, 10), make(inbox, 10)
		cfg := r.worker("w", doors.take)
		cfg.Subscriptions = append(cfg.Subscriptions,
			mqtt.Subscription{Filter: r.root + "/+/status", QoS: 0, Handle: rest.take},
			mqtt.Subscription{Filter: r.root + "/1002/#", QoS: 1, Handle: rest.take})
		c := r.cabinet(t, "1001")
		check(t, done(c.Publish(r.topic("1001", "status"), 1, true, "online")))
		c.publish(r.topic("1001", "door"), "the broker is done with the status")
		run(t, cfg)
		if m := await(t, rest); string(m.Payload) != "online" || !m.Retained {
			t.Errorf("the kept status: %q, retained %v", m.Payload, m.Retained)
		}
		check(t, done(c.Publish(r.topic("1001", "status"), 1, true, "")))
		await(t, rest).Ack()
		c.publish(r.topic("1001", "door-closed"), "closed")
		await(t, doors).Ack()
		r.cabinet(t, "1002").publish(r.topic("1002", "door"), "opened")
		if m := await(t, rest); m.Topic != r.topic("1002", "door") {
			t.Errorf("topic %q", m.Topic)
		}
	})
}

func TestClientWithoutSharedSubscriptionsTakesThePlainFilter(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) {
		c.MaySubscribe = func(_, filter string) bool { return !strings.HasPrefix(filter, "$share") }
	})
	got := make(inbox, 1)
	cfg := r.worker("w", got.take)
	cfg.Dial, cfg.Username, cfg.Password, cfg.ClientID = nil, "9", "secret-9", "9"
	run(t, cfg)
	r.cabinet(t, "1001").publish(r.topic("1001", "door-closed"), "x")
	await(t, got).Ack()
}

func TestClientThatMayNotSubscribeIsNotConnected(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.MaySubscribe = func(string, string) bool { return false } })
	cfg := r.worker("w", make(inbox, 1).take)
	cfg.Dial, cfg.Username, cfg.Password, cfg.ClientID = nil, "9", "secret-9", "9"
	var ready atomic.Bool
	cfg.OnConnect = func() { ready.Store(true) }
	_, stop := start(t, cfg)
	eventually(t, "it keeps trying", func() bool { return r.broker.Stats().RefusedSubscriptions > 5 })
	stop()
	if ready.Load() {
		t.Error("OnConnect was called")
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	take := func(*mqtt.Message) bool { return true }
	for name, cfg := range map[string]mqtt.Config{
		"no client id":   {URL: "mqtt://h"},
		"no url":         {ClientID: "w"},
		"unknown scheme": {ClientID: "w", URL: "http://h"},
		"no host":        {ClientID: "w", URL: "mqtt://:1883"},
		"no handler":     {ClientID: "w", URL: "mqtt://h", Subscriptions: []mqtt.Subscription{{Filter: "a"}}},
		"QoS 2":          {ClientID: "w", URL: "mqtt://h", Subscriptions: []mqtt.Subscription{{Filter: "a", QoS: 2, Handle: take}}},
		"no authorities": {ClientID: "w", URL: "mqtts://h", CAFile: "missing.pem"},
	} {
		if _, err := mqtt.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	var m mqtt.Message
	m.Defer()
	m.Ack()
}

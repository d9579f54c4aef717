package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"doortab/mqtt"
)

func TestSendRetriesOverALostConnection(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		const receipts = 200
		line := tapOn(r)
		cfg := r.worker("w", make(inbox, 1).take)
		cfg.Dial = line.dial
		client := run(t, cfg)
		got := r.cabinet(t, "1001").listen(r.topic("1001", "receipts"))
		outcomes := make(chan error, receipts)
		for i := range receipts {
			check(t, client.Send(r.topic("1001", "receipts"), []byte(fmt.Sprint(i)), func(err error) { outcomes <- err }))
			if i%50 == 10 {
				line.cut()
			}
		}
		seen := map[string]bool{}
		for range receipts {
			check(t, await(t, outcomes))
		}
		for len(seen) < receipts {
			seen[await(t, got)] = true
		}
		if s := client.Stats(); s.Sent != receipts || s.GivenUp != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestSendIsBoundedInTimeAndNumber(t *testing.T) {
	t.Parallel()
	cfg := mqtt.Config{URL: "mqtt://127.0.0.1:1", ClientID: "w", SendQueue: 2, Senders: 1, SendFor: 50 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler)}
	client, err := mqtt.New(cfg)
	check(t, err)
	outcomes := make(chan error, 3)
	for range 2 {
		check(t, client.Send("t", nil, func(err error) { outcomes <- err }))
	}
	if err := client.Send("t", nil, nil); !errors.Is(err, mqtt.ErrQueueFull) {
		t.Errorf("a third message: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	for range 2 {
		if err := await(t, outcomes); !errors.Is(err, mqtt.ErrNotConnected) {
			t.Errorf("given up with %v", err)
		}
	}
	cancel()
	check(t, await(t, ended))
	if err := client.Send("t", nil, nil); !errors.Is(err, mqtt.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if client.Run(t.Context()) == nil {
		t.Error("a client ran twice")
	}
}

func TestDrainFinishesWhatWasBegun(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		got := make(inbox, 10)
		client, stop := start(t, r.worker("w", got.take))
		t.Cleanup(stop)
		eventually(t, "the client connects", client.Connected)
		c := r.cabinet(t, "1001")
		receipts := c.listen(r.topic("1001", "receipts"))
		c.publish(r.topic("1001", "door-closed"), "begun")
		c.publish(r.topic("1001", "door-closed"), "deferred")
		begun, deferred := await(t, got), await(t, got)
		deferred.Defer()
		drained := make(chan error, 1)
		go func() { drained <- client.Drain(t.Context()) }()
		later := run(t, r.worker("later", got.take))
		c.publish(r.topic("1001", "door-closed"), "for the other worker")
		await(t, got).Ack()
		if later.Stats().Received == 0 {
			t.Error("the draining worker took one more message")
		}
		select {
		case err := <-drained:
			t.Fatalf("drained with a message open: %v", err)
		default:
		}
		check(t, client.Send(r.topic("1001", "receipts"), []byte("receipt"), nil))
		begun.Ack()
		check(t, await(t, drained))
		if receipt := await(t, receipts); receipt != "receipt" {
			t.Errorf("receipt %q", receipt)
		}
		if client.Connected() {
			t.Error("still connected")
		}
	})
}

// A worker that lets the broker's window go unacknowledged would have its events sent again for nothing.
func TestLastAcknowledgementsLeaveBeforeTheConnectionEnds(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		const messages = 10
		got, line := make(inbox, messages), tapOn(r)
		line.slow = 100 * time.Millisecond
		cfg := r.worker("w", got.take)
		cfg.Dial = line.dial
		client := run(t, cfg)
		c := r.cabinet(t, "1001")
		for range messages {
			c.publish(r.topic("1001", "door-closed"), "event")
		}
		for range messages {
			await(t, got).Ack()
		}
		check(t, client.Drain(t.Context()))
		if acked := line.acked(); len(acked) != messages {
			t.Errorf("%d of %d acknowledgements left", len(acked), messages)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, r *rig) {
		got := make(inbox, 1)
		client := run(t, r.worker("w", got.take))
		r.cabinet(t, "1001").publish(r.topic("1001", "door-closed"), "never acknowledged")
		await(t, got)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := client.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 messages unack") {
			t.Errorf("drain: %v", err)
		}
		eventually(t, "the client disconnects", func() bool { return !client.Connected() })
	})
}

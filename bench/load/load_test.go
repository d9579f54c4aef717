package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"doortab/bench/load"
	"doortab/mqtt"
	"doortab/services/servicestest"
)

// server answers events on topics below a root of its own; answer says with what, nil for not at all.
func server(t *testing.T, answer func(id string) []byte) (root string) {
	t.Helper()
	root = strings.ReplaceAll(t.Name(), "/", "-")
	var client *mqtt.Client
	client, err := mqtt.New(mqtt.Config{
		URL: servicestest.Mosquitto(t).URL(), ClientID: root, Logger: slog.New(slog.DiscardHandler),
		Subscriptions: []mqtt.Subscription{{Filter: root + "/+/door-closed", QoS: 1, Handle: func(m *mqtt.Message) bool {
			if receipt := answer(string(m.Payload)); receipt != nil {
				if err := client.Send(strings.Replace(m.Topic, "door-closed", "receipts", 1), receipt, nil); err != nil {
					t.Error(err)
				}
			}
			m.Ack()
			return true
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = client.Run(ctx) // fails only where it ran before
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !client.Connected() {
		<-tick.C
	}
	return root
}

func settled(id string) []byte {
	return fmt.Appendf(nil, `{"closeEventId":%q,"deviceId":1,"outcome":"settled","duplicate":false}`, id)
}

// fleet makes events whose payload is their id.
func fleet(t *testing.T, root string, change func(*load.Config)) *load.Load {
	t.Helper()
	made := 0
	c := load.Config{
		Address: servicestest.Mosquitto(t).Address(), Name: "load-" + root, Senders: 2, Receipts: root + "/+/receipts",
		Next: func() (load.Event, error) {
			made++
			id := fmt.Sprintf("%s-%d", root, made)
			return load.Event{Topic: fmt.Sprintf("%s/%d/door-closed", root, made%7), ID: id, Payload: []byte(id)}, nil
		},
	}
	if change != nil {
		change(&c)
	}
	l, err := load.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestFloodKeepsANumberOutstandingUntilTheSpanEnds(t *testing.T) {
	t.Parallel()
	var taken, answered, most atomic.Int64
	root := server(t, func(id string) []byte {
		most.Store(max(most.Load(), taken.Add(1)-answered.Load()))
		answered.Add(1)
		return settled(id)
	})
	l := fleet(t, root, nil)
	perSecond, err := l.Flood(t.Context(), 10, 20*time.Millisecond, 200*time.Millisecond)
	if err != nil || perSecond <= 0 {
		t.Errorf("%v a second, %v", perSecond, err)
	}
	if c := l.Counts(); l.Waiting() != 0 || int64(c.Answered) != taken.Load() || c.Answered < 10 || most.Load() > 10 {
		t.Errorf("counts %+v, %d taken, %d waiting, at most %d at once", c, taken.Load(), l.Waiting(), most.Load())
	}
}

func TestStrollWaitsForEachReceipt(t *testing.T) {
	t.Parallel()
	l := fleet(t, server(t, settled), nil)
	if err := l.Backlog(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	waits, err := l.Stroll(t.Context(), 1, 200, 20)
	if err != nil || len(waits) != 20 {
		t.Fatalf("%d waits, %v", len(waits), err)
	}
	for i, wait := range waits {
		if wait <= 0 || wait > time.Since(began) || i > 0 && wait < waits[i-1] {
			t.Errorf("waits %v", waits)
		}
	}
}

func TestEventWithoutAReceiptIsPublishedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	root := server(t, func(id string) []byte {
		if strings.HasSuffix(id, "-2") && tries.Add(1) == 1 {
			return nil
		}
		return settled(id)
	})
	l := fleet(t, root, func(c *load.Config) { c.Resend = 10 * time.Millisecond })
	if err := l.Backlog(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if c := l.Counts(); c.Answered != 3 || c.Resent == 0 || tries.Load() < 2 {
		t.Errorf("counts %+v after %d tries", c, tries.Load())
	}
}

func TestReceiptThatSaysAnythingButSettledIsAnError(t *testing.T) {
	t.Parallel()
	root := server(t, func(id string) []byte {
		receipt, _ := json.Marshal(map[string]string{"closeEventId": id, "outcome": "rejected"})
		return receipt
	})
	err := fleet(t, root, nil).Backlog(t.Context(), 2)
	if err == nil || !strings.Contains(err.Error(), "2 of 2 events were not settled") || !strings.Contains(err.Error(), "rejected") {
		t.Error(err)
	}
}

func TestWaitForReceiptsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	root := server(t, func(string) []byte { return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := fleet(t, root, nil).Backlog(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestFleetIsConnectedAndHeard(t *testing.T) {
	t.Parallel()
	root, address := t.Name(), servicestest.Mosquitto(t).Address()
	account := func(n int) load.Account {
		return load.Account{ClientID: fmt.Sprintf("%s-%d", root, n), User: "u", Password: "p"}
	}
	topics := func(n int) []string {
		return []string{fmt.Sprintf("%s/%d/receipts", root, n), fmt.Sprintf("%s/%d/unlock", root, n)}
	}
	f, err := load.Connect(t.Context(), address, 30, account, topics)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := load.Retain(t.Context(), address, 30, func(n int) (string, []byte) {
		return fmt.Sprintf("%s/%d/receipts", root, n), []byte(`{}`)
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.Err(); err != nil {
		t.Error(err)
	}
	if _, err := load.Connect(t.Context(), address, 1, account, func(int) []string { return nil }); err == nil {
		t.Error("a cabinet that subscribes to nothing is connected")
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); f.Err() == nil; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("nobody noticed that a cabinet was thrown off by another of its name")
		}
	}
}

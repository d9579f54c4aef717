package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"doortab/bench/usual"
	"doortab/cabinet"
	"doortab/mqtt"
)

// ConsumerConfig says what the usual design works on behind a broker.
type ConsumerConfig struct {
	DSN, RedisURL, MQTTURL string
	// Workers is the number of events that are settled at one time.
	Workers int
	Logger  *slog.Logger
}

// consumerQueue is as long as the queue of Doortab's intake.
const consumerQueue = 4096

// Consume is the usual design as a process that takes events from a broker until ctx ends. It stands on the same client as
// `doortab serve`: one shared subscription, an acknowledgement once the transaction is committed, receipts behind it.
func Consume(ctx context.Context, c ConsumerConfig) (err error) {
	design, err := usual.Open(c.DSN, c.RedisURL, c.Workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, design.Close()) }()
	u := &consumer{ConsumerConfig: c, design: design, queue: make(chan *mqtt.Message, consumerQueue)}
	events := mqtt.Config{URL: c.MQTTURL, ClientID: fmt.Sprintf("usual-%d", time.Now().UnixNano()), Logger: c.Logger}
	receipts := events
	receipts.ClientID += "-receipts"
	events.Subscriptions = []mqtt.Subscription{{Filter: cabinet.DoorClosedFilter, QoS: 1, Share: "usual", Handle: u.take}}
	if u.events, err = mqtt.New(events); err != nil {
		return err
	}
	if u.receipts, err = mqtt.New(receipts); err != nil {
		return err
	}
	return u.run(ctx)
}

type consumer struct {
	ConsumerConfig
	design           *usual.Design
	events, receipts *mqtt.Client
	queue            chan *mqtt.Message
}

func (u *consumer) take(m *mqtt.Message) bool {
	select {
	case u.queue <- m:
		return true
	default:
		return false
	}
}

// run ends as a serving node does: what is in hand is settled and answered first.
func (u *consumer) run(ctx context.Context) error {
	working := context.WithoutCancel(ctx)
	var crew sync.WaitGroup
	for range u.Workers {
		crew.Go(func() {
			for m := range u.queue {
				u.settle(working, m)
			}
		})
	}
	var clients errgroup.Group
	clients.Go(func() error { return u.events.Run(working) })
	clients.Go(func() error { return u.receipts.Run(working) })
	<-ctx.Done()
	drain, cancel := context.WithTimeout(working, endLimit/2)
	defer cancel()
	err := errors.Join(u.events.Drain(drain), u.receipts.Drain(drain), clients.Wait())
	close(u.queue)
	crew.Wait()
	return err
}

// settle goes on until the event has its order: a deadlock must not cost the cabinet its receipt. An event that is none stays
// unanswered.
func (u *consumer) settle(ctx context.Context, m *mqtt.Message) {
	defer m.Ack()
	e, err := cabinet.Decode(m.Payload)
	if err != nil {
		u.Logger.Error("Event cannot be read.", "topic", m.Topic, "error", err)
		return
	}
	event := usualEvent(e)
	err = u.design.Settle(ctx, event)
	for err != nil && !errors.Is(err, usual.ErrDuplicate) {
		u.Logger.Warn("Event was not settled and is tried again.", "error", err)
		err = errors.Join(u.design.Forget(ctx, event), u.design.Settle(ctx, event))
	}
	u.answer(e, err != nil)
}

func (u *consumer) answer(e *cabinet.Event, duplicate bool) {
	receipt := cabinet.Receipt{
		CloseEventID: e.CloseEventID, DeviceID: e.DeviceID, Outcome: cabinet.Settled, Duplicate: duplicate,
		OrderID: e.CloseEventID, Currency: currency, SettledAt: time.Now(),
	}
	for _, item := range e.Items {
		line := cabinet.Line{ProductID: item.ProductID, Quantity: item.Quantity, UnitPriceMinor: usual.PriceMinor}
		line.AmountMinor = line.Quantity * line.UnitPriceMinor
		receipt.Lines, receipt.TotalMinor = append(receipt.Lines, line), receipt.TotalMinor+line.AmountMinor
	}
	payload, err := json.Marshal(receipt)
	if err == nil {
		err = u.receipts.Send(cabinet.ReceiptsTopic(e.DeviceID), payload, nil)
	}
	if err != nil {
		u.Logger.Error("Receipt was not sent.", "event", e.CloseEventID, "error", err)
	}
}

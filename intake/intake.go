// Package intake stands between the wire and settlement: it puts whatever has queued up into
// groups, has them settled, and after COMMIT acknowledges each message and sends its receipt (R2).
//
// Messages are spread over workers by cabinet, and no two workers have one cabinet in hand, so
// that the events of one cabinet never compete with each other inside a process. While the database takes no work the workers wait with
// what they have, nothing is acknowledged, and the broker's window holds back the rest. A
// message that fails for a reason of its own leaves its worker and is tried again beside it.
package intake

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/cabinet"
	"doortab/settlement"
)

const (
	leastWorkers    = 3 // by default
	mostWorkers     = 8
	defaultQueue    = 8192
	defaultMaxGroup = 1000
	maxGroupBytes   = 4 << 20  // keeps one INSERT of payloads far below max_allowed_packet
	maxHeldBytes    = 64 << 20 // payloads taken and not acknowledged
)

// Message is a delivery and how to acknowledge it.
type Message struct {
	settlement.Delivery
	Ack   func() // its outcome is committed
	Defer func() // it is being retried: acknowledge later ones before it
}

// Config holds what an [Intake] needs.
type Config struct {
	Settlement *settlement.Service
	// Send publishes a receipt without waiting. It may drop it in the end: the cabinet asks again.
	Send func(topic string, payload []byte)
	// Workers, Queue and MaxGroup bound the work: groups settled at once, messages waiting in
	// all, messages in one group. Where they are 0: one more than there are processors, from 3 to 8;
	// 8192; 1000.
	Workers, Queue, MaxGroup int
	// GiveUpAfter is how long an event is retried that cannot be written for a reason of no
	// known class, before it is kept as a dead letter; 30 s where it is 0.
	GiveUpAfter time.Duration
	Logger      *slog.Logger
	Metrics     prometheus.Registerer
}

func (c Config) withDefaults() Config {
	orDefault := func(value *int, otherwise int) {
		if *value <= 0 {
			*value = otherwise
		}
	}
	orDefault(&c.Workers, min(max(leastWorkers, runtime.GOMAXPROCS(0)+1), mostWorkers))
	orDefault(&c.Queue, defaultQueue)
	orDefault(&c.MaxGroup, defaultMaxGroup)
	if c.GiveUpAfter <= 0 {
		c.GiveUpAfter = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Intake takes messages by [Intake.Offer] while [Intake.Run] works on them.
type Intake struct {
	Config
	queues  *queues
	held    atomic.Int64 // bytes of payloads taken and not acknowledged
	hands   []hand
	retries *retries
	metrics *metrics
}

// New makes an Intake. Nothing happens until [Intake.Run].
func New(c Config) *Intake {
	i := &Intake{Config: c.withDefaults()}
	i.queues = newQueues(i.Workers, i.Queue)
	i.hands = make([]hand, i.Workers)
	i.retries = newRetries(i)
	i.metrics = newMetrics(i)
	return i
}

// Offer takes a message without blocking, or returns false where there is no room for it now.
// Its payload should be whole: what is too large is cut here.
func (i *Intake) Offer(m Message) bool {
	m.Delivery = m.Cut()
	size, acknowledge := int64(len(m.Payload)), m.Ack
	m.Ack = func() {
		i.held.Add(-size)
		acknowledge()
	}
	if i.held.Add(size) <= maxHeldBytes && i.queues.put(m) {
		return true
	}
	i.held.Add(-size)
	i.metrics.refused.Inc()
	return false
}

// Run works until ctx ends, finishes the groups in hand and returns. What is still queued
// stays unacknowledged, so that it comes again.
func (i *Intake) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for n := range i.hands {
		workers.Go(func() { i.work(ctx, n) })
	}
	workers.Wait()
	i.retries.wait()
}

func (i *Intake) work(ctx context.Context, worker int) {
	for {
		chosen, cabinets := i.queues.choose(ctx, worker, i.MaxGroup)
		if chosen == nil {
			return
		}
		turn := i.Settlement.Turn(ctx, cabinets)
		taken := i.queues.take(chosen, i.MaxGroup, turn.Covers)
		i.metrics.groups.Observe(float64(len(taken.messages)))
		i.hands[worker].take(taken.messages)
		i.settle(ctx, taken.messages, turn)
		i.hands[worker].finish()
		i.queues.giveBack(taken)
	}
}

// settle tries the group until each message has an outcome or has left it. Only the first time is in the turn.
func (i *Intake) settle(ctx context.Context, group []Message, turn *settlement.Turn) {
	for wait := newBackoff(maxGroupPause); ; {
		group = i.tryGroup(ctx, group, turn)
		if len(group) == 0 || !wait.pause(ctx) {
			return
		}
	}
}

// tryGroup settles once, and returns the messages that the database had no room for.
func (i *Intake) tryGroup(ctx context.Context, group []Message, turn *settlement.Turn) []Message {
	started := time.Now()
	var again []Message
	i.Settlement.SettleAnd(ctx, deliveries(group), func(answers []settlement.Answer) {
		turn.Leave() // others may go on while the receipts leave
		i.metrics.seconds.Observe(time.Since(started).Seconds())
		again = i.finishGroup(ctx, group, answers)
	})
	return again
}

func (i *Intake) finishGroup(ctx context.Context, group []Message, answers []settlement.Answer) (again []Message) {
	var cause error
	for n, answer := range answers {
		switch {
		case answer.Err == nil:
			i.finish(group[n], answer)
		case answer.Alone() && i.retries.add(ctx, group[n], answer):
		default:
			again, cause = append(again, group[n]), answer.Err
		}
	}
	if cause != nil && ctx.Err() == nil {
		i.Logger.Warn("Database takes no work, nothing is acknowledged.", "waiting", len(again), "error", cause)
	}
	return again
}

// finish queues the receipt where one is owed and acknowledges, in this order, so that who
// waits for the last acknowledgement finds the last receipt on its way.
func (i *Intake) finish(m Message, answer settlement.Answer) {
	if answer.Receipt != nil {
		i.Send(cabinet.ReceiptsTopic(m.DeviceID), answer.ReceiptJSON())
	}
	m.Ack()
}

func deliveries(group []Message) []settlement.Delivery {
	list := make([]settlement.Delivery, len(group))
	for n, m := range group {
		list[n] = m.Delivery
	}
	return list
}

package intake

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"doortab/settlement"
)

const (
	// atOnce is how many retries may be in the database at one moment: a row that stays
	// locked costs each a whole lock wait.
	atOnce        = 8
	maxRetries    = 1000
	maxRetryPause = 5 * time.Second
	maxGroupPause = 2 * time.Second
	firstPause    = 50 * time.Millisecond
)

// retries holds the messages that failed for a reason of their own, each tried again alone.
type retries struct {
	intake  *Intake
	running sync.WaitGroup
	pending atomic.Int64
	slots   chan struct{}
	arrived arrivals
}

func newRetries(i *Intake) *retries {
	return &retries{intake: i, slots: make(chan struct{}, atOnce), arrived: arrivals{times: map[int64]int{}}}
}

// add takes a message over from its worker, or returns false where too many wait already.
func (r *retries) add(ctx context.Context, m Message, answer settlement.Answer) bool {
	if r.pending.Add(1) > maxRetries {
		r.pending.Add(-1)
		return false
	}
	r.intake.Logger.Warn("Event could not be written and is tried again beside the others.", "topic", m.Topic, "error", answer.Err)
	m.Defer()
	settled := r.arrived.add(m.ReceivedAt)
	r.running.Go(func() {
		defer r.pending.Add(-1)
		defer settled()
		r.retry(ctx, m)
	})
	return true
}

func (r *retries) wait() { r.running.Wait() }

func (r *retries) retry(ctx context.Context, m Message) {
	giveUpAt := time.Now().Add(r.intake.GiveUpAfter)
	for wait := newBackoff(maxRetryPause); wait.pause(ctx); {
		answer, ok := r.try(ctx, m)
		switch {
		case !ok:
			return
		case answer.Err == nil:
			r.intake.finish(m, answer)
			return
		case answer.Unwritable() && time.Now().After(giveUpAt):
			if r.intake.Settlement.Park(ctx, m.Delivery, answer.Err) == nil {
				m.Ack()
				return
			}
		}
	}
}

func (r *retries) try(ctx context.Context, m Message) (answer settlement.Answer, ok bool) {
	select {
	case <-ctx.Done():
		return answer, false
	case r.slots <- struct{}{}:
	}
	defer func() { <-r.slots }()
	return r.intake.Settlement.Settle(ctx, []settlement.Delivery{m.Delivery})[0], true
}

// backoff is a jittered pause that doubles up to a limit.
type backoff struct{ next, limit time.Duration }

func newBackoff(limit time.Duration) *backoff { return &backoff{firstPause, limit} }

// pause waits, and returns false where ctx ended first.
func (b *backoff) pause(ctx context.Context) bool {
	timer := time.NewTimer(b.next/2 + rand.N(b.next)) //nolint:gosec // jitter needs no secret randomness
	defer timer.Stop()
	b.next = min(b.next*2, b.limit)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

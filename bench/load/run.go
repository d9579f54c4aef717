package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Flood keeps a number of events without a receipt on their way, and returns how many a second got theirs in a span that begins
// after some time of warming up. Then it waits for the rest.
func (l *Load) Flood(ctx context.Context, outstanding int, warm, span time.Duration) (perSecond float64, err error) {
	if err := l.keep(ctx, outstanding, warm); err != nil {
		return 0, err
	}
	begin, before := time.Now(), l.Counts().Answered
	if err := l.keep(ctx, outstanding, span); err != nil {
		return 0, err
	}
	perSecond = float64(l.Counts().Answered-before) / time.Since(begin).Seconds()
	return perSecond, l.Finish(ctx)
}

// keep fills up what is outstanding, for a time.
func (l *Load) keep(ctx context.Context, outstanding int, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for l.Waiting() < outstanding {
			if err := l.publish(); err != nil {
				return err
			}
		}
		if err := l.flush(); err != nil {
			return err
		}
		if err := l.resend(); err != nil {
			return err
		}
		if err := l.pause(ctx, time.Until(end), l.freed); err != nil {
			return err
		}
	}
	return nil
}

// Stroll publishes a number of events at random, so many a second in the mean as a Poisson process has it, however long their
// receipts take. It returns how long each waited for its receipt, in ascending order.
func (l *Load) Stroll(ctx context.Context, seed uint64, perSecond float64, events int) ([]time.Duration, error) {
	random := rand.New(rand.NewPCG(1, seed)) //nolint:gosec // no secret
	first := l.Counts().Answered
	for due := time.Now(); events > 0; events-- {
		if err := l.pause(ctx, time.Until(due), nil); err != nil {
			return nil, err
		}
		if err := l.publish(); err != nil {
			return nil, err
		}
		if err := l.flush(); err != nil {
			return nil, err
		}
		due = due.Add(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
	}
	if err := l.Finish(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.waits[first:])), nil
}

// Backlog publishes a number of events as fast as the broker takes them, and waits for the receipts of all.
func (l *Load) Backlog(ctx context.Context, events int) error {
	for range events {
		if err := l.publish(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	return l.Finish(ctx)
}

// Finish waits until every event has its receipt, and fails where one says anything but that the event was settled.
func (l *Load) Finish(ctx context.Context) error {
	for l.Waiting() > 0 {
		if err := l.pause(ctx, time.Second, l.freed); err != nil {
			return err
		}
		if err := l.resend(); err != nil {
			return err
		}
	}
	if counts := l.Counts(); counts.Odd > 0 {
		return fmt.Errorf("%d of %d events were not settled: %s", counts.Odd, counts.Answered, counts.Example)
	}
	return nil
}

// pause waits for a time, or until early says something.
func (l *Load) pause(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-l.broken:
		return fmt.Errorf("a connection of the load ended: %w", err)
	}
	return nil
}

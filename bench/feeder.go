package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"doortab/intake"
	"doortab/settlement"
)

const (
	// window is how many deliveries are unacknowledged at most, which is what `doortab serve` lets a broker send.
	window = 4096
	// drainLimit is far more than a window takes; beyond it something hangs.
	drainLimit = 2 * time.Minute
)

// feeder hands deliveries to an intake as the MQTT client does: in order, offered again where there is no room.
type feeder struct {
	intake       *intake.Intake
	places       chan struct{} // one for each delivery that is unacknowledged
	freed        chan struct{} // something was acknowledged
	acknowledged atomic.Int64
}

func newFeeder(i *intake.Intake) *feeder {
	return &feeder{intake: i, places: make(chan struct{}, window), freed: make(chan struct{}, 1)}
}

// feed keeps the window full for d and waits until the last delivery is acknowledged. It returns how many a second were
// acknowledged within d, which leaves out those that were in the window at its end, and how many were in all.
func (p *product) feed(
	ctx context.Context, d time.Duration, next func() (settlement.Delivery, error),
) (perSecond float64, acknowledged int64, err error) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		p.intake.Run(ctx)
		close(ended)
	}()
	defer func() {
		stop()
		<-ended
	}()
	f := newFeeder(p.intake)
	started := time.Now()
	for time.Since(started) < d && ctx.Err() == nil {
		delivery, err := next()
		if err != nil {
			return 0, 0, err
		}
		if err := f.offer(ctx, delivery); err != nil {
			return 0, 0, err
		}
	}
	perSecond = float64(f.acknowledged.Load()) / time.Since(started).Seconds()
	err = f.drain(ctx)
	return perSecond, f.acknowledged.Load(), err
}

func (f *feeder) offer(ctx context.Context, d settlement.Delivery) error {
	select {
	case f.places <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	message := intake.Message{Delivery: d, Ack: f.acknowledge, Defer: func() {}}
	for !f.intake.Offer(message) {
		select {
		case <-f.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (f *feeder) acknowledge() {
	f.acknowledged.Add(1)
	<-f.places
	select {
	case f.freed <- struct{}{}:
	default:
	}
}

// drain takes all places, so that none is left to a delivery.
func (f *feeder) drain(ctx context.Context) error {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	for n := range window {
		select {
		case f.places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("%d events had no acknowledgement after %s", window-n, drainLimit)
		}
	}
	return nil
}

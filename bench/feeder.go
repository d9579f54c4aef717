package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"doortab/intake"
	"doortab/settlement"
)

// drainLimit is far more than a window takes; beyond it something hangs.
const drainLimit = 2 * time.Minute

// feeder hands deliveries to an intake as the MQTT client does: in order, offered again where there is no room.
type feeder struct {
	intake       *intake.Intake
	places       chan struct{} // one for each delivery that is unacknowledged
	freed        chan struct{} // something was acknowledged
	acknowledged atomic.Int64
}

func newFeeder(i *intake.Intake, window int) *feeder {
	return &feeder{intake: i, places: make(chan struct{}, window), freed: make(chan struct{}, 1)}
}

// fed is what a turn of feeding came to.
type fed struct {
	all  int64         // acknowledged
	took time.Duration // until the last of them
}

// perSecond counts as the usual design's is: all that was begun, by the time until its end.
func (f fed) perSecond() float64 { return float64(f.all) / f.took.Seconds() }

// feed keeps the window full for d, or until next returns io.EOF, and waits until the last delivery is acknowledged.
func (p *product) feed(ctx context.Context, d time.Duration, next func() (settlement.Delivery, error)) (result fed, err error) {
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
	f := newFeeder(p.intake, p.window)
	started := time.Now()
	if err = f.fill(ctx, started.Add(d), next); err != nil {
		return result, err
	}
	err = f.drain(ctx)
	result.all, result.took = f.acknowledged.Load(), time.Since(started)
	return result, err
}

func (f *feeder) fill(ctx context.Context, until time.Time, next func() (settlement.Delivery, error)) error {
	for time.Now().Before(until) && ctx.Err() == nil {
		delivery, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.offer(ctx, delivery); err != nil {
			return err
		}
	}
	return nil
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
	for n := range cap(f.places) {
		select {
		case f.places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("%d events had no acknowledgement after %s", cap(f.places)-n, drainLimit)
		}
	}
	return nil
}

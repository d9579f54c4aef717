package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"doortab/bench/usual"
)

// crews are the numbers of workers that are tried for the usual design, whose best serves.
var crews = []int{4, 8, 16, 32, 64}

// rival is the usual design on a database of its own.
type rival struct {
	dsn     string
	design  *usual.Design
	workers int
	failed  atomic.Int64 // events that ended by an error of the design's own, such as a deadlock
}

// newRival makes the tables of the usual design and gives them the same past.
func (l *Lab) newRival(ctx context.Context, before past) (*rival, error) {
	dsn, err := l.schema(ctx, "usual")
	if err != nil {
		return nil, err
	}
	r := &rival{dsn: dsn, workers: crews[len(crews)-1]}
	if r.design, err = usual.Open(dsn, l.servers.Redis.URL(), r.workers); err != nil {
		return nil, err
	}
	err = r.design.Migrate(ctx)
	if err == nil {
		err = r.design.Fill(ctx, before.cabinets, products, startStock, before.perEach)
	}
	if err != nil {
		return nil, errors.Join(err, r.design.Close())
	}
	return r, nil
}

// settle works for d and returns how many events a second it settled, and how many in all.
func (r *rival) settle(
	ctx context.Context, d time.Duration, next func() usual.Event,
) (perSecond float64, all int64, err error) {
	return r.work(ctx, d, func() error { return r.design.Settle(ctx, next()) })
}

// work has all workers handle events for d, each at least one. It returns how many a second, and in all, were handled without an error.
func (r *rival) work(ctx context.Context, d time.Duration, handle func() error) (perSecond float64, all int64, err error) {
	var handled atomic.Int64
	var lastErr atomic.Pointer[error]
	var crew sync.WaitGroup
	started := time.Now()
	for range r.workers {
		crew.Go(func() {
			for more := true; more; more = time.Since(started) < d && ctx.Err() == nil {
				if err := handle(); err != nil {
					r.failed.Add(1)
					lastErr.Store(&err)
					continue
				}
				handled.Add(1)
			}
		})
	}
	crew.Wait()
	took := time.Since(started)
	if ctx.Err() != nil {
		return 0, 0, context.Cause(ctx)
	}
	if handled.Load() == 0 {
		return 0, 0, fmt.Errorf("the usual design handled nothing in %s: %w", took, *lastErr.Load())
	}
	return float64(handled.Load()) / took.Seconds(), handled.Load(), nil
}

// chooseCrew finds the number of workers that settle the most, so that the usual design does its best.
func (l *Lab) chooseCrew(ctx context.Context, r *rival, next func() usual.Event) error {
	best, most := 0, 0.0
	for _, workers := range crews {
		r.workers = workers
		if err := r.design.Workers(workers); err != nil {
			return err
		}
		rate, _, err := r.settle(ctx, l.search, next)
		if err != nil {
			return err
		}
		if rate > most {
			best, most = workers, rate
		}
	}
	l.say("usual design is at its best with %d workers: %.0f/s", best, most)
	r.workers = best
	return r.design.Workers(best)
}

// end removes the database.
func (r *rival) end(ctx context.Context, l *Lab) error {
	return errors.Join(r.design.Close(), l.drop(ctx, r.dsn))
}

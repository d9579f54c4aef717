package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"doortab/promotion"
)

// The crowd of the accident that promotions must make impossible: each of its users presses three times, one unit is for each.
const (
	crowdUsers   = 20_000
	crowdPresses = 3
	crowdUnits   = 500
)

// crowds lets the whole crowd press, in process and over HTTP, and checks that each unit has its user and no user two.
func (c *counter) crowds(ctx context.Context, l *Lab, details map[string]float64) error {
	h, err := c.serve(l) //nolint:contextcheck // its handlers have each request's own
	if err != nil {
		return err
	}
	defer h.close()
	for _, way := range allWays {
		perSecond, err := c.storm(ctx, l, way, c.workers(way), c.press)
		if err != nil {
			return err
		}
		l.say("crowd, %s: %.0f presses/s", way, perSecond)
		details[string(way)+"_crowd"] = perSecond
		if perSecond, err = c.storm(ctx, l, way, pressers, h.press); err != nil {
			return fmt.Errorf("over HTTP: %w", err)
		}
		l.say("crowd over HTTP, %s: %.0f presses/s", way, perSecond)
		details[string(way)+"_http_crowd"] = perSecond
	}
	for _, of := range []string{"_crowd", "_http_crowd"} {
		for _, way := range []promotion.Way{promotion.Redis, promotion.Database} {
			details[string(way)+of+"_ratio"] = ratio(details[string(way)+of], details[string(theUsual)+of])
		}
	}
	return nil
}

// storm is one crowd on one promotion. It returns how many presses a second were answered.
func (c *counter) storm(
	ctx context.Context, l *Lab, way promotion.Way, workers int,
	press func(ctx context.Context, way promotion.Way, id, user int64) (bool, error),
) (perSecond float64, err error) {
	id, err := c.offer(ctx, way, crowdUnits)
	if err != nil {
		return 0, err
	}
	users := l.crowd
	first := c.users.Add(users) - users
	var pressed, got atomic.Int64
	var failed atomic.Pointer[error]
	var crowd sync.WaitGroup
	started := time.Now()
	for range workers {
		crowd.Go(func() {
			for n := pressed.Add(1) - 1; n < users*crowdPresses && failed.Load() == nil; n = pressed.Add(1) - 1 {
				given, err := press(ctx, way, id, first+1+n%users)
				if err != nil {
					failed.Store(&err)
				} else if given {
					got.Add(1)
				}
			}
		})
	}
	crowd.Wait()
	took := time.Since(started)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(users*crowdPresses) / took.Seconds(), c.agree(ctx, way, id, got.Load(), min(users, crowdUnits))
}

// agree compares what users were told with what the books have.
func (c *counter) agree(ctx context.Context, way promotion.Way, id, got, units int64) error {
	var claimed, persons int64
	query, db := "SELECT COUNT(*), COUNT(DISTINCT user_id) FROM claims WHERE promotion_id = ? AND state = 'held'", c.db.SQL()
	if way == theUsual {
		n, err := c.design.Claimed(ctx, id) // a unique key keeps its users apart
		claimed, persons = n, n
		if err != nil {
			return err
		}
	} else if err := db.QueryRowContext(ctx, query, id).Scan(&claimed, &persons); err != nil {
		return fmt.Errorf("count the claims of promotion %d: %w", id, err)
	}
	if got != units || claimed != units || persons != units {
		return fmt.Errorf("%s: %d units gave %d claims of %d users, and %d users were told so", way, units, claimed, persons, got)
	}
	return nil
}

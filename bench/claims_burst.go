package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/promotion"
)

const (
	bursts = 10
	// burstShare is how many times as many users a crowd has as press in one moment.
	burstShare = 4
	// look is how often a burst is looked at.
	look = time.Millisecond
)

// burst measures the pre-deduction apart from the write-back: users press in one moment, and time runs until the script has
// taken a unit for each of them, while the first claims are being written. It returns units a second, the median of all bursts.
func (c *counter) burst(ctx context.Context, l *Lab) (perSecond float64, err error) {
	id, err := c.offer(ctx, promotion.Redis, endless)
	if err != nil {
		return 0, err
	}
	users, presses := l.crowd/burstShare, int64(0)
	for ; c.deducted(id) == 0; presses++ { // until the counters are loaded, the database decides
		if got, err := c.press(ctx, promotion.Redis, id, c.nextUser()); err != nil || !got {
			return 0, fmt.Errorf("warm promotion %d up: claimed %t: %w", id, got, err)
		}
	}
	var rates []float64
	for range bursts {
		rate, err := c.burstOnce(ctx, id, users)
		if err != nil {
			return 0, err
		}
		rates = append(rates, rate)
	}
	median := spreadOf(rates).median
	l.say("%d users press in one moment: %.0f units/s taken by the script", users, median)
	return median, c.allWritten(ctx, id, presses+bursts*users)
}

// burstOnce returns how many units a second the script takes until it has one for each user, and lets the claims be written behind it.
// Where Redis fails, the database decides, and fewer are taken by the time in which all are answered.
func (c *counter) burstOnce(ctx context.Context, id, users int64) (perSecond float64, err error) {
	before, taken := c.deducted(id), int64(0)
	errs, answered := make(chan error, users), make(chan struct{})
	var crowd sync.WaitGroup
	started := time.Now()
	for range users {
		crowd.Go(func() {
			if _, err := c.claim(ctx, id, c.nextUser()); err != nil {
				errs <- err
			}
		})
	}
	go func() {
		crowd.Wait()
		close(answered)
	}()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for waiting := true; waiting && taken < users; taken = c.deducted(id) - before {
		select {
		case <-ticker.C:
		case <-answered:
			waiting = false
		}
	}
	perSecond = float64(taken) / time.Since(started).Seconds()
	<-answered
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return perSecond, errors.Join(err, context.Cause(ctx))
}

// deducted is how many units of a promotion the script has taken.
func (c *counter) deducted(id int64) (units int64) {
	families, _ := c.metrics.Gather() // a counter that isn't there yet is 0
	for _, family := range families {
		if family.GetName() != "doortab_prededuction_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := prometheus.Labels{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if labels["promotion"] == strconv.FormatInt(id, 10) && labels["outcome"] == "ok" {
				units += int64(m.GetCounter().GetValue())
			}
		}
	}
	return units
}

// allWritten waits until the database has all claims, also those that were answered as pending.
func (c *counter) allWritten(ctx context.Context, id, want int64) error {
	limit, stop := context.WithTimeout(ctx, drainLimit)
	defer stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		var written int64
		row := c.db.SQL().QueryRowContext(limit, "SELECT COUNT(*) FROM claims WHERE promotion_id = ? AND state = 'held'", id)
		if err := row.Scan(&written); err != nil {
			return fmt.Errorf("count the claims of promotion %d, of which there should be %d: %w", id, want, err)
		}
		if written >= want {
			return nil
		}
		<-ticker.C
	}
}

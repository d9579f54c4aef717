package claims

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

const (
	streamsEvery = time.Second
	// warmAhead is how long before its window a live promotion gets its counters.
	warmAhead = time.Minute
	// forgetAfter is how long this process keeps its writer for a promotion that nobody asks for and that has no epoch.
	forgetAfter = time.Minute
)

// keepStreamsSwept looks after every epoch that isn't done, also where this process took no claim of it: what a process that died
// left is written, and epochs that are over leave nothing in Redis.
func (s *Service) keepStreamsSwept(ctx context.Context) {
	for pause(ctx, streamsEvery) {
		if err := s.sweepStreams(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("Streams of promotions could not be swept.", "error", err)
		}
	}
}

// sweepStreams also asks Redis whether it answers, so that no shopper has to find out whether it is back.
func (s *Service) sweepStreams(ctx context.Context) error {
	_, _ = s.redis.pipeline(ctx, func(p pipeliner) { p.Ping(ctx) }) // the breaker says so
	epochs, err := promotion.UnfinishedEpochs(s.db.Read(ctx))
	if err != nil {
		return err
	}
	unfinished := map[int64]bool{}
	var errs []error
	for _, e := range epochs {
		unfinished[e.PromotionID] = true
		if !s.redis.isDown() {
			errs = append(errs, s.sweepEpoch(ctx, e))
		}
	}
	if !s.redis.isDown() {
		errs = append(errs, s.tellAgain(ctx))
	}
	s.forgetIdle(unfinished)
	return errors.Join(append(errs, s.warmCold(ctx))...)
}

// warmCold begins an epoch for each promotion that is to have one, so that no shopper waits for the first.
func (s *Service) warmCold(ctx context.Context) error {
	if s.redis.isDown() {
		return nil
	}
	cold, err := promotion.Cold(s.db.Read(ctx), database.Now(), warmAhead)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range cold {
		c, err := s.countersOf(p) //nolint:contextcheck // the writers outlive the sweep
		if err == nil {
			_, err = c.open(ctx)
		}
		if err != nil && !errors.Is(err, errNoCounters) { // with these another process is at it, or the next round tries again
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Service) sweepEpoch(ctx context.Context, e promotion.Epoch) error {
	p, err := s.promotions.read(ctx, e.PromotionID)
	if err != nil {
		return err
	}
	c, err := s.countersOf(p) //nolint:contextcheck // the writers outlive the sweep
	if err != nil {
		return err
	}
	of := s.redis.epoch(e)
	switch {
	case e.State == promotion.EpochDraining:
		return c.finish(ctx, of)
	case givesNoMore(p, database.Now()): // also one that is warming, whose process may have died
		_, err := s.endEpoch(ctx, e)
		return err
	case e.State == promotion.EpochOpen:
		return c.sweep(ctx, of)
	}
	return nil
}

// sweep has what the streams of an open epoch hold written.
func (c *counters) sweep(ctx context.Context, e *epoch) error {
	switch lost, err := c.redis.lost(ctx, e); {
	case err != nil:
		return err
	case lost:
		return c.replace(ctx, e)
	}
	c.ringAll(e, true)
	return c.measure(ctx, e)
}

func (s *Service) endEpoch(ctx context.Context, e promotion.Epoch) (ended bool, err error) {
	err = s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		ended, err = promotion.EndEpoch(tx, e.PromotionID, e.Epoch)
		return err
	})
	return ended, err
}

// lost tells whether Redis knows nothing of an epoch that is open, as after a restart without its data.
func (r *Redis) lost(ctx context.Context, e *epoch) (bool, error) {
	answers, err := r.pipeline(ctx, func(p pipeliner) {
		for _, k := range e.keys {
			p.Exists(ctx, k.units)
		}
	})
	known := func(answer redis.Cmder) bool { return answer.(*redis.IntCmd).Val() > 0 }
	return err == nil && !slices.ContainsFunc(answers, known), err
}

// replace ends an epoch that Redis has lost, so that fresh counters follow without a shopper who finds it out.
func (c *counters) replace(ctx context.Context, e *epoch) error {
	c.lose(e)
	ended, err := c.service.endEpoch(ctx, e.Epoch)
	if ended && err == nil {
		c.service.log.Warn("Redis has lost the counters of a promotion, which gets fresh ones.",
			"promotion", c.promotionID, "epoch", e.Epoch.Epoch)
	}
	return err
}

// givesNoMore tells whether a promotion's time is over: what is leased then goes back without anybody's doing.
func givesNoMore(p promotion.Promotion, now time.Time) bool { return !now.Before(p.EndsAt) }

// finish closes the buckets of an epoch that is over. Once no stream holds an entry any more, the epoch is done.
func (c *counters) finish(ctx context.Context, e *epoch) error {
	keys, args := make([][]string, e.Buckets), make([][]any, e.Buckets)
	for bucket, k := range e.keys {
		keys[bucket] = k.all
	}
	replies, err := c.redis.runEach(ctx, closeScript, keys, args)
	if err != nil {
		return err
	}
	var entries int64
	for _, reply := range replies {
		n, _ := reply.(int64)
		entries += n
	}
	if entries > 0 {
		c.ringAll(e, true)
		return c.measure(ctx, e)
	}
	c.lose(e)
	c.service.metrics.writtenBack(c.promotionID, e.Epoch.Epoch)
	return c.service.db.InTx(ctx, func(tx *gorm.DB) error { return promotion.FinishEpoch(tx, c.promotionID, e.Epoch.Epoch) })
}

// measure tells the metrics how many claims of an epoch wait to be written, and for how long the oldest does.
func (c *counters) measure(ctx context.Context, e *epoch) error {
	var lengths []*redis.IntCmd
	var firsts []*redis.XMessageSliceCmd
	_, err := c.redis.pipeline(ctx, func(p pipeliner) {
		for _, k := range e.keys {
			lengths = append(lengths, p.XLen(ctx, k.stream))
			firsts = append(firsts, p.XRangeN(ctx, k.stream, "-", "+", 1))
		}
	})
	if err != nil {
		return err
	}
	var entries int64
	oldest := time.Now()
	for i := range lengths {
		entries += lengths[i].Val()
		for _, message := range firsts[i].Val() {
			if at := streamTime(message.ID); at.Before(oldest) {
				oldest = at
			}
		}
	}
	c.service.metrics.waiting(c.promotionID, e.Epoch.Epoch, entries, time.Since(oldest))
	return nil
}

// forgetIdle ends the writers of promotions that have no epoch and that nobody asks for.
func (s *Service) forgetIdle(unfinished map[int64]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.counters {
		if !unfinished[id] && c.isIdle() {
			c.stop()
			delete(s.counters, id)
			s.metrics.forget(id)
		}
	}
}

func (c *counters) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sold) == 0 && !c.leasing && time.Since(c.usedAt) > forgetAfter
}

package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/promotion"
)

const (
	mostUnits = 10_000 // that a bucket is leased at a time
	// soldOutFor is how long a bucket may refuse what it can't serve without asking again whether units are left elsewhere.
	soldOutFor = time.Second
)

// want is an ask that found its bucket dry.
type want struct {
	epoch    *epoch
	bucket   int
	quantity int64

	done chan struct{}
	sold bool // no bucket and no quota has that many units
	err  error
}

// lease gets a dry bucket units for an ask, and reports sold where there are none. Of many who want some at a time one leases
// for all.
func (c *counters) lease(ctx context.Context, e *epoch, a promotion.Ask) (sold bool, err error) {
	w := &want{epoch: e, bucket: e.bucket(a.UserID), quantity: a.Quantity, done: make(chan struct{})}
	c.mu.Lock()
	c.wants = append(c.wants, w)
	first := !c.leasing
	c.leasing = true
	c.mu.Unlock()
	if first && !c.service.start(c.leaseAll) {
		return false, ErrClosed
	}
	select {
	case <-w.done:
		return w.sold, w.err
	case <-ctx.Done():
		return false, ctx.Err()
	case <-c.service.ctx.Done():
		return false, ErrClosed
	}
}

// leaseAll serves wants until there are none.
func (c *counters) leaseAll() {
	for {
		c.mu.Lock()
		wants := c.wants
		c.wants = nil
		c.leasing = len(wants) > 0
		c.mu.Unlock()
		if len(wants) == 0 {
			return
		}
		of := map[*epoch][]*want{}
		for _, w := range wants {
			of[w.epoch] = append(of[w.epoch], w)
		}
		for e, wants := range of {
			err := c.serve(c.service.ctx, e, wants)
			for _, w := range wants {
				w.err = err
				close(w.done)
			}
		}
	}
}

// serve leases what is wanted out of the quota; where that has too little, other buckets give back what they have.
func (c *counters) serve(ctx context.Context, e *epoch, wants []*want) error {
	needs := map[int]int64{}
	for _, w := range wants {
		needs[w.bucket] += w.quantity
	}
	units, err := c.grant(ctx, e, nil, wanted(needs, nil))
	if err != nil {
		return err
	}
	if missing := missing(needs, units); missing > 0 {
		revoked, err := c.revoke(ctx, e, needs, missing)
		if err != nil {
			return err
		}
		if units, err = c.grant(ctx, e, revoked, wanted(needs, units)); err != nil {
			return err
		}
		if err := c.recheck(ctx, e, nil); err != nil { // others may have found all sold while the units were on their way
			return err
		}
	}
	if alone := servedAlone(wants, units); alone != nil {
		return c.serve(ctx, e, []*want{alone})
	}
	return c.refuse(ctx, e, wants, units)
}

// servedAlone is the smallest want that its own bucket can't serve, but all the buckets that want some could together; the
// other wants ask again then. It is nil where there is none.
func servedAlone(wants []*want, units map[int]int64) (smallest *want) {
	var all int64
	for _, n := range units {
		all += n
	}
	for _, w := range wants {
		if w.quantity > units[w.bucket] && w.quantity <= all && (smallest == nil || w.quantity < smallest.quantity) {
			smallest = w
		}
	}
	return smallest
}

func wanted(needs, has map[int]int64) (wants []promotion.Want) {
	for _, bucket := range slices.Sorted(maps.Keys(needs)) {
		need := max(0, needs[bucket]-has[bucket])
		wants = append(wants, promotion.Want{Bucket: bucket, Need: need, Most: max(need, mostUnits)})
	}
	return wants
}

func missing(needs, has map[int]int64) (units int64) {
	for bucket, need := range needs {
		units += max(0, need-has[bucket])
	}
	return units
}

// grant leases units in the database and then tells the buckets that want some, which it returns with what they have. Buckets
// hear their running total, so that it doesn't matter how often, or whether somebody else tells them first.
func (c *counters) grant(ctx context.Context, e *epoch, revoked map[int]int64, wants []promotion.Want) (units map[int]int64, err error) {
	var buckets []promotion.Bucket
	err = c.service.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		buckets, err = promotion.Lease(tx, c.promotionID, e.Epoch.Epoch, revoked, wants)
		return err
	})
	if errors.Is(err, promotion.ErrEpochOver) {
		c.forget(e)
		return nil, errors.Join(errAgain, err)
	}
	if err != nil {
		return nil, err
	}
	told := make([]promotion.Bucket, len(wants))
	for i, w := range wants {
		told[i] = buckets[w.Bucket]
	}
	_, units, err = c.tell(ctx, e, told, 0)
	return units, err
}

// revoke takes up to most units back from each bucket that wants none, and returns their running totals. A bucket that hasn't
// heard of its last lease hears of it first, so that no unit hides between database and Redis.
func (c *counters) revoke(ctx context.Context, e *epoch, needs map[int]int64, most int64) (revoked map[int]int64, err error) {
	buckets, err := promotion.Buckets(c.service.db.Read(ctx), c.promotionID, e.Epoch.Epoch)
	if err != nil {
		return nil, err
	}
	idle := slices.DeleteFunc(buckets, func(b promotion.Bucket) bool { return needs[b.Bucket] > 0 })
	revoked, _, err = c.tell(ctx, e, idle, most)
	return revoked, err
}

// tell brings buckets up to what they were granted, takes up to most units back from each, and returns what they gave back in
// all and what they have left.
func (c *counters) tell(ctx context.Context, e *epoch, buckets []promotion.Bucket, most int64) (revoked, units map[int]int64, err error) {
	keys, args := make([][]string, len(buckets)), make([][]any, len(buckets))
	for i, b := range buckets {
		keys[i], args[i] = []string{e.keys[b.Bucket].units}, []any{b.Granted, most}
	}
	replies, err := c.redis.runEach(ctx, leaseScript, keys, args)
	if err != nil {
		c.lose(e)
		return nil, nil, errors.Join(errNoCounters, err)
	}
	revoked, units = map[int]int64{}, map[int]int64{}
	for i, b := range buckets {
		pair, _ := replies[i].([]any)
		if len(pair) != 2 {
			c.forget(e)
			c.ringAll(e, false)
			return nil, nil, fmt.Errorf("lease units to bucket %d: it answers %v: %w", b.Bucket, replies[i], errAgain)
		}
		revoked[b.Bucket], _ = pair[0].(int64)
		units[b.Bucket], _ = pair[1].(int64)
	}
	return revoked, units, nil
}

// refuse tells the wants that are larger than what their bucket has now that it is sold, since all the others gave all they
// had; the rest asks again. For a while such buckets refuse by themselves.
func (c *counters) refuse(ctx context.Context, e *epoch, wants []*want, units map[int]int64) error {
	low := map[int]int64{}
	for _, w := range wants {
		if w.quantity > units[w.bucket] {
			w.sold = true
			low[w.bucket] = units[w.bucket] + 1
		}
	}
	if len(low) == 0 {
		return nil
	}
	if slices.Max(slices.Collect(maps.Values(units))) == 0 {
		for bucket := range e.keys {
			low[bucket] = cmp.Or(low[bucket], 1)
		}
	}
	if err := c.mark(ctx, e, low); err != nil {
		return err
	}
	return c.recheck(ctx, e, wants)
}

// recheck lets wants ask again where units went back to the quota before the buckets were marked. Where they go back after this,
// whoever brings them takes the marks away.
func (c *counters) recheck(ctx context.Context, e *epoch, wants []*want) error {
	p, err := promotion.Read(c.service.db.Read(ctx), c.promotionID)
	if err != nil || p.Left() == 0 {
		return err
	}
	for _, w := range wants {
		w.sold = false
	}
	if err := c.redis.unmark(ctx, e); err != nil {
		c.lose(e)
		return errors.Join(errNoCounters, err)
	}
	return nil
}

// unmark lets buckets ask again whether units are left elsewhere.
func (r *Redis) unmark(ctx context.Context, e *epoch) error {
	_, err := r.pipeline(ctx, func(p pipeliner) {
		for _, k := range e.keys {
			p.HDel(ctx, k.units, "low", "until")
		}
	})
	return err
}

func (c *counters) mark(ctx context.Context, e *epoch, low map[int]int64) error {
	var keys [][]string
	var args [][]any
	for bucket, quantity := range low {
		keys = append(keys, []string{e.keys[bucket].units})
		args = append(args, []any{quantity, soldOutFor.Milliseconds()})
	}
	if _, err := c.redis.runEach(ctx, markScript, keys, args); err != nil {
		c.lose(e)
		return errors.Join(errNoCounters, err)
	}
	return nil
}

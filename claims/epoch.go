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
	// warmLimit is how long another process may take to load an epoch before somebody else begins one.
	warmLimit = 5 * time.Second
	// renewAgain is how long the database decides after an epoch could not be begun.
	renewAgain = 50 * time.Millisecond
	// emptyFor is how long leases that had no units are not looked at again.
	emptyFor = 100 * time.Millisecond
	// loadedFields is how many fields of a hash one command writes.
	loadedFields = 500
)

// sighting is since when this process sees an epoch warm that another one began.
type sighting struct {
	epoch int64
	since time.Time
}

// open returns the epoch that gives units, begun where there is none, or errNoCounters.
func (c *counters) open(ctx context.Context) (*epoch, error) {
	if e, err := c.known(); e != nil || err != nil {
		return e, err
	}
	if err := c.beginning.take(ctx); err != nil {
		return nil, err
	}
	defer c.beginning.leave()
	if e, err := c.known(); e != nil || err != nil { // whoever had the turn before
		return e, err
	}
	e, err := c.renew(c.service.ctx) //nolint:contextcheck // an epoch is for all, and not left half loaded by a shopper who goes
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.retryAt = time.Now().Add(renewAgain)
		return nil, errors.Join(errNoCounters, err)
	}
	c.current = e
	return e, nil
}

func (c *counters) known() (*epoch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		return c.current, nil
	}
	if c.redis.isDown() || time.Now().Before(c.retryAt) {
		return nil, errNoCounters
	}
	return nil, nil
}

// renew finds the epoch that is open, or begins one, in its turn.
func (c *counters) renew(ctx context.Context) (*epoch, error) {
	c.mu.Lock()
	after := c.over
	c.mu.Unlock()
	current, err := promotion.CurrentEpoch(c.service.db.Read(ctx), c.promotionID)
	if err != nil {
		return nil, err
	}
	if current.Epoch > after {
		if current.State == promotion.EpochOpen {
			return c.redis.epoch(current), nil
		}
		if !c.isStuck(current) {
			return nil, errNoCounters
		}
		after = current.Epoch
	}
	begun := false
	err = c.service.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		current, begun, err = promotion.BeginEpoch(tx, c.promotionID, after, c.service.buckets, database.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	if !begun {
		return nil, errNoCounters // another process was first; it is loading
	}
	return c.warm(ctx, c.redis.epoch(current))
}

// isStuck tells whether an epoch is warming for so long that its process must have died.
func (c *counters) isStuck(e promotion.Epoch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.warming.epoch != e.Epoch {
		c.warming = sighting{e.Epoch, time.Now()}
	}
	return time.Since(c.warming.since) > warmLimit
}

// warm loads the counters of an epoch that this process began, opens it, and leases each bucket its first units.
func (c *counters) warm(ctx context.Context, e *epoch) (*epoch, error) {
	if err := c.load(ctx, e); err != nil {
		return nil, err
	}
	err := c.service.db.InTx(ctx, func(tx *gorm.DB) error { return promotion.OpenEpoch(tx, c.promotionID, e.Epoch.Epoch) })
	if err != nil {
		return nil, err
	}
	wants := make([]promotion.Want, e.Buckets)
	for bucket := range wants {
		wants[bucket] = promotion.Want{Bucket: bucket, Most: mostUnits}
	}
	if _, err := c.grant(ctx, e, nil, wants); err != nil {
		return nil, err
	}
	c.service.log.Info("Promotion has fresh counters in Redis.", "promotion", c.promotionID, "epoch", e.Epoch.Epoch)
	c.service.metrics.epoch(c.promotionID, e.Epoch.Epoch)
	return e, nil
}

// load writes what persons have and which tokens are used into buckets that don't answer yet, once: no epoch has the same keys.
// Both are as of one moment: a claim that is counted has its token there, and one that went back before says so, whoever tells
// of it later.
func (c *counters) load(ctx context.Context, e *epoch) error {
	if _, err := c.redis.pipeline(ctx, func(p redis.Pipeliner) {
		for _, k := range e.keys {
			p.Del(ctx, k.all...)
		}
	}); err != nil {
		return err
	}
	persons, recent, err := c.books(ctx)
	if err != nil {
		return err
	}
	l := loading{ctx: ctx, redis: c.redis, fields: map[string][]any{}}
	for _, u := range persons {
		if err := l.add(e.keys[e.bucket(u.UserID)].users, u.UserID, u.Taken); err != nil {
			return err
		}
	}
	for _, made := range recent {
		if err := l.addClaim(e.keys[e.bucket(made.UserID)].tokens, made); err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	keys, args := make([][]string, e.Buckets), make([][]any, e.Buckets)
	for bucket, k := range e.keys {
		keys[bucket], args[bucket] = []string{k.units, k.stream}, []any{writers}
	}
	_, err = c.redis.runEach(ctx, openScript, keys, args)
	return err
}

// books reads what persons have, and the claims of which the token can still make one.
func (c *counters) books(ctx context.Context) (persons []promotion.UserCount, recent []promotion.Claim, err error) {
	since := database.Now().Add(-2 * promotion.TokenFor)
	err = c.service.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		if persons, err = promotion.UserCounts(tx, c.promotionID); err == nil {
			recent, err = promotion.RecentClaims(tx, c.promotionID, since)
		}
		return err
	})
	return persons, recent, err
}

// loading collects fields of hashes and writes them many at a time.
type loading struct {
	ctx    context.Context //nolint:containedctx // of one load
	redis  *Redis
	fields map[string][]any
	count  int
}

func (l *loading) add(key string, field, value any) error {
	l.fields[key] = append(l.fields[key], field, value)
	if l.count++; l.count < loadedFields {
		return nil
	}
	return l.flush()
}

// addClaim notes the token of a claim, and that its person was counted without it where it went back.
func (l *loading) addClaim(key string, c promotion.Claim) error {
	if c.State == promotion.Returned || c.State == promotion.Expired {
		if err := l.add(key, wentBack(c), 1); err != nil {
			return err
		}
	}
	return l.add(key, c.TokenID[:], tokenEntry(c))
}

func (l *loading) flush() error {
	if l.count == 0 {
		return nil
	}
	_, err := l.redis.pipeline(l.ctx, func(p redis.Pipeliner) {
		for key, fields := range l.fields {
			p.HSet(l.ctx, key, fields...)
		}
	})
	l.fields, l.count = map[string][]any{}, 0
	return err
}

// returnLeases gives the leases of epochs back that this process can't ask any more. Of many who ask at a time, one does it.
func (c *counters) returnLeases(ctx context.Context) error {
	if c.unreturned() == 0 {
		return nil
	}
	if err := c.ending.take(ctx); err != nil {
		return err
	}
	defer c.ending.leave()
	over := c.unreturned()
	if over == 0 { // whoever had the turn before
		return nil
	}
	if _, err := c.service.endEpoch(ctx, promotion.Epoch{PromotionID: c.promotionID, Epoch: over}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = max(c.returned, over)
	return nil
}

// unreturned is the last epoch that is over and may hold leases; 0 where there is none.
func (c *counters) unreturned() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == c.returned {
		return 0
	}
	return c.over
}

// holdsLeases tells whether units lie in the leases of an open epoch.
func (c *counters) holdsLeases(ctx context.Context) (bool, error) {
	c.mu.Lock()
	recent := time.Since(c.emptyAt) < emptyFor
	c.mu.Unlock()
	if recent {
		return false, nil
	}
	db := c.service.db.Read(ctx)
	current, err := promotion.CurrentEpoch(db, c.promotionID)
	if err == nil && current.State == promotion.EpochOpen {
		buckets, err := promotion.Buckets(c.service.db.Read(ctx), c.promotionID, current.Epoch)
		if err != nil || slices.ContainsFunc(buckets, func(b promotion.Bucket) bool { return b.Left() > 0 }) {
			return err == nil, err
		}
	}
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emptyAt = time.Now()
	return false, nil
}

// endAny ends the epoch that gives units, whoever began it: this process can't sell them, and must not refuse anybody while they
// are there.
func (c *counters) endAny(ctx context.Context) error {
	return c.service.db.InTx(ctx, func(tx *gorm.DB) error { return promotion.EndEpochs(tx, c.promotionID) })
}

package claims

import (
	"context"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

const (
	// readEntries is how many entries the writer takes from one bucket's stream at a time.
	readEntries = 500
	// abandonedAfter is how long an entry may be in the hands of a process before another one takes it over.
	abandonedAfter = 5 * time.Second
	// writeAgain is how long the writer waits before it tries a group again.
	writeAgain = 100 * time.Millisecond
	// writeTries is how often an entry that the database refuses is tried before it becomes a dead letter.
	writeTries = 3
)

// unread tells which streams of an epoch the writer has to look at.
type unread struct {
	epoch     *epoch
	buckets   map[int]bool
	abandoned bool // also what other processes took and didn't write
}

// ring has the writer read the stream that a sale is in. It takes what has come while it wrote the group before.
func (c *counters) ring(s *sale) {
	c.mu.Lock()
	c.fresh = append(c.fresh, s)
	c.unreadOf(s.epoch).buckets[s.epoch.bucket(s.ask.UserID)] = true
	c.mu.Unlock()
	ring(c.bell)
}

// ringAll has the writer read all streams of an epoch.
func (c *counters) ringAll(e *epoch, abandoned bool) {
	c.mu.Lock()
	u := c.unreadOf(e)
	u.epoch = e // its state may be another than when a sale rang
	for bucket := range e.keys {
		u.buckets[bucket] = true
	}
	u.abandoned = u.abandoned || abandoned
	c.mu.Unlock()
	ring(c.bell)
}

func (c *counters) unreadOf(e *epoch) *unread {
	u := c.unread[e.Epoch.Epoch]
	if u == nil {
		u = &unread{epoch: e, buckets: map[int]bool{}}
		c.unread[e.Epoch.Epoch] = u
	}
	return u
}

// write brings what the scripts sold into the database until ctx ends. What it has in hand then stays in the stream.
func (c *counters) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.bell:
		}
		c.mu.Lock()
		rounds, fresh := c.unread, c.fresh
		c.unread, c.fresh = map[int64]*unread{}, nil
		c.mu.Unlock()
		for _, u := range rounds {
			c.drain(ctx, u)
		}
		for _, s := range c.waited(fresh) { // another process has them
			c.service.finder.look(s)
		}
	}
}

// drain writes what the streams of an epoch hold, in groups.
func (c *counters) drain(ctx context.Context, u *unread) {
	for len(u.buckets) > 0 && ctx.Err() == nil {
		entries, err := c.read(ctx, u)
		if err != nil {
			c.service.log.Debug("Streams of a promotion could not be read.", "promotion", c.promotionID, "error", err)
			return // the sweep rings again
		}
		if c.store(ctx, entries) {
			c.acknowledge(ctx, entries)
		}
	}
}

// store writes a group. It reports false where it could not, since ctx has ended; the entries stay where they are.
func (c *counters) store(ctx context.Context, group []streamed) bool {
	for try := 1; len(group) > 0; try++ {
		err := c.storeOnce(ctx, group)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case database.ClassOf(err) != database.Permanent:
			c.service.log.Warn("Claims wait for the database.", "promotion", c.promotionID, "claims", len(group), "error", err)
		case len(group) > 1:
			half := len(group) / 2
			first, second := c.store(ctx, group[:half]), c.store(ctx, group[half:])
			return first && second
		case try >= writeTries && c.park(ctx, group[0], err):
			return true
		}
		if !pause(ctx, writeAgain) {
			return false
		}
	}
	return true
}

func (c *counters) storeOnce(ctx context.Context, group []streamed) error {
	asks := make([]promotion.Ask, len(group))
	for i, entry := range group {
		if entry.malformed != nil {
			return entry.malformed
		}
		asks[i] = entry.ask
	}
	var made []promotion.Claim
	err := c.service.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		made, err = promotion.Take(tx, c.promotionID, asks, database.Now())
		return err
	})
	if err != nil {
		return err
	}
	for i, entry := range group {
		c.written(entry.ask.ClaimID, made[i])
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

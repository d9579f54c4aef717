package claims

import (
	"context"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

const (
	// readEntries is how many entries a writer takes from one bucket's stream at a time.
	readEntries = 250
	// abandonedAfter is how long an entry may be in the hands of a process before another one takes it over.
	abandonedAfter = 5 * time.Second
	// writeAgain is how long a writer waits before it tries a group again.
	writeAgain = 100 * time.Millisecond
	// writeTries is how often an entry that the database refuses is tried before it becomes a dead letter.
	writeTries = 3
)

// writer brings what the scripts sold into the database, of some of the buckets: two of them keep database and program at work
// at the same time, and never meet in a row that both change.
type writer struct {
	counters *counters
	bell     chan struct{}

	// Under the counters' lock.
	fresh  []*sale           // sold since the last round
	unread map[int64]*unread // by epoch
}

// unread tells which streams of an epoch a writer has to look at.
type unread struct {
	epoch     *epoch
	buckets   map[int]bool
	abandoned bool // also what other processes took and didn't write
}

func newWriter(c *counters) *writer {
	return &writer{counters: c, bell: make(chan struct{}, 1), unread: map[int64]*unread{}}
}

func (c *counters) writer(bucket int) *writer { return c.writers[bucket%len(c.writers)] }

// ring has the writer read the stream that a sale is in. It takes what has come while it wrote the group before.
func (c *counters) ring(s *sale) {
	bucket := s.epoch.bucket(s.ask.UserID)
	w := c.writer(bucket)
	c.mu.Lock()
	w.fresh = append(w.fresh, s)
	w.unreadOf(s.epoch).buckets[bucket] = true
	c.mu.Unlock()
	ring(w.bell)
}

// ringAll has all streams of an epoch read.
func (c *counters) ringAll(e *epoch, abandoned bool) {
	c.mu.Lock()
	for bucket := range e.keys {
		u := c.writer(bucket).unreadOf(e)
		u.epoch = e // its state may be another than when a sale rang
		u.buckets[bucket] = true
		u.abandoned = u.abandoned || abandoned
	}
	c.mu.Unlock()
	for _, w := range c.writers {
		ring(w.bell)
	}
}

func (w *writer) unreadOf(e *epoch) *unread {
	u := w.unread[e.Epoch.Epoch]
	if u == nil {
		u = &unread{epoch: e, buckets: map[int]bool{}}
		w.unread[e.Epoch.Epoch] = u
	}
	return u
}

// run works until ctx ends. What it has in hand then stays in the streams.
func (w *writer) run(ctx context.Context) {
	c := w.counters
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.bell:
		}
		c.mu.Lock()
		rounds, fresh := w.unread, w.fresh
		w.unread, w.fresh = map[int64]*unread{}, nil
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
	c.tellRefused(ctx, group, made)
	for i, entry := range group {
		c.written(entry.ask, made[i])
	}
	return nil
}

// tellRefused lets buckets that are marked as sold out ask again, where units of sales that the database refused are in the quota.
func (c *counters) tellRefused(ctx context.Context, group []streamed, made []promotion.Claim) {
	e, given := group[0].epoch, 0
	for i, entry := range group {
		if made[i].ClaimID == entry.ask.ClaimID && made[i].State != promotion.Refused {
			given++
		}
	}
	if given == len(group) || e.State == promotion.EpochDraining {
		return
	}
	if err := c.redis.unmark(ctx, e); err != nil {
		c.service.log.Debug("Buckets could not hear of units that went back.", "promotion", c.promotionID, "error", err)
	}
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

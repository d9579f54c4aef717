package claims

import (
	"context"
	"errors"
	"sync"
	"time"

	"doortab/database"
	"doortab/promotion"
)

const (
	cacheFor   = time.Second
	maxEntries = 10_000
)

// cache saves most requests the look at a promotion, and the database the ids that somebody makes up: that there is no such
// promotion is kept too. What it knows may be old by [cacheFor], so nothing of it decides who gets a unit.
type cache struct {
	db *database.DB

	mu      sync.Mutex
	entries map[int64]*entry
}

type entry struct {
	turn      turn // of who reads
	promotion promotion.Promotion
	err       error // nil or promotion.ErrNotFound
	readAt    time.Time
}

func newCache(db *database.DB) *cache { return &cache{db: db, entries: map[int64]*entry{}} }

// read returns a promotion, or [promotion.ErrNotFound]. Of many who ask for one at a time, one reads.
func (c *cache) read(ctx context.Context, promotionID int64) (promotion.Promotion, error) {
	e := c.entry(promotionID)
	if err := e.turn.take(ctx); err != nil {
		return promotion.Promotion{}, err
	}
	defer e.turn.leave()
	if time.Since(e.readAt) < cacheFor {
		return e.promotion, e.err
	}
	at := time.Now()
	p, err := promotion.Read(c.db.Read(ctx), promotionID)
	if err == nil || errors.Is(err, promotion.ErrNotFound) {
		e.promotion, e.err, e.readAt = p, err, at
	}
	return p, err
}

func (c *cache) entry(promotionID int64) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[promotionID]
	if e == nil {
		c.makeRoom()
		e = &entry{turn: newTurn()}
		c.entries[promotionID] = e
	}
	return e
}

func (c *cache) makeRoom() {
	for id := range c.entries {
		if len(c.entries) < maxEntries {
			return
		}
		delete(c.entries, id)
	}
}

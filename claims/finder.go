package claims

import (
	"context"
	"errors"
	"sync"
	"time"

	"doortab/promotion"
)

const (
	// findAgain is how long the finder waits before it looks again for claims that weren't there.
	findAgain = 20 * time.Millisecond
	// findLater is how long it leaves a database alone that didn't answer.
	findLater = 500 * time.Millisecond
)

// finder looks in the database for sales that another process may have written, or wrote long ago: those of many at a time by
// one statement for each promotion.
type finder struct {
	bell chan struct{}

	mu    sync.Mutex
	asked []*sale
}

func newFinder() *finder { return &finder{bell: make(chan struct{}, 1)} }

// look has a sale looked for until it is found or nobody waits for it.
func (f *finder) look(s *sale) {
	f.mu.Lock()
	f.asked = append(f.asked, s)
	f.mu.Unlock()
	ring(f.bell)
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

func (f *finder) run(ctx context.Context, s *Service) {
	var missing []*sale
	for {
		var again <-chan time.Time
		if len(missing) > 0 {
			again = time.After(findAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.bell:
		case <-again:
		}
		f.mu.Lock()
		missing, f.asked = append(missing, f.asked...), nil
		f.mu.Unlock()
		var err error
		if missing, err = f.find(ctx, s, missing); err != nil && ctx.Err() == nil {
			s.log.Warn("Claims that another process wrote could not be looked for.", "error", err)
			pause(ctx, findLater)
		}
	}
}

// find returns those that aren't there yet. A database that doesn't answer leaves all of them.
func (f *finder) find(ctx context.Context, s *Service, sales []*sale) (missing []*sale, err error) {
	of := map[*counters][]*sale{}
	for _, sale := range sales {
		of[sale.counters] = append(of[sale.counters], sale)
	}
	for c, sales := range of {
		sales = c.waited(sales)
		tokens := make([]promotion.TokenID, len(sales))
		for i, sale := range sales {
			tokens[i] = sale.ask.TokenID
		}
		if len(tokens) == 0 {
			continue
		}
		found, failed := promotion.ReadByTokens(s.db.Read(ctx), c.promotionID, tokens)
		missing, err = append(missing, c.found(sales, found)...), errors.Join(err, failed)
	}
	return missing, err
}

// waited leaves out the sales for which nobody waits any more.
func (c *counters) waited(sales []*sale) (waited []*sale) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range sales {
		if !s.ended {
			waited = append(waited, s)
		}
	}
	return waited
}

func (c *counters) found(sales []*sale, claims map[promotion.TokenID]promotion.Claim) (missing []*sale) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range sales {
		if claim, known := claims[s.ask.TokenID]; known {
			c.end(s, claim, nil)
		} else {
			missing = append(missing, s)
		}
	}
	return missing
}

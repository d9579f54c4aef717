package claims

import (
	"context"
	"slices"
	"time"

	"doortab/promotion"
)

// sale is a claim that a script made, or made before, and that somebody waits for the database to have.
type sale struct {
	counters *counters
	epoch    *epoch
	ask      promotion.Ask
	done     chan struct{}

	// Under the counters' lock.
	inHand bool // this process's writer has its entry
	ended  bool
	claim  promotion.Claim
	err    error
}

// await registers a sale before its script runs: the writer may have its entry before the script's answer is here.
func (c *counters) await(a promotion.Ask, e *epoch) *sale {
	s := &sale{counters: c, epoch: e, ask: a, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sold[a.ClaimID] = append(c.sold[a.ClaimID], s)
	return s
}

// leave ends the wait for a sale.
func (c *counters) leave(s *sale) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(s, promotion.Claim{}, nil)
}

// end is called with the lock held.
func (c *counters) end(s *sale, claim promotion.Claim, err error) {
	if s.ended {
		return
	}
	s.ended, s.claim, s.err = true, claim, err
	close(s.done)
	left := slices.DeleteFunc(c.sold[s.ask.ClaimID], func(other *sale) bool { return other == s })
	if len(left) == 0 {
		delete(c.sold, s.ask.ClaimID)
	} else {
		c.sold[s.ask.ClaimID] = left
	}
}

// written tells those who wait what became of an entry. Another process may have minted the id of a sale for one of its own.
func (c *counters) written(entry promotion.Ask, claim promotion.Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range slices.Clone(c.sold[entry.ClaimID]) {
		if s.ask.TokenID == entry.TokenID {
			c.end(s, claim, nil)
		}
	}
}

// forget asks an epoch no more.
func (c *counters) forget(e *epoch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = max(c.over, e.Epoch.Epoch)
	if c.current != nil && c.current.Epoch.Epoch <= c.over {
		c.current = nil
	}
}

// lose forgets an epoch whose streams Redis doesn't have, or that it can't be asked for. Who waits for a sale of it that the
// writer hasn't in hand asks again: the token finds the claim, should it turn up.
func (c *counters) lose(e *epoch) {
	c.forget(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	var lost []*sale
	for _, sales := range c.sold {
		for _, s := range sales {
			if s.epoch.Epoch.Epoch <= e.Epoch.Epoch && !s.inHand {
				lost = append(lost, s)
			}
		}
	}
	for _, s := range lost {
		c.end(s, promotion.Claim{}, errAgain)
	}
}

// wait returns the claim once it is committed, or as pending.
func (c *counters) wait(ctx context.Context, s *sale) (promotion.Claim, error) {
	timer := time.NewTimer(writeWait)
	defer timer.Stop()
	select {
	case <-s.done:
		return s.claim, s.err
	case <-timer.C:
		c.leave(s)
		return c.pending(ctx, s), nil
	case <-c.service.ctx.Done():
		c.leave(s)
		return promotion.Claim{}, ErrClosed
	case <-ctx.Done():
		c.leave(s)
		return promotion.Claim{}, ctx.Err()
	}
}

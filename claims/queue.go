package claims

import (
	"context"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

const (
	maxGroup   = 1000
	maxWaiting = 10_000 // of one promotion
	groupFor   = 15 * time.Second
)

// queue holds those who wait for units of one promotion. It exists while it has a goroutine that serves it.
type queue struct {
	promotionID int64
	waiting     []*waiter
}

type waiter struct {
	ctx    context.Context // who has gone is passed over
	ask    promotion.Ask
	answer chan answer // has room for one, so that nobody waits for who has gone
}

type answer struct {
	claim promotion.Claim
	err   error
}

// takeFromDatabase queues an ask and waits for its group.
func (s *Service) takeFromDatabase(ctx context.Context, promotionID int64, a promotion.Ask) (promotion.Claim, error) {
	w := &waiter{ctx: ctx, ask: a, answer: make(chan answer, 1)}
	if err := s.enqueue(promotionID, w); err != nil { //nolint:contextcheck // a group outlives the request that began it
		return promotion.Claim{}, err
	}
	select {
	case got := <-w.answer:
		return got.claim, got.err
	case <-ctx.Done():
		return promotion.Claim{}, ctx.Err()
	}
}

func (s *Service) enqueue(promotionID int64, w *waiter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	q := s.queues[promotionID]
	if q == nil {
		q = &queue{promotionID: promotionID}
		s.queues[promotionID] = q
		s.work.Go(func() { s.serve(q) })
	}
	if len(q.waiting) >= maxWaiting {
		return ErrBusy
	}
	q.waiting = append(q.waiting, w)
	return nil
}

// serve writes one group after the other until nobody waits.
func (s *Service) serve(q *queue) {
	for {
		group := s.next(q)
		if group == nil {
			return
		}
		s.decide(q.promotionID, group)
	}
}

// next takes up to [maxGroup] of those who wait; nil where nobody does, and the queue is gone then.
func (s *Service) next(q *queue) []*waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		refuse(q.waiting, ErrClosed)
		q.waiting = nil
	}
	if len(q.waiting) == 0 {
		delete(s.queues, q.promotionID)
		return nil
	}
	n := min(len(q.waiting), maxGroup)
	group := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return group
}

func refuse(group []*waiter, err error) {
	for _, w := range group {
		w.answer <- answer{err: err}
	}
}

// decide has a group decided in one transaction. Who has gone is left out: nothing of theirs is written.
func (s *Service) decide(promotionID int64, group []*waiter) {
	present := group[:0:0]
	asks := make([]promotion.Ask, 0, len(group))
	for _, w := range group {
		if w.ctx.Err() == nil {
			present, asks = append(present, w), append(asks, w.ask)
		}
	}
	if len(asks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, groupFor)
	defer cancel()
	var claims []promotion.Claim
	err := s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		claims, err = promotion.Take(tx, promotionID, asks, database.Now())
		return err
	})
	if err != nil {
		if s.ctx.Err() != nil {
			err = ErrClosed
		}
		refuse(present, err)
		return
	}
	for i, w := range present {
		w.answer <- answer{claim: claims[i]}
	}
}

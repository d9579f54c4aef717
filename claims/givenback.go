package claims

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"doortab/promotion"
)

// gone is units that a person no longer has of a promotion. reason names what took them, which counts once.
type gone struct {
	promotionID int64
	userID      int64
	units       int64
	reason      string
}

// ofEnded is what claims gave back when they ended.
func ofEnded(ended []promotion.Claim) []gone {
	list := make([]gone, len(ended))
	for i, c := range ended {
		list[i] = gone{c.PromotionID, c.UserID, c.Unused, strconv.FormatInt(c.ClaimID, 10)}
	}
	return list
}

// TakenBack tells the counters in Redis what a review gave back to persons of claims, after its COMMIT.
func (s *Service) TakenBack(ctx context.Context, reviewID int64, returns []promotion.Return) {
	list := make([]gone, len(returns))
	for i, r := range returns {
		list[i] = gone{r.PromotionID, r.UserID, r.Quantity, fmt.Sprintf("%d review %d", r.ClaimID, reviewID)}
	}
	s.lower(ctx, list)
}

// lower tells the counters in Redis that persons gave units back, after COMMIT: their persons may claim again, and what was
// marked as sold out may not be. It is not needed for correctness: a count that stays too high keeps its person from another
// claim until the next epoch, a mark stays for a second.
func (s *Service) lower(ctx context.Context, list []gone) {
	if s.redis == nil {
		return
	}
	of := map[int64][]gone{}
	for _, g := range list {
		of[g.promotionID] = append(of[g.promotionID], g)
	}
	for promotionID, some := range of {
		current, err := promotion.CurrentEpoch(s.db.Read(ctx), promotionID)
		if err != nil {
			s.log.Warn("Persons who gave units back could not be told to Redis.", "promotion", promotionID, "error", err)
			continue
		}
		s.tell(ctx, current, some)
	}
}

// tell has an epoch hear of units that went back, from the next sweep where it can't now: it is warming, or Redis is away. One that
// has not begun yet will count without them.
func (s *Service) tell(ctx context.Context, e promotion.Epoch, list []gone) {
	open := e.State == promotion.EpochOpen
	if open && s.redis.lower(ctx, s.redis.epoch(e), list) == nil {
		return
	}
	if open || e.State == promotion.EpochWarming {
		s.untold.add(e, list)
	}
}

// maxUntold is how many persons an epoch may have yet to hear of.
const maxUntold = 10_000

// untold is what epochs have yet to hear of persons who gave units back.
type untold struct {
	mu   sync.Mutex
	list map[epochKey][]gone
}

type epochKey struct{ promotionID, epoch int64 }

func (u *untold) add(e promotion.Epoch, list []gone) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := epochKey{e.PromotionID, e.Epoch}
	if u.list == nil {
		u.list = map[epochKey][]gone{}
	}
	u.list[k] = append(u.list[k], list[:min(len(list), maxUntold-len(u.list[k]))]...)
}

func (u *untold) take() map[epochKey][]gone {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.list
	u.list = nil
	return list
}

// tellAgain tells epochs what they could not hear before. What is of an epoch that is over is forgotten.
func (s *Service) tellAgain(ctx context.Context) error {
	var errs []error
	for k, list := range s.untold.take() {
		current, err := promotion.CurrentEpoch(s.db.Read(ctx), k.promotionID)
		switch {
		case err != nil:
			s.untold.add(promotion.Epoch{PromotionID: k.promotionID, Epoch: k.epoch}, list)
			errs = append(errs, err)
		case current.Epoch == k.epoch:
			s.tell(ctx, current, list)
		}
	}
	return errors.Join(errs...)
}

func (r *Redis) lower(ctx context.Context, e *epoch, list []gone) error {
	keys, args := make([][]string, len(list)), make([][]any, len(list))
	for i, g := range list {
		k := e.keys[e.bucket(g.userID)]
		keys[i], args[i] = []string{k.units, k.users, k.tokens}, []any{g.userID, g.units, g.reason}
	}
	if _, err := r.runEach(ctx, lowerScript, keys, args); err != nil {
		return err
	}
	return r.unmark(ctx, e)
}

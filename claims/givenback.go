package claims

import (
	"context"
	"fmt"
	"strconv"

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
	if s.redis.isDown() {
		return
	}
	of := map[int64][]gone{}
	for _, g := range list {
		of[g.promotionID] = append(of[g.promotionID], g)
	}
	for promotionID, some := range of {
		current, err := promotion.CurrentEpoch(s.db.Read(ctx), promotionID)
		if err == nil && current.State == promotion.EpochOpen {
			err = s.redis.lower(ctx, s.redis.epoch(current), some)
		}
		if err != nil {
			s.log.Warn("Persons who gave units back could not be told to Redis.", "promotion", promotionID, "error", err)
		}
	}
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
	_, err := r.pipeline(ctx, func(p pipeliner) {
		for _, k := range e.keys {
			p.HDel(ctx, k.units, "low", "until")
		}
	})
	return err
}

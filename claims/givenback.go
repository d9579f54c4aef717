package claims

import (
	"context"

	"doortab/promotion"
)

// lower tells the counters in Redis that claims gave units back, after COMMIT: their persons may claim again, and what was
// marked as sold out may not be. It is not needed for correctness: a count that stays too high keeps its person from another
// claim until the next epoch, a mark stays for a second.
func (s *Service) lower(ctx context.Context, ended []promotion.Claim) {
	if s.redis == nil || s.redis.isDown() {
		return
	}
	of := map[int64][]promotion.Claim{}
	for _, c := range ended {
		of[c.PromotionID] = append(of[c.PromotionID], c)
	}
	for promotionID, claims := range of {
		current, err := promotion.CurrentEpoch(s.db.Read(ctx), promotionID)
		if err == nil && current.State == promotion.EpochOpen {
			err = s.redis.lower(ctx, s.redis.epoch(current), claims)
		}
		if err != nil {
			s.log.Warn("Persons who gave units back could not be told to Redis.", "promotion", promotionID, "error", err)
		}
	}
}

func (r *Redis) lower(ctx context.Context, e *epoch, claims []promotion.Claim) error {
	keys, args := make([][]string, len(claims)), make([][]any, len(claims))
	for i, c := range claims {
		k := e.keys[e.bucket(c.UserID)]
		keys[i], args[i] = []string{k.units, k.users, k.tokens}, []any{c.UserID, c.Unused, c.ClaimID}
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

package claims

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"doortab/database"
	"doortab/promotion"
)

// pendingFor is how long a claim may be pending. One that is in no table by then was lost with Redis before anybody was told that
// it is held; its token still makes a claim.
const pendingFor = time.Minute

// pending is the claim of a sale that isn't committed yet. Redis remembers it for whoever asks another process.
func (c *counters) pending(ctx context.Context, s *sale) promotion.Claim {
	claim := promotion.Claim{
		ClaimID: s.ask.ClaimID, PromotionID: c.promotionID, UserID: s.ask.UserID, TokenID: s.ask.TokenID, App: s.ask.App,
		Quantity: s.ask.Quantity, State: promotion.Pending, ExpiresAt: s.ask.At.Add(c.claimTTL), CreatedAt: s.ask.At,
	}
	c.redis.remember(ctx, claim)
	return claim
}

func (r *Redis) pendingKey(claimID int64) string {
	return strings.Replace(r.prefix, "{", "", 1) + "pending:" + strconv.FormatInt(claimID, 10)
}

// remember may fail: then nobody but the shopper knows of the claim until it is written.
func (r *Redis) remember(ctx context.Context, c promotion.Claim) {
	fields := []string{
		strconv.FormatInt(c.PromotionID, 10), strconv.FormatInt(c.UserID, 10), strconv.FormatInt(c.Quantity, 10),
		strconv.FormatInt(c.CreatedAt.UnixMilli(), 10), strconv.FormatInt(c.ExpiresAt.UnixMilli(), 10), c.App,
	}
	_, _ = r.pipeline(ctx, func(p pipeliner) { p.Set(ctx, r.pendingKey(c.ClaimID), strings.Join(fields, " "), pendingFor) })
}

// recall returns what remember kept, or false.
func (r *Redis) recall(ctx context.Context, claimID int64) (c promotion.Claim, known bool) {
	answers, err := r.pipeline(ctx, func(p pipeliner) { p.Get(ctx, r.pendingKey(claimID)) })
	if err != nil {
		return c, false
	}
	fields := strings.SplitN(answers[0].(interface{ Val() string }).Val(), " ", 6)
	if len(fields) != 6 {
		return c, false
	}
	var numbers [5]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return c, false
		}
	}
	return promotion.Claim{
		ClaimID: claimID, PromotionID: numbers[0], UserID: numbers[1], Quantity: numbers[2], App: fields[5], State: promotion.Pending,
		CreatedAt: time.UnixMilli(numbers[3]).UTC(), ExpiresAt: time.UnixMilli(numbers[4]).UTC(),
	}, true
}

// Read reads a claim as it is now, pending ones too, or returns [promotion.ErrNoClaim].
func (s *Service) Read(ctx context.Context, claimID int64) (promotion.Claim, error) {
	c, err := promotion.ReadClaim(s.db.Read(ctx), claimID)
	if s.redis == nil || !errors.Is(err, promotion.ErrNoClaim) || claimID < database.FirstID(database.Now().Add(-2*pendingFor)) {
		return c, err
	}
	pending, known := s.redis.recall(ctx, claimID)
	if !known {
		return c, err
	}
	if c, err := promotion.ReadClaim(s.db.Read(ctx), claimID); !errors.Is(err, promotion.ErrNoClaim) {
		return c, err // written meanwhile
	}
	return pending, nil
}

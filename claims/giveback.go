package claims

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/promotion"
)

const (
	sweepEvery = time.Second
	sweepRows  = 500 // the most that one sweep looks at before it looks again
)

// GiveBack ends a held claim for its person, or for staff, and returns it as it is then. One that is returned already is
// returned again; one that is used or expired is [promotion.ErrClaimOver], one that is pending [ErrPending]. sees tells whether
// the caller may know of the claim; it is [promotion.ErrNoClaim] where not.
func (s *Service) GiveBack(ctx context.Context, claimID int64, sees func(promotion.Claim) bool) (promotion.Claim, error) {
	var c promotion.Claim
	ended := false
	err := s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		if c, err = promotion.ReadClaim(tx, claimID); err != nil {
			return err
		}
		if !sees(c) {
			return fmt.Errorf("claim %d: %w", claimID, promotion.ErrNoClaim)
		}
		if c.State != promotion.Held {
			return nil
		}
		c, err = giveBack(tx, c, database.Now())
		ended = true
		return err
	})
	if err == nil && ended && c.State != promotion.Used { // an attempt that was undone may have lost to a door
		s.lower(context.WithoutCancel(ctx), ofEnded([]promotion.Claim{c}))
	}
	switch {
	case errors.Is(err, promotion.ErrNoClaim):
		return promotion.Claim{}, s.missing(ctx, claimID, sees)
	case err != nil:
		return promotion.Claim{}, fmt.Errorf("give back claim %d: %w", claimID, err)
	case c.State == promotion.Refused:
		return promotion.Claim{}, c.Reason
	case c.State != promotion.Returned:
		return promotion.Claim{}, fmt.Errorf("claim %d %w: it is %s", claimID, promotion.ErrClaimOver, c.State)
	}
	return c, nil
}

// missing is why a claim that isn't in the table can't be given back.
func (s *Service) missing(ctx context.Context, claimID int64, sees func(promotion.Claim) bool) error {
	c, err := s.Read(ctx, claimID)
	switch {
	case err != nil:
		return fmt.Errorf("give back claim %d: %w", claimID, err)
	case !sees(c):
		return fmt.Errorf("claim %d: %w", claimID, promotion.ErrNoClaim)
	default: // written meanwhile, or not yet
		return fmt.Errorf("claim %d %w", claimID, ErrPending)
	}
}

// giveBack: a claim that is overdue and not swept yet expires, as it would have a moment later.
func giveBack(tx *gorm.DB, c promotion.Claim, now time.Time) (promotion.Claim, error) {
	to := promotion.Returned
	if !now.Before(c.ExpiresAt) {
		to = promotion.Expired
	}
	ended, err := promotion.GiveBack(tx, c, to, now)
	if err != nil {
		return ended, err
	}
	return ended, auditlog.Write(tx, auditlog.Entry{
		Action: "claim." + string(to), Target: fmt.Sprintf("claim %d", c.ClaimID), Before: map[string]any{"left": c.Left()},
	}, now)
}

// Sweep expires what is overdue, a bounded number at a time, and returns how many. What it can't expire it passes over, says so
// and tries again with the next sweep.
func (s *Service) Sweep(ctx context.Context) (swept int, err error) {
	now, last := database.Now(), promotion.Due{}
	for {
		found, failed := promotion.Overdue(s.db.Read(ctx), now, last, sweepRows)
		if failed != nil {
			return swept, errors.Join(err, failed)
		}
		n, failed := s.expire(ctx, found)
		swept, err = swept+n, errors.Join(err, failed)
		if len(found) < sweepRows || ctx.Err() != nil {
			return swept, err
		}
		last = found[len(found)-1]
	}
}

func (s *Service) expire(ctx context.Context, found []promotion.Due) (swept int, err error) {
	byPromotion := map[int64][]int64{}
	for _, d := range found {
		byPromotion[d.PromotionID] = append(byPromotion[d.PromotionID], d.ClaimID)
	}
	for promotionID, claimIDs := range byPromotion {
		n, failed := s.Expire(ctx, promotionID, claimIDs)
		swept, err = swept+n, errors.Join(err, failed)
	}
	return swept, err
}

// Expire expires those of some claims of one promotion that are held and overdue, and returns how many that were.
func (s *Service) Expire(ctx context.Context, promotionID int64, claimIDs []int64) (int, error) {
	var ended []promotion.Claim
	err := s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		ended, err = promotion.Expire(tx, promotionID, claimIDs, database.Now())
		return err
	})
	if err == nil {
		s.lower(context.WithoutCancel(ctx), ofEnded(ended))
	}
	return len(ended), err
}

// End expires a claim that is held and overdue, and returns when one ends that is not overdue yet; the zero time for any other.
func (s *Service) End(ctx context.Context, claimID int64) (due time.Time, err error) {
	c, err := promotion.ReadClaim(s.db.Read(ctx), claimID)
	switch {
	case errors.Is(err, promotion.ErrNoClaim) || err == nil && c.State != promotion.Held:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case c.ExpiresAt.After(database.Now()):
		return c.ExpiresAt, nil
	}
	_, err = s.Expire(ctx, c.PromotionID, []int64{claimID})
	return time.Time{}, err
}

// KeepSwept sweeps every second until ctx ends.
func (s *Service) KeepSwept(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		swept, err := s.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("Overdue claims can't be expired; the next sweep tries again.", "error", err)
		}
		if swept > 0 {
			s.log.Info("Claims expired.", "count", swept)
		}
	}
}

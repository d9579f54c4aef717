package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

// compareSold compares the counters in Redis of a promotion that has an open epoch. What differs has to differ twice.
func (s *Service) compareSold(ctx context.Context, r *Run, promotionID int64) ([]Difference, error) {
	e, err := promotion.CurrentEpoch(s.db.Read(ctx), promotionID)
	if err != nil || e.State != promotion.EpochOpen {
		return nil, err
	}
	x, err := s.readSold(ctx, e)
	if errors.Is(err, errNoRedis) {
		s.log.Warn("Counters of a promotion could not be compared.", "promotion", promotionID, "error", err)
		r.Behind += int64(e.Buckets)
		return nil, nil
	}
	if err != nil || x == nil {
		return nil, err
	}
	r.Behind += int64(len(x.behind))
	first := x.judge()
	if len(first) == 0 {
		return nil, nil
	}
	if x, err = s.readSold(ctx, e); err != nil || x == nil {
		if errors.Is(err, errNoRedis) {
			err = nil
		}
		return nil, err
	}
	found := slices.DeleteFunc(x.judge(), func(d Difference) bool {
		return !slices.ContainsFunc(first, func(f Difference) bool { return f.Cause == d.Cause && f.Target == d.Target })
	})
	if len(found) == 0 || !r.Repairs {
		return found, nil
	}
	return found, s.renew(ctx, e, r.RunID, found)
}

// renew ends an epoch: its leases go back, what its streams still hold is written, and the next claim begins one with fresh
// counters from the database, which decides whatever Redis says.
func (s *Service) renew(ctx context.Context, e promotion.Epoch, runID int64, found []Difference) error {
	var mended []Difference
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		mended = nil
		ended, err := promotion.EndEpoch(tx, e.PromotionID, e.Epoch)
		if err != nil || !ended {
			return err
		}
		mended = found[:min(len(found), repairsAtOnce)]
		return logRepairs(tx, runID, mended, database.Now())
	})
	if err != nil {
		return fmt.Errorf("end epoch %d of promotion %d: %w", e.Epoch, e.PromotionID, err)
	}
	if len(mended) > 0 {
		mark(found, found)
	}
	return nil
}

package reconcile

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

// overdueFor is for how long something may be overdue: the sweeps that end it run every few seconds.
const overdueFor = 2 * time.Minute

// expireOverdue ends overdue claims as the sweep would have.
func (s *Service) expireOverdue(ctx context.Context, promotionID, runID int64, found []Difference) error {
	var list []Difference
	for _, d := range found {
		if d.Cause == OverdueClaim && len(list) < repairsAtOnce {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return nil
	}
	ids := make([]int64, len(list))
	for i, d := range list {
		ids[i] = d.key.claimID
	}
	var mended []Difference
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		now := database.Now()
		expired, err := promotion.Expire(tx, promotionID, ids, now)
		if err != nil {
			return err
		}
		mended = slices.DeleteFunc(slices.Clone(list), func(d Difference) bool {
			return !slices.ContainsFunc(expired, func(c promotion.Claim) bool { return c.ClaimID == d.key.claimID })
		})
		return logRepairs(tx, runID, mended, now)
	})
	if err == nil {
		mark(found, mended)
	}
	return err
}

package reconcile

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// repairsAtOnce is how many rows of a promotion one run mends: the locks that it takes keep shoppers waiting.
const repairsAtOnce = 500

// repairBooks mends what is proven of a promotion's differences, and marks it in found. The locks on the quota and on every
// bucket keep anybody from taking or giving back units, so that what is read behind them holds until COMMIT.
func (s *Service) repairBooks(ctx context.Context, promotionID, runID int64, found []Difference) error {
	if err := s.expireOverdue(ctx, promotionID, runID, found); err != nil {
		return err
	}
	var mended []Difference
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		if err := lockCounters(tx, promotionID); err != nil {
			return err
		}
		now := database.Now()
		b, err := readBooks(tx, promotionID, now)
		if err != nil {
			return err
		}
		list := b.proven(b.judge())
		mended = list[:min(len(list), repairsAtOnce)]
		for _, write := range []func(*gorm.DB, []Difference, time.Time) error{b.mendLeases, b.mendQuota, b.mendPersons, b.mendClaims} {
			if err := write(tx, mended, now); err != nil {
				return err
			}
		}
		return logRepairs(tx, runID, mended, now)
	})
	if err != nil {
		return fmt.Errorf("repair promotion %d: %w", promotionID, err)
	}
	mark(found, mended)
	return nil
}

func lockCounters(tx *gorm.DB, promotionID int64) error {
	for _, statement := range []string{
		"SELECT taken FROM promotion_quota WHERE promotion_id = ? FOR UPDATE",
		"SELECT written FROM promotion_buckets WHERE promotion_id = ? ORDER BY epoch, bucket FOR UPDATE",
	} {
		var locked []int64
		if err := tx.Raw(statement, promotionID).Scan(&locked).Error; err != nil {
			return fmt.Errorf("lock the counters of promotion %d: %w", promotionID, err)
		}
	}
	return nil
}

// logRepairs writes a line of the audit log for each repair, in its transaction.
func logRepairs(tx *gorm.DB, runID int64, mended []Difference, now time.Time) error {
	entries := make([]auditlog.Entry, len(mended))
	for i, d := range mended {
		entries[i] = auditlog.Entry{
			Action: "reconcile.repair", Target: d.Target,
			Before: map[string]any{"cause": d.Cause, "units": d.Counted},
			After:  map[string]any{"units": d.Due, "reconciliation": fmt.Sprint(runID)},
		}
	}
	return auditlog.WriteAll(tx, entries, now)
}

// mark notes in found what was mended.
func mark(found, mended []Difference) {
	type what struct {
		Cause
		target string
	}
	done := make(map[what]bool, len(mended))
	for _, d := range mended {
		done[what{d.Cause, d.Target}] = true
	}
	for i := range found {
		found[i].Repaired = found[i].Repaired || done[what{found[i].Cause, found[i].Target}]
	}
}

// changeOne runs a guarded statement that has to change one row.
func changeOne(tx *gorm.DB, what, statement string, args ...any) error {
	result := tx.Exec(statement, args...)
	if result.Error != nil {
		return fmt.Errorf("mend %s: %w", what, result.Error)
	}
	if result.RowsAffected != 1 {
		return fmt.Errorf("mend %s: %d rows changed: %w", what, result.RowsAffected, database.ErrConflict)
	}
	return nil
}

func (b *books) mendLeases(tx *gorm.DB, mended []Difference, _ time.Time) error {
	for _, d := range mended {
		statement := "UPDATE promotion_buckets SET revoked = revoked + ? - ?"
		switch d.Cause {
		case LeaseNotGivenBack:
		case BucketWrittenDrift:
			statement = "UPDATE promotion_buckets SET written = written - ? + ?"
		default:
			continue
		}
		err := changeOne(tx, d.Target, statement+" WHERE promotion_id = ? AND epoch = ? AND bucket = ?",
			d.Counted, d.Due, b.PromotionID, d.key.epoch, d.key.bucket)
		if err != nil {
			return err
		}
	}
	return nil
}

// mendQuota: leases that go back are counted in the quota as a rule.
func (b *books) mendQuota(tx *gorm.DB, mended []Difference, _ time.Time) error {
	l := b.judgeLeases()
	due := b.Due + l.due
	for _, d := range mended {
		switch {
		case d.Cause == QuotaDrift && b.Taken == nil:
			return changeOne(tx, d.Target, "INSERT INTO promotion_quota (promotion_id, quota, taken) VALUES (?, ?, ?)", b.PromotionID, b.Quota, due)
		case d.Cause == QuotaDrift, d.Cause == LeaseNotGivenBack && b.Taken != nil && *b.Taken == due+l.kept:
			return changeOne(tx, d.Target, "UPDATE promotion_quota SET taken = ? WHERE promotion_id = ? AND taken = ?",
				due, b.PromotionID, *b.Taken)
		}
	}
	return nil
}

func (b *books) mendPersons(tx *gorm.DB, mended []Difference, _ time.Time) error {
	versions := make(map[int64]int64, len(b.persons))
	for _, p := range b.persons {
		versions[p.UserID] = p.Version
	}
	for _, d := range mended {
		if d.Cause != PersonCounterDrift {
			continue
		}
		version := versions[d.key.userID]
		var err error
		if version == 0 {
			err = changeOne(tx, d.Target, "INSERT INTO promotion_users (promotion_id, user_id, taken, version) VALUES (?, ?, ?, 1)",
				b.PromotionID, d.key.userID, d.Due)
			if database.IsDuplicate(err) {
				err = fmt.Errorf("mend %s: %w", d.Target, database.ErrConflict)
			}
		} else {
			err = changeOne(tx, d.Target, `UPDATE promotion_users SET taken = ?, version = version + 1
				WHERE promotion_id = ? AND user_id = ? AND version = ?`, d.Due, b.PromotionID, d.key.userID, version)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *books) mendClaims(tx *gorm.DB, mended []Difference, now time.Time) error {
	for _, d := range mended {
		if d.Cause != ClaimLeftDrift && d.Cause != ClaimNotEnded {
			continue
		}
		err := changeOne(tx, d.Target, `UPDATE claims SET state = IF(state = 'held' AND ? = 0, 'used', state), left_quantity = ?, updated_at = ?
			WHERE claim_id = ? AND left_quantity = ?`, d.Due, d.Due, now, d.key.claimID, d.Counted)
		if err != nil {
			return err
		}
	}
	return nil
}

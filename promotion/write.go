package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// countUsers adds to the counters of persons, ascending, by compare-and-set on the versions that were read; n may be below 0.
// Where another writer was first, it returns [database.ErrConflict]; so it does where one has too few to take n from, which
// somebody else took first or the books have wrong.
func countUsers(tx *gorm.DB, promotionID int64, read map[int64]userCount, counted map[int64]int64) error {
	var fresh, changed [][]any
	for _, userID := range slices.Sorted(maps.Keys(counted)) {
		n := counted[userID]
		was, known := read[userID]
		switch {
		case n == 0:
		case was.taken+n < 0:
			return fmt.Errorf("counter of promotion %d, user %d: %w", promotionID, userID, database.ErrConflict)
		case known:
			changed = append(changed, []any{promotionID, userID, was.version, was.taken + n, was.version + 1})
		default:
			fresh = append(fresh, []any{promotionID, userID, n, 1})
		}
	}
	err := database.Insert(tx, "promotion_users", []string{"promotion_id", "user_id", "taken", "version"}, fresh, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("person counters of promotion %d: %w", promotionID, database.ErrConflict)
	}
	if err != nil {
		return err
	}
	return database.UpdateAll(tx, "promotion_users", append(slices.Clone(userKeys), database.Int("version")),
		[]database.Column{database.Int("taken"), database.Int("version")}, changed)
}

func (d *decision) writeUsers(tx *gorm.DB) error {
	return countUsers(tx, d.promotion.PromotionID, d.facts.users, d.counted)
}

func (d *decision) writeLeases(tx *gorm.DB) error {
	keys := slices.SortedFunc(maps.Keys(d.leased), func(a, b bucketKey) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.bucket, b.bucket))
	})
	for _, key := range keys {
		n := d.leased[key]
		result := tx.Exec(`UPDATE promotion_buckets SET written = written + ?
			WHERE promotion_id = ? AND epoch = ? AND bucket = ? AND granted - revoked - written >= ?`,
			n, d.promotion.PromotionID, key.epoch, key.bucket, n)
		if result.Error != nil {
			return fmt.Errorf("write leased units of promotion %d: %w", d.promotion.PromotionID, result.Error)
		}
		if result.RowsAffected != 1 {
			return fmt.Errorf("leased units of promotion %d: %w", d.promotion.PromotionID, database.ErrConflict)
		}
	}
	return nil
}

// insertClaims: a claim or token that is there already came from another transaction since the facts were read.
func insertClaims(tx *gorm.DB, claims []Claim, now time.Time) error {
	rows := make([][]any, len(claims))
	for i, c := range claims {
		var epoch, bucket, streamMS, streamNo any
		if s := c.Source; s != nil {
			epoch, bucket, streamMS, streamNo = s.Epoch, s.Bucket, s.StreamMS, s.StreamNo
		}
		rows[i] = []any{
			c.ClaimID, c.PromotionID, c.UserID, c.TokenID[:], c.App, c.Quantity, c.Unused, c.State, c.Reason, epoch, bucket,
			streamMS, streamNo, c.ExpiresAt, c.CreatedAt, now,
		}
	}
	err := database.Insert(tx, "claims", append(slices.Clone(claimColumns), "updated_at"), rows, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("claims: %w", database.ErrConflict)
	}
	return err
}

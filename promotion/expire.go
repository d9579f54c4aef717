package promotion

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Expire ends those of some claims of one promotion that are held and overdue, gives back what they have left, and returns them.
// A claim that a door or its person ended before is passed over. [database.ErrConflict] where one is ended meanwhile: the
// caller's transaction runs again.
func Expire(tx *gorm.DB, promotionID int64, claimIDs []int64, now time.Time) ([]Claim, error) {
	if len(claimIDs) == 0 {
		return nil, nil
	}
	overdue, err := readClaims(tx, "WHERE claim_id IN ? AND promotion_id = ? AND state = ? AND expires_at <= ?", claimIDs, promotionID, Held, now)
	if err != nil || len(overdue) == 0 {
		return nil, err
	}
	if err := giveBack(tx, promotionID, overdue, Expired, now); err != nil {
		return nil, fmt.Errorf("expire claims of promotion %d: %w", promotionID, err)
	}
	for i := range overdue {
		overdue[i].State = Expired
	}
	return overdue, nil
}

// Due is a claim whose time is over.
type Due struct {
	PromotionID int64
	ClaimID     int64
	ExpiresAt   time.Time
}

// Overdue finds up to limit claims that are held beyond their time and come after a given one, the longest overdue first; all
// begin after the zero Due. tx may be a plain read.
func Overdue(tx *gorm.DB, now time.Time, after Due, limit int) ([]Due, error) {
	from := after.ExpiresAt
	if from.IsZero() {
		from = time.Unix(0, 0).UTC()
	}
	var list []Due
	err := tx.Raw(`SELECT promotion_id, claim_id, expires_at FROM claims WHERE state = ? AND expires_at >= ? AND expires_at <= ?
		AND (expires_at > ? OR claim_id > ?) ORDER BY expires_at, claim_id LIMIT ?`,
		Held, from, now, from, after.ClaimID, limit).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("find overdue claims: %w", err)
	}
	return list, nil
}

package promotion

import (
	"fmt"

	"gorm.io/gorm"
)

// lockQuota makes whoever takes units, or changes leases or epoch, wait until the transaction ends. It returns the units that
// nobody has, or [ErrNotFound].
func lockQuota(tx *gorm.DB, promotionID int64) (left int64, err error) {
	var found []int64
	err = tx.Raw("SELECT quota - taken FROM promotion_quota WHERE promotion_id = ? FOR UPDATE", promotionID).Scan(&found).Error
	if err != nil {
		return 0, fmt.Errorf("lock the quota of promotion %d: %w", promotionID, err)
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("promotion %d: %w", promotionID, ErrNotFound)
	}
	return found[0], nil
}

// moveQuota takes units from the quota, or gives them back where n is below 0. It tells whether there were that many.
func moveQuota(tx *gorm.DB, promotionID, n int64) (met bool, err error) {
	if n == 0 {
		return true, nil
	}
	result := tx.Exec("UPDATE promotion_quota SET taken = taken + ? WHERE promotion_id = ? AND taken + ? BETWEEN 0 AND quota",
		n, promotionID, n)
	if result.Error != nil {
		return false, fmt.Errorf("move the quota of promotion %d by %d: %w", promotionID, n, result.Error)
	}
	return result.RowsAffected == 1, nil
}

// moveLockedQuota is [moveQuota] of a row that [lockQuota] has read: where there aren't that many, no other writer is why.
func moveLockedQuota(tx *gorm.DB, promotionID, n int64) error {
	met, err := moveQuota(tx, promotionID, n)
	if err == nil && !met {
		return wrongQuota(promotionID, n)
	}
	return err
}

// wrongQuota is no conflict: another run would meet the same.
func wrongQuota(promotionID, n int64) error {
	return fmt.Errorf("move the quota of promotion %d by %d: promotion_quota has other units taken than claims, uses and leases have "+
		"(run doortab reconcile)", promotionID, n)
}

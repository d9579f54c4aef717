package inventory

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// override is what the audit log keeps of one.
type override struct {
	ProductID int64 `json:"productId"`
}

// PutOverride says which product a tag is on, where the tag's own GTIN is wrong. The EPC is upper case hex. It fails with
// [ErrUnknownProduct].
func PutOverride(tx *gorm.DB, epc string, productID int64, now time.Time) error {
	if err := checkProducts(tx, []Key{{ProductID: productID}}); err != nil {
		return err
	}
	before, err := readOverride(tx, epc)
	if err != nil {
		return err
	}
	entry := auditlog.Entry{Action: "epc.put", Target: "epc " + epc, After: override{productID}}
	switch {
	case before == nil:
		err = database.Insert(tx, "epc_overrides", []string{"epc", "product_id", "updated_at"}, [][]any{{epc, productID, now}}, "")
		if database.IsDuplicate(err) {
			return fmt.Errorf("override of tag %s: %w", epc, database.ErrConflict)
		}
	case before.ProductID == productID:
		return nil
	default:
		entry.Before = *before
		err = tx.Exec("UPDATE epc_overrides SET product_id = ?, updated_at = ? WHERE epc = ?", productID, now, epc).Error
	}
	if err != nil {
		return fmt.Errorf("override of tag %s: %w", epc, err)
	}
	if err := auditlog.Write(tx, entry, now); err != nil {
		return err
	}
	return raise(tx)
}

// DeleteOverride lets a tag's own GTIN count again. It returns [ErrNotFound] where there is no override; in a later
// attempt, counted as by [database.DB.InTxCounted], none is needed, since the attempt before may have deleted it.
func DeleteOverride(tx *gorm.DB, attempt int, epc string, now time.Time) error {
	before, err := readOverride(tx, epc)
	if err != nil {
		return err
	}
	if before == nil {
		if attempt > 1 {
			return nil
		}
		return fmt.Errorf("override of tag %s: %w", epc, ErrNotFound)
	}
	if err := tx.Exec("DELETE FROM epc_overrides WHERE epc = ?", epc).Error; err != nil {
		return fmt.Errorf("delete override of tag %s: %w", epc, err)
	}
	err = auditlog.Write(tx, auditlog.Entry{Action: "epc.delete", Target: "epc " + epc, Before: *before}, now)
	if err != nil {
		return err
	}
	return raise(tx)
}

func readOverride(tx *gorm.DB, epc string) (*override, error) {
	var found []override
	if err := tx.Raw("SELECT product_id FROM epc_overrides WHERE epc = ? FOR UPDATE", epc).Scan(&found).Error; err != nil {
		return nil, fmt.Errorf("read override of tag %s: %w", epc, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &found[0], nil
}

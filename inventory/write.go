package inventory

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

var (
	stockColumns = []string{"device_id", "product_id", "stock", "version", "counted_seq", "counted_epoch", "updated_at"}
	stockKey     = []database.Column{database.Int("device_id"), database.Int("product_id"), database.Int("version")}
	stockValues  = []database.Column{
		database.Int("stock"), database.Int("version"), database.Int("counted_seq"), database.Int("counted_epoch"),
		database.Time("updated_at"),
	}
	movementColumns = []string{
		"device_id", "product_id", "version", "kind", "quantity", "delta", "balance", "ref", "seq", "seq_epoch",
		"created_at",
	}
	discrepancyColumns = []string{"device_id", "product_id", "version", "kind", "quantity", "ref", "created_at"}
)

// updateRows writes all rows in one statement, each only where its version is still the one
// that was read.
func updateRows(tx *gorm.DB, rows []*row, now time.Time) error {
	values := make([][]any, len(rows))
	for i, r := range rows {
		values[i] = []any{
			r.DeviceID, r.ProductID, r.before, r.Stock, r.Version, r.CountedSeq, r.CountedEpoch, now,
		}
	}
	changed, err := database.UpdateEach(tx, "device_stock", stockKey, stockValues, values)
	if err != nil {
		return err
	}
	if changed != int64(len(rows)) {
		return fmt.Errorf("update device_stock: %d of %d rows: %w", changed, len(rows), database.ErrConflict)
	}
	return nil
}

func insertRows(tx *gorm.DB, rows []*row, now time.Time) error {
	values := make([][]any, len(rows))
	for i, r := range rows {
		values[i] = []any{r.DeviceID, r.ProductID, r.Stock, r.Version, r.CountedSeq, r.CountedEpoch, now}
	}
	err := database.Insert(tx, "device_stock", stockColumns, values, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("make stock rows: %w", database.ErrConflict)
	}
	return err
}

func insertMovements(tx *gorm.DB, movements []Movement) error {
	values := make([][]any, len(movements))
	for i, m := range movements {
		var seq, epoch any
		if m.At != nil {
			seq, epoch = m.At.Seq, m.At.Epoch
		}
		values[i] = []any{
			m.DeviceID, m.ProductID, m.Version, m.Kind, m.Quantity, m.Delta, m.Balance, m.Ref, seq, epoch, m.CreatedAt,
		}
	}
	return database.Insert(tx, "stock_movements", movementColumns, values, "")
}

// The kinds of discrepancies.
const (
	shortfall  = "shortfall"
	difference = "stocktake"
)

func insertDiscrepancies(tx *gorm.DB, movements []Movement) error {
	var values [][]any
	for _, m := range movements {
		switch {
		case m.Shortfall != 0:
			values = append(values, []any{m.DeviceID, m.ProductID, m.Version, shortfall, m.Shortfall, m.Ref, m.CreatedAt})
		case m.Difference != 0:
			values = append(values, []any{m.DeviceID, m.ProductID, m.Version, difference, m.Difference, m.Ref, m.CreatedAt})
		}
	}
	return database.Insert(tx, "discrepancies", discrepancyColumns, values, "")
}

package inventory

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

var (
	stockColumns = []string{"device_id", "product_id", "stock", "version", "counted_seq", "counted_epoch", "updated_at"}
	stockKey     = []database.Column{database.Int("device_id"), database.Int("product_id"), database.Int("version")}
	stockValues  = []database.Column{
		database.Int("stock"), database.Int("version"), database.Time("updated_at"), database.Int("counted_seq"),
		database.Int("counted_epoch"),
	}
	movementColumns = []string{
		"device_id", "product_id", "version", "kind", "quantity", "delta", "balance", "ref", "seq", "seq_epoch",
		"created_at",
	}
	discrepancyColumns = []string{"device_id", "product_id", "version", "kind", "quantity", "ref", "created_at"}
)

// step is what a group did to a row. Most rows of a large group have the same: one unit less by one movement.
type step struct{ stock, versions int64 }

func (r *row) step() step { return step{r.Stock - r.had, r.Version - r.before} }

// updateRows writes each row only where its version is still the one that was read.
func updateRows(tx *gorm.DB, rows []*row, now time.Time) error {
	alike, common, others := sortByStep(rows)
	changed, err := updateAlike(tx, alike, common, now)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(others, rowsAtOnce) {
		n, err := updateEach(tx, some, now)
		if err != nil {
			return err
		}
		changed += n
	}
	if changed != int64(len(rows)) {
		return fmt.Errorf("update device_stock: %d of %d rows: %w", changed, len(rows), database.ErrConflict)
	}
	return nil
}

// sortByStep takes apart the rows that have the commonest step, where they are many.
func sortByStep(rows []*row) (alike []*row, common step, others []*row) {
	count := map[step]int{}
	for _, r := range rows {
		count[r.step()]++
		if count[r.step()] > count[common] {
			common = r.step()
		}
	}
	if !database.AlikePays(count[common], len(rows)) {
		return nil, step{}, rows
	}
	for _, r := range rows {
		if r.step() == common && !r.recounted {
			alike = append(alike, r)
		} else {
			others = append(others, r)
		}
	}
	return alike, common, others
}

func updateAlike(tx *gorm.DB, rows []*row, common step, now time.Time) (int64, error) {
	return database.UpdateAlike(tx, "device_stock", "stock = stock + ?, version = version + ?, updated_at = ?",
		[]driver.Value{common.stock, common.versions, now}, []string{"device_id", "product_id", "version"}, len(rows),
		func(i int, keys []driver.Value) {
			keys[0], keys[1], keys[2] = rows[i].DeviceID, rows[i].ProductID, rows[i].before
		})
}

// updateEach leaves out what only a stock-take changes: each column of such a statement is paid for row by row.
func updateEach(tx *gorm.DB, rows []*row, now time.Time) (int64, error) {
	columns := stockValues[:3]
	if slices.ContainsFunc(rows, func(r *row) bool { return r.recounted }) {
		columns = stockValues
	}
	values := make([][]any, len(rows))
	for i, r := range rows {
		values[i] = []any{r.DeviceID, r.ProductID, r.before, r.Stock, r.Version, now, r.CountedSeq, r.CountedEpoch}[:3+len(columns)]
	}
	return database.UpdateEach(tx, "device_stock", stockKey, columns, values)
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
	return database.InsertEach(tx, "stock_movements", movementColumns, len(movements), "", func(i int, values []driver.Value) {
		m := &movements[i]
		values[0], values[1], values[2], values[3] = m.DeviceID, m.ProductID, m.Version, string(m.Kind)
		values[4], values[5], values[6], values[7] = m.Quantity, m.Delta, m.Balance, m.Ref
		values[8], values[9], values[10] = nil, nil, m.CreatedAt
		if m.At != nil {
			values[8], values[9] = m.At.Seq, int64(m.At.Epoch)
		}
	})
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

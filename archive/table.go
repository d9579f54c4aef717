package archive

import (
	"fmt"
	"strings"

	"gorm.io/gorm"

	"doortab/database"
)

// keysAtOnce bounds a list of keys in one statement: MariaDB makes of a longer one a join that takes locks in an order of
// its own.
const keysAtOnce = 300

// table is a live table and its archive, which have the same columns.
type table struct {
	name    string
	columns []string
}

func (t table) archive() string { return t.name + "_archive" }

var (
	orderTable = table{"orders", []string{
		"order_id", "device_id", "close_event_id", "user_id", "app", "status", "currency", "total_minor", "created_at",
	}}
	lineTable = table{"order_lines", []string{
		"device_id", "order_id", "line", "origin", "product_id", "quantity", "unit_price_minor", "amount_minor", "evidence",
	}}
	movementTable = table{"stock_movements", []string{
		"device_id", "product_id", "version", "kind", "quantity", "delta", "balance", "ref", "seq", "seq_epoch", "created_at",
	}}
)

// put moves rows from the live table to the archive and returns how many.
func (t table) put(tx *gorm.DB, where string, args ...any) (int64, error) {
	return t.move(tx, t.name, t.archive(), where, args...)
}

// fetch moves rows from the archive back to the live table and returns how many.
func (t table) fetch(tx *gorm.DB, where string, args ...any) (int64, error) {
	return t.move(tx, t.archive(), t.name, where, args...)
}

func (t table) move(tx *gorm.DB, from, to, where string, args ...any) (int64, error) {
	columns := strings.Join(t.columns, ", ")
	copied := tx.Exec("INSERT INTO "+to+" ("+columns+") SELECT "+columns+" FROM "+from+" WHERE "+where, args...)
	if copied.Error != nil {
		return 0, fmt.Errorf("copy rows from %s to %s: %w", from, to, firstOrElse(copied.Error))
	}
	// A plan that scans would wait for rows that nobody asked for; only this form of DELETE takes the index that is meant.
	removed := tx.Exec("DELETE t FROM "+from+" t FORCE INDEX (PRIMARY) WHERE "+where, args...)
	if removed.Error != nil {
		return 0, fmt.Errorf("remove rows from %s: %w", from, removed.Error)
	}
	if removed.RowsAffected != copied.RowsAffected {
		return 0, fmt.Errorf("move %d rows from %s, %d were there to remove: %w", copied.RowsAffected, from, removed.RowsAffected,
			database.ErrConflict)
	}
	return copied.RowsAffected, nil
}

// firstOrElse makes of a row that is there already another mover's, who was first: the next run reads afresh.
func firstOrElse(err error) error {
	if database.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", database.ErrConflict, err)
	}
	return err
}

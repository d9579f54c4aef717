package inventory

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// MaxRestockUnits is the most that one line of a restock may add.
const MaxRestockUnits = 100_000

// ErrUnknownProduct is wrapped by errors that name a product the catalogue does not have.
var ErrUnknownProduct = errors.New("unknown product")

// RestockRequest adds units to a cabinet's book stock.
type RestockRequest struct {
	DeviceID  int64
	RestockID string // a UUID, minted by the caller
	Note      string
	Actor     string // who did it: the id of a token
	Lines     []RestockLine
}

// RestockLine is one product of a restock, 1 to [MaxRestockUnits] units.
type RestockLine struct{ ProductID, Quantity int64 }

// AddRestock books a restock and returns its movements in ascending order of products. The
// attempt is [database.DB.InTxCounted]'s. It fails with [ErrUnknownProduct], and with a duplicate
// key where the RestockID is booked already.
func AddRestock(tx *gorm.DB, attempt int, request RestockRequest, now time.Time) ([]Movement, error) {
	changes := make([]Change, len(request.Lines))
	for i, line := range request.Lines {
		changes[i] = Change{
			Key: Key{request.DeviceID, line.ProductID}, Kind: Restock, Quantity: line.Quantity, Ref: request.RestockID,
		}
	}
	return bookAll(tx, attempt, changes, now, func() error {
		return database.Insert(tx, "restocks", []string{"device_id", "restock_id", "note", "actor", "created_at"},
			[][]any{{request.DeviceID, request.RestockID, request.Note, request.Actor, now}}, "")
	})
}

// bookAll books the changes of one document, which keep writes, in ascending order of products.
func bookAll(tx *gorm.DB, attempt int, changes []Change, now time.Time, keep func() error) ([]Movement, error) {
	slices.SortFunc(changes, func(a, b Change) int { return compareKeys(a.Key, b.Key) })
	keys := make([]Key, len(changes))
	for i, change := range changes {
		keys[i] = change.Key
	}
	if err := checkProducts(tx, keys); err != nil {
		return nil, err
	}
	ledger, err := OpenLedger(tx, keys, database.LockingFor(attempt))
	if err != nil {
		return nil, err
	}
	if err := keep(); err != nil {
		return nil, err
	}
	movements := make([]Movement, len(changes))
	for i, change := range changes {
		movements[i] = ledger.Book(change, now)
	}
	return movements, ledger.Write(tx, now)
}

func checkProducts(tx *gorm.DB, keys []Key) error {
	ids := make([]int64, len(keys))
	for i, key := range keys {
		ids[i] = key.ProductID
	}
	known, err := KnownProducts(tx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !known[id] {
			return fmt.Errorf("product %d: %w", id, ErrUnknownProduct)
		}
	}
	return nil
}

// KnownProducts tells which of ids the catalogue has.
func KnownProducts(tx *gorm.DB, ids []int64) (map[int64]bool, error) {
	known := make(map[int64]bool, len(ids))
	for some := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(ids))), rowsAtOnce) {
		var found []int64
		if err := tx.Raw("SELECT product_id FROM products WHERE product_id IN ?", some).Scan(&found).Error; err != nil {
			return nil, fmt.Errorf("read products: %w", err)
		}
		for _, id := range found {
			known[id] = true
		}
	}
	return known, nil
}

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
	keys := make([]Key, len(request.Lines))
	for i, line := range request.Lines {
		keys[i] = Key{request.DeviceID, line.ProductID}
	}
	if err := checkProducts(tx, keys); err != nil {
		return nil, err
	}
	ledger, err := OpenLedger(tx, keys, LockingFor(attempt))
	if err != nil {
		return nil, err
	}
	if err := insertRestock(tx, request, now); err != nil {
		return nil, err
	}
	lines := slices.SortedFunc(slices.Values(request.Lines), func(a, b RestockLine) int {
		return compareKeys(Key{0, a.ProductID}, Key{0, b.ProductID})
	})
	movements := make([]Movement, len(lines))
	for i, line := range lines {
		movements[i] = ledger.Book(Change{
			Key: Key{request.DeviceID, line.ProductID}, Kind: Restock, Quantity: line.Quantity, Ref: request.RestockID,
		}, now)
	}
	return movements, ledger.Write(tx, now)
}

func insertRestock(tx *gorm.DB, r RestockRequest, now time.Time) error {
	return database.Insert(tx, "restocks", []string{"device_id", "restock_id", "note", "actor", "created_at"},
		[][]any{{r.DeviceID, r.RestockID, r.Note, r.Actor, now}}, "")
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

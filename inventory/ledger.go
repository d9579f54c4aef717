// Package inventory keeps what the books say is in each cabinet: the catalogue, book stock and
// the ledger of movements behind it.
//
// Every writer of book stock goes through [Ledger], so that each change raises the row's
// version and leaves exactly one movement with that version as its number (R12).
package inventory

import (
	"cmp"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// rowsAtOnce bounds one statement: MariaDB makes of a longer IN list a join that takes locks in
// an order of its own.
const rowsAtOnce = 400

// Key names a row of book stock.
type Key struct{ DeviceID, ProductID int64 }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), cmp.Compare(a.ProductID, b.ProductID))
}

// MovementKind says why book stock changed.
type MovementKind string

// The kinds that a movement can have.
const (
	Sale      MovementKind = "sale"
	Restock   MovementKind = "restock"
	Stocktake MovementKind = "stocktake"
	Writeoff  MovementKind = "writeoff"
	Review    MovementKind = "review" // a person corrected an event
	Refund    MovementKind = "refund" // units of a refunded order came back
)

// Change is one thing that happened to one product in one cabinet.
type Change struct {
	Key
	Kind MovementKind
	// Quantity is what physically happened: −2 for two taken, 10 for ten brought.
	Quantity int64
	// At is the event's place in the cabinet's sequence; nil where the change came another
	// way, or without a seq.
	At *Position
	// Ref names the document behind it: a close event id, the id of a restock, stock-take, write-off or review,
	// the id of a refunded order.
	Ref string
	// Short is, of units that a review gives back, how many the books never gave: what is still on record of the shortfalls
	// of the same event and product. 0 for any other change.
	Short int64
}

// Position is a place in a cabinet's sequence of events. A replaced controller starts a new
// epoch (R13).
type Position struct {
	Epoch int
	Seq   int64
}

// Movement is one line of the stock ledger (R12).
type Movement struct {
	Change
	Version    int64
	Delta      int64 // what it did to the books
	Balance    int64 // book stock after it
	Shortfall  int64 // units taken that the books did not have (R4); negative where a review takes such back
	Difference int64 // of a stock-take: units counted less units booked
	CreatedAt  time.Time
}

// Ledger books changes to a set of stock rows inside one transaction: [OpenLedger] reads the
// rows, Book works out movements in memory, Write writes all of them.
type Ledger struct {
	rows   map[Key]*row
	booked []Movement
}

type row struct {
	DeviceID     int64
	ProductID    int64
	Stock        int64
	Version      int64
	CountedSeq   *int64 // the seq that the last stock-take counted up to; nil: never counted, or before any seq
	CountedEpoch int
	before       int64 // version as read
	had          int64 // stock as read
	exists       bool
	changed      bool
	recounted    bool // a stock-take of this transaction counted it
}

// OpenLedger reads the rows of keys in ascending order; a row that does not exist counts as
// empty and is made by Write.
func OpenLedger(tx *gorm.DB, keys []Key, locking database.Locking) (*Ledger, error) {
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, compareKeys)
	sorted = slices.Compact(sorted)
	ledger := &Ledger{rows: make(map[Key]*row, len(sorted)), booked: make([]Movement, 0, len(keys))}
	if len(sorted) == 0 {
		return ledger, nil
	}
	if locking == database.ForUpdate {
		if err := makeRows(tx, sorted); err != nil {
			return nil, err
		}
	}
	for some := range slices.Chunk(sorted, rowsAtOnce) {
		if err := ledger.read(tx, some, locking); err != nil {
			return nil, err
		}
	}
	for _, key := range sorted {
		if ledger.rows[key] == nil {
			ledger.rows[key] = &row{DeviceID: key.DeviceID, ProductID: key.ProductID}
		}
	}
	return ledger, nil
}

// readRows locks by a statement of its own, since MySQL locks nothing in a join with a table that has no locks. Its index is
// forced because a plan that scans would wait for rows that nobody asked for.
func readRows(tx *gorm.DB, keys []Key, locking database.Locking) (*sql.Rows, error) {
	list := make([][]any, len(keys))
	for i, key := range keys {
		list[i] = []any{key.DeviceID, key.ProductID}
	}
	if locking == database.Optimistic {
		return database.ReadEach(tx, "device_stock", stockKey[:2], stockColumns[:6], list)
	}
	return tx.Raw(`SELECT device_id, product_id, stock, version, counted_seq, counted_epoch
		FROM device_stock FORCE INDEX (PRIMARY)
		WHERE (device_id, product_id) IN ? ORDER BY device_id, product_id`+locking.Clause(), list).Rows()
}

func (l *Ledger) read(tx *gorm.DB, keys []Key, locking database.Locking) error {
	found, err := readRows(tx, keys, locking)
	if err != nil {
		return fmt.Errorf("read book stock: %w", err)
	}
	defer func() { _ = found.Close() }()
	var device, product, stock, version, counted, epoch number
	rows := make([]row, 0, len(keys))
	for found.Next() {
		if err := found.Scan(&device, &product, &stock, &version, &counted, &epoch); err != nil {
			return fmt.Errorf("read a row of book stock: %w", err)
		}
		rows = append(rows, row{
			DeviceID: device.int64, ProductID: product.int64, Stock: stock.int64, Version: version.int64, CountedSeq: counted.orNil(),
			CountedEpoch: int(epoch.int64), before: version.int64, had: stock.int64, exists: true,
		})
		l.rows[Key{device.int64, product.int64}] = &rows[len(rows)-1]
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("read book stock: %w", err)
	}
	return nil
}

// number is a whole number or NULL, as it is read: database/sql would write it as text and read that again.
type number struct {
	int64
	known bool
}

// Scan takes what a driver gives for a BIGINT.
func (n *number) Scan(value any) error {
	n.int64, n.known = value.(int64)
	if !n.known && value != nil {
		return fmt.Errorf("%v is no whole number", value)
	}
	return nil
}

func (n *number) orNil() *int64 {
	if !n.known {
		return nil
	}
	value := n.int64
	return &value
}

// makeRows makes the rows that are missing, since there is no lock on a row that does not
// exist. A rollback takes them away again; after Write they have a version.
func makeRows(tx *gorm.DB, keys []Key) error {
	now := database.Now()
	rows := make([][]any, len(keys))
	for i, key := range keys {
		rows[i] = []any{key.DeviceID, key.ProductID, 0, 0, nil, 0, now}
	}
	return database.Insert(tx, "device_stock", stockColumns, rows, "ON DUPLICATE KEY UPDATE version = version")
}

// Book applies a change to its row, which must be among the keys of [OpenLedger], and
// returns the movement. Book stock goes down to 0 and not below (R4); what is given back
// cancels what the books lacked before it adds to them; an event that a stock-take has counted
// already moves nothing (R13).
func (l *Ledger) Book(change Change, now time.Time) Movement {
	r := l.rows[change.Key]
	m := Movement{Change: change, CreatedAt: now}
	if !r.counted(change.At) {
		m.Delta = max(change.Quantity, -r.Stock) - min(max(change.Quantity, 0), change.Short)
		m.Shortfall = m.Delta - change.Quantity
	}
	return l.add(r, m)
}

func (l *Ledger) add(r *row, m Movement) Movement {
	r.Stock += m.Delta
	r.Version++
	r.changed = true
	m.Version, m.Balance = r.Version, r.Stock
	l.booked = append(l.booked, m)
	return m
}

// counted tells whether the last stock-take counted up to an event or beyond it. Whatever a
// controller reported that was replaced before the count, the count has seen too.
func (r *row) counted(at *Position) bool {
	switch {
	case at == nil:
		return false
	case at.Epoch != r.CountedEpoch:
		return at.Epoch < r.CountedEpoch
	default:
		return r.CountedSeq != nil && at.Seq <= *r.CountedSeq
	}
}

// Write writes rows, movements and discrepancies. It returns [database.ErrConflict] where
// another writer was first.
func (l *Ledger) Write(tx *gorm.DB, now time.Time) error {
	fresh, known := l.changedRows()
	if err := updateRows(tx, known, now); err != nil {
		return err
	}
	if err := insertRows(tx, fresh, now); err != nil {
		return err
	}
	if err := insertMovements(tx, l.booked); err != nil {
		return err
	}
	return insertDiscrepancies(tx, l.booked)
}

func (l *Ledger) changedRows() (fresh, known []*row) {
	for _, key := range slices.SortedFunc(maps.Keys(l.rows), compareKeys) {
		switch r := l.rows[key]; {
		case !r.changed:
		case !r.exists:
			fresh = append(fresh, r)
		default:
			known = append(known, r)
		}
	}
	return fresh, known
}

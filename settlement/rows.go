package settlement

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
)

// settled is an event with what its row of settlements says beside.
type settled struct {
	*item
	outcome cabinet.Outcome
	orderID any // int64; nil where it made none
}

func (s settled) compare(other settled) int {
	return cmp.Or(cmp.Compare(s.key.deviceID, other.key.deviceID), cmp.Compare(s.key.closeEventID, other.key.closeEventID))
}

// ordered is an event with its order.
type ordered struct {
	*item
	orderID int64
	status  string
	total   int64
}

// orderedLine is line number n, from 1, of an order.
type orderedLine struct {
	*line
	deviceID, orderID int64
	n                 int
}

var (
	settlementFields = []string{
		"device_id", "close_event_id", "outcome", "digest", "order_id", "seq", "seq_epoch", "kind", "user_id", "session_id", "priced_at",
		"payload", "receipt", "received_at", "settled_at",
	}
	orderFields = []string{
		"order_id", "device_id", "close_event_id", "user_id", "app", "status", "currency", "total_minor", "created_at",
	}
	lineFields = []string{
		"device_id", "order_id", "line", "origin", "product_id", "quantity", "unit_price_minor", "amount_minor", "evidence",
	}
)

func (b *batch) insertSettlements(tx *gorm.DB) error {
	slices.SortFunc(b.settlements, settled.compare)
	now := driver.Value(b.now)
	err := insertEach(tx, "settlements", settlementFields, len(b.settlements), func(row int, v []driver.Value) {
		s := &b.settlements[row]
		var seq, epoch driver.Value
		if s.at != nil {
			seq, epoch = s.at.Seq, int64(s.at.Epoch)
		}
		v[0], v[1], v[2], v[3], v[4] = s.key.deviceID, s.key.closeEventID, string(s.outcome), s.digest[:], s.orderID
		v[5], v[6], v[7], v[8], v[9] = seq, epoch, string(s.event.Kind), s.userID(), s.sessionID()
		v[10], v[11], v[12], v[13], v[14] = s.pricedAt(), s.Payload, s.planned, s.ReceivedAt, now
	})
	if errors.Is(err, database.ErrConflict) {
		return fmt.Errorf("%w: %w", errKnown, err)
	}
	return err
}

func (b *batch) insertOrders(tx *gorm.DB) error {
	currency, now := driver.Value(b.currency), driver.Value(b.now)
	return insertEach(tx, "orders", orderFields, len(b.orders), func(row int, v []driver.Value) {
		o := &b.orders[row]
		v[0], v[1], v[2], v[3], v[4] = o.orderID, o.key.deviceID, o.key.closeEventID, o.userID(), o.app()
		v[5], v[6], v[7], v[8] = o.status, currency, o.total, now
	})
}

func (b *batch) insertLines(tx *gorm.DB) error {
	origin := driver.Value(originSettlement)
	return insertEach(tx, "order_lines", lineFields, len(b.lines), func(row int, v []driver.Value) {
		l := &b.lines[row]
		v[0], v[1], v[2], v[3], v[4] = l.deviceID, l.orderID, int64(l.n), origin, l.ProductID
		v[5], v[6], v[7], v[8] = l.Quantity, l.UnitPriceMinor, l.AmountMinor, l.evidenceJSON()
	})
}

// insert makes a duplicate key what it means here: another transaction was first, or two ids
// collided. The next run reads afresh.
func insert(tx *gorm.DB, table, suffix string, rows [][]any, columns ...string) error {
	return asConflict(table, database.Insert(tx, table, columns, rows, suffix))
}

func insertEach(tx *gorm.DB, table string, columns []string, rows int, fill func(row int, values []driver.Value)) error {
	return asConflict(table, database.InsertEach(tx, table, columns, rows, "", fill))
}

func asConflict(table string, err error) error {
	if database.IsDuplicate(err) {
		return fmt.Errorf("insert into %s: %w", table, database.ErrConflict)
	}
	return err
}

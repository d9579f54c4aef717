package archive

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// unfinished are the states of orders that somebody still has to see to.
var unfinished = []string{"review", "arrears"}

// orders moves orders with their lines, in the order of their ids, which is that of time.
type orders struct {
	db     *database.DB
	before time.Time
	batch  int
	last   int64
}

type order struct {
	OrderID, DeviceID int64
	CloseEventID      string
}

func (*orders) what() string { return "orders" }

func (o *orders) pending(ctx context.Context) (n int64, err error) {
	err = o.db.Read(ctx).Raw("SELECT COUNT(*) FROM orders WHERE order_id < ? AND status NOT IN ?",
		database.FirstID(o.before), unfinished).Scan(&n).Error
	return n, err
}

func (o *orders) step(ctx context.Context) (moved int64, more bool, err error) {
	var found []order
	err = o.db.Read(ctx).Raw(`SELECT order_id, device_id, close_event_id FROM orders
		WHERE order_id > ? AND order_id < ? AND status NOT IN ? ORDER BY order_id LIMIT ?`,
		o.last, database.FirstID(o.before), unfinished, o.batch).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	moved, err = inTx(ctx, o.db, func(tx *gorm.DB) (int64, error) { return putOrders(tx, found) })
	if err == nil {
		o.last = found[len(found)-1].OrderID
	}
	return moved, len(found) == o.batch, err
}

// putOrders takes the locks that whoever corrects an order takes, in the same order: settlements, then orders. So the lines
// that it moves are all of an order's lines.
func putOrders(tx *gorm.DB, found []order) (moved int64, err error) {
	if err := lockEvents(tx, found); err != nil {
		return 0, err
	}
	for some := range slices.Chunk(found, keysAtOnce) {
		done, err := putSome(tx, some)
		if err != nil {
			return 0, err
		}
		moved += done
	}
	return moved, nil
}

func lockEvents(tx *gorm.DB, found []order) error {
	keys := make([][]any, len(found))
	for i, o := range found {
		keys[i] = []any{o.DeviceID, o.CloseEventID}
	}
	sortKeys(keys)
	for some := range slices.Chunk(keys, keysAtOnce) {
		var locked []int64
		err := tx.Raw(`SELECT device_id FROM settlements FORCE INDEX (PRIMARY) WHERE (device_id, close_event_id) IN ?
			ORDER BY device_id, close_event_id FOR UPDATE`, some).Scan(&locked).Error
		if err != nil {
			return fmt.Errorf("lock settlements: %w", err)
		}
	}
	return nil
}

// putSome moves those of the orders that are still finished behind the locks.
func putSome(tx *gorm.DB, found []order) (int64, error) {
	ids := make([]int64, len(found))
	for i, o := range found {
		ids[i] = o.OrderID
	}
	var finished []order
	err := tx.Raw(`SELECT order_id, device_id FROM orders FORCE INDEX (PRIMARY) WHERE order_id IN ? AND status NOT IN ?
		ORDER BY order_id FOR UPDATE`, ids, unfinished).Scan(&finished).Error
	if err != nil {
		return 0, fmt.Errorf("lock orders: %w", err)
	}
	if len(finished) == 0 {
		return 0, nil
	}
	ids = ids[:0]
	lines := make([][]any, len(finished))
	for i, o := range finished {
		ids = append(ids, o.OrderID)
		lines[i] = []any{o.DeviceID, o.OrderID}
	}
	if _, err := lineTable.put(tx, "(device_id, order_id) IN ?", lines); err != nil {
		return 0, err
	}
	return orderTable.put(tx, "order_id IN ?", ids)
}

// RestoreOrder brings an archived order and its lines back among the live ones, where corrections are made. The caller
// holds the lock on its settlement.
func RestoreOrder(tx *gorm.DB, deviceID, orderID int64) error {
	restored, err := orderTable.fetch(tx, "order_id = ?", orderID)
	if err != nil {
		return fmt.Errorf("restore order %d: %w", orderID, err)
	}
	if restored != 1 {
		return fmt.Errorf("restore order %d: it is not in the archive any more: %w", orderID, database.ErrConflict)
	}
	if _, err := lineTable.fetch(tx, "device_id = ? AND order_id = ?", deviceID, orderID); err != nil {
		return fmt.Errorf("restore order %d: %w", orderID, err)
	}
	return nil
}

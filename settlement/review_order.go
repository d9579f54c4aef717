package settlement

import (
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// States of an order that a review may change.
const (
	orderOpen   = "open"
	orderReview = "review"
	orderVoid   = "void" // nothing is left on it
)

// Origins of an order's lines (R15).
const (
	originSettlement = "settlement"
	originReview     = "review"
)

func (e *pastEvent) statusAfter(waits bool) string {
	switch {
	case waits:
		return orderReview
	case e.nothingLeft():
		return orderVoid
	default:
		return orderOpen
	}
}

func (e *pastEvent) nothingLeft() bool {
	for _, units := range e.standing {
		if units != 0 {
			return false
		}
	}
	return true
}

func (e *pastEvent) writeOrder(tx *gorm.DB, orderID int64, lines []OrderLine, status string, now time.Time) error {
	total := int64(0)
	for _, l := range lines {
		total += l.AmountMinor
	}
	var err error
	switch {
	case e.order == nil:
		err = e.makeOrder(tx, orderID, status, total, now)
	case len(lines) > 0 || e.order.Status == orderReview:
		err = e.setOrder(tx, status, e.order.TotalMinor+total)
	}
	if err != nil {
		return err
	}
	return e.addLines(tx, lines)
}

func (e *pastEvent) makeOrder(tx *gorm.DB, orderID int64, status string, total int64, now time.Time) error {
	o := Order{
		OrderID: orderID, DeviceID: e.deviceID, CloseEventID: e.closeEventID, Status: status,
		Currency: e.currency, TotalMinor: total, CreatedAt: now, UserID: e.userID,
	}
	err := insert(tx, "orders", "", [][]any{{
		o.OrderID, o.DeviceID, o.CloseEventID, o.UserID, e.app, o.Status, o.Currency, o.TotalMinor, o.CreatedAt,
	}}, orderFields...)
	if err != nil {
		return err
	}
	e.order = &o
	for _, statement := range []string{
		"UPDATE settlements SET order_id = ? WHERE device_id = ? AND close_event_id = ? AND order_id IS NULL",
		"UPDATE reviews SET order_id = ? WHERE device_id = ? AND close_event_id = ? AND order_id IS NULL AND conflict_digest IS NULL",
	} {
		if err := tx.Exec(statement, o.OrderID, o.DeviceID, o.CloseEventID).Error; err != nil {
			return fmt.Errorf("name order %d in what belongs to it: %w", o.OrderID, err)
		}
	}
	return nil
}

// setOrder is a compare-and-set: other changes of an order don't take this lock.
func (e *pastEvent) setOrder(tx *gorm.DB, status string, total int64) error {
	o := e.order
	switch {
	case !slices.Contains([]string{orderOpen, orderReview, orderVoid}, o.Status):
		return fmt.Errorf("order %d is %s: %w", o.OrderID, o.Status, ErrOrderClosed)
	case status == o.Status && total == o.TotalMinor:
		return nil
	}
	result := tx.Exec("UPDATE orders SET status = ?, total_minor = ? WHERE order_id = ? AND status = ? AND total_minor = ?",
		status, total, o.OrderID, o.Status, o.TotalMinor)
	if result.Error != nil {
		return fmt.Errorf("update order %d: %w", o.OrderID, result.Error)
	}
	if result.RowsAffected != 1 {
		return fmt.Errorf("update order %d: %w", o.OrderID, database.ErrConflict)
	}
	o.Status, o.TotalMinor = status, total
	return nil
}

func (e *pastEvent) addLines(tx *gorm.DB, lines []OrderLine) error {
	rows := make([][]any, len(lines))
	for i, l := range lines {
		rows[i] = []any{
			e.deviceID, e.order.OrderID, len(e.order.Lines) + i + 1, l.Origin, l.ProductID, l.Quantity, l.UnitPriceMinor,
			l.AmountMinor, l.Evidence,
		}
	}
	return insert(tx, "order_lines", "", rows, lineFields...)
}

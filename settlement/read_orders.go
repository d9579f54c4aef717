package settlement

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// Order is what one shopper took through one door.
type Order struct {
	OrderID      int64
	DeviceID     int64
	CloseEventID string
	UserID       *int64 // nil: nobody known
	App          string // whose door it was; "" where no app opened it
	Status       string
	Currency     string // ISO 4217
	TotalMinor   int64
	CreatedAt    time.Time
	Archived     bool        // it and its lines lie in the archive, where nobody changes them
	Lines        []OrderLine `gorm:"-"`
}

// OrderLine is one product of an order.
type OrderLine struct {
	OrderID        int64
	Line           int
	Origin         string // settlement, or what corrected it (R15)
	ProductID      int64
	Quantity       int64
	UnitPriceMinor int64
	AmountMinor    int64
	Evidence       []byte // JSON: the numbers that decided it
}

const (
	orderColumns = `o.order_id, o.device_id, o.close_event_id, o.user_id, COALESCE(o.app, '') AS app, o.status, o.currency, o.total_minor,
		o.created_at`
	lineColumns = "order_id, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence"
)

// ListOrders reads up to limit orders with ids below before, the newest first, with their lines; 0 means from the
// newest. It reads either live orders or, where the filter asks for them, archived ones.
func ListOrders(ctx context.Context, db *database.DB, f Filter, before int64, limit int) ([]Order, error) {
	w := &where{}
	w.equal("user_id", f.UserID)
	w.text("app", f.App)
	w.text("status", f.State)
	w.period("created_at", f.From, f.To)
	first, last := firstID(f.From), lastID(f.To, before)
	archived, suffix := "FALSE", ""
	if f.Archived {
		archived, suffix = "TRUE", "_archive"
	}
	from, by := "orders"+suffix+" o", "o.order_id"
	if f.DeviceID != 0 { // orders have no key by cabinet, but their lines have
		from, by = fmt.Sprintf("order_lines%s l STRAIGHT_JOIN orders%[1]s o ON o.order_id = l.order_id", suffix), "l.order_id"
		w.and("l.device_id = ? AND l.line = 1", f.DeviceID)
	}
	w.and(by+" BETWEEN ? AND ?", first, last)
	var orders []Order
	err := db.Read(ctx).Raw("SELECT "+orderColumns+", "+archived+" AS archived FROM "+from+w.clause()+" ORDER BY "+by+" DESC LIMIT ?",
		append(w.args, limit)...).Scan(&orders).Error
	if err != nil {
		return nil, fmt.Errorf("list orders: %w", err)
	}
	return orders, addLines(db.Read(ctx), orders)
}

// firstID and lastID turn times into the range of ids that were minted then, which the primary key can walk.
func firstID(from time.Time) int64 {
	if from.IsZero() || from.UnixMilli() < 0 {
		return 0
	}
	return database.FirstID(from)
}

func lastID(to time.Time, before int64) int64 {
	last := int64(math.MaxInt64)
	if before > 0 {
		last = before - 1
	}
	if !to.IsZero() && to.UnixMilli() < 1<<41 { // no id is later
		last = min(last, database.FirstID(to)-1)
	}
	return last
}

// ReadOrder reads one order, or returns [ErrNotFound].
func ReadOrder(ctx context.Context, db *database.DB, orderID int64) (Order, error) {
	return readOrder(db.Read(ctx), orderID)
}

// readOrder looks into both tables by one statement, so that an order on its way from one to the other is seen.
func readOrder(tx *gorm.DB, orderID int64) (Order, error) {
	var orders []Order
	err := tx.Raw("SELECT "+orderColumns+", FALSE AS archived FROM orders o WHERE order_id = ? UNION ALL SELECT "+
		orderColumns+", TRUE FROM orders_archive o WHERE order_id = ?", orderID, orderID).Scan(&orders).Error
	if err != nil {
		return Order{}, fmt.Errorf("read order %d: %w", orderID, err)
	}
	if len(orders) == 0 {
		return Order{}, fmt.Errorf("order %d: %w", orderID, ErrNotFound)
	}
	err = addLines(tx, orders)
	return orders[0], err
}

// addLines reads the lines of all orders in one statement.
func addLines(tx *gorm.DB, orders []Order) error {
	at := make(map[int64]*Order, len(orders))
	keys := make([][]any, len(orders))
	for i, o := range orders {
		at[o.OrderID], keys[i] = &orders[i], []any{o.DeviceID, o.OrderID}
	}
	lines, err := readLines(tx, keys)
	for _, l := range lines {
		o := at[l.OrderID]
		o.Lines = append(o.Lines, l)
	}
	return err
}

// readLines reads the lines of orders, each given by its cabinet and its id, archived or not.
func readLines(tx *gorm.DB, orders [][]any) ([]OrderLine, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	var lines []OrderLine
	err := tx.Raw("SELECT "+lineColumns+" FROM order_lines WHERE (device_id, order_id) IN ? UNION ALL SELECT "+
		lineColumns+" FROM order_lines_archive WHERE (device_id, order_id) IN ?", orders, orders).Scan(&lines).Error
	if err != nil {
		return nil, fmt.Errorf("read lines of %d orders: %w", len(orders), err)
	}
	slices.SortFunc(lines, func(a, b OrderLine) int {
		return cmp.Or(cmp.Compare(a.OrderID, b.OrderID), cmp.Compare(a.Line, b.Line))
	})
	return lines, nil
}

package audit

import (
	"context"
	"database/sql"
	"fmt"
)

// order is one order with what its lines add up to.
type order struct {
	id, device int64
	archived   bool
	event      string
	total      int64
	user       sql.Null[int64]
	settled    bool            // its event has a settlement
	named      sql.Null[int64] // the order that the settlement names
	charged    sql.Null[int64] // the user of the settlement
	lines      int
	sum        int64
}

// line is one order line; all of it is null for an order without lines.
type line struct {
	number, product, quantity, price, amount sql.Null[int64]
	origin                                   sql.Null[string]
	movements                                int64 // sales of its product in the order's event
	unused                                   bool  // it names a promotion that the order has no use of
}

var (
	orderTables = spread{table: "orders", key: []string{"order_id"}, columns: "device_id, close_event_id, total_minor, user_id"}
	lineTables  = spread{table: "order_lines", key: []string{"device_id", "order_id", "line"}, columns: "product_id"}
)

// salesIn counts an event's sales of a product in a table of movements. The index is forced because a cabinet has far more
// movements of a product than an event has movements.
func salesIn(movements string) string {
	return fmt.Sprintf(`(SELECT COUNT(*) FROM %[1]s m FORCE INDEX (%[1]s_ref) WHERE m.device_id = o.device_id
         AND m.ref = o.close_event_id AND m.kind = 'sale' AND m.product_id = COALESCE(l.product_id, la.product_id))`, movements)
}

// An order's lines lie where it does.
var readOrders = `
SELECT o.archived, o.order_id, o.device_id, o.close_event_id, o.total_minor, o.user_id, s.device_id IS NOT NULL, s.order_id,
       s.user_id,
       COALESCE(l.line, la.line), COALESCE(l.origin, la.origin), COALESCE(l.product_id, la.product_id),
       COALESCE(l.quantity, la.quantity), COALESCE(l.unit_price_minor, la.unit_price_minor),
       COALESCE(l.amount_minor, la.amount_minor),
       ` + salesIn("stock_movements") + ` + ` + salesIn("stock_movements_archive") + `,
       ` + unusedPromotion + `
  FROM ` + orderTables.page() + ` o
  LEFT JOIN settlements s ON s.device_id = o.device_id AND s.close_event_id = o.close_event_id
  LEFT JOIN order_lines l ON NOT o.archived AND l.device_id = o.device_id AND l.order_id = o.order_id
  LEFT JOIN order_lines_archive la ON o.archived AND la.device_id = o.device_id AND la.order_id = o.order_id
 ORDER BY o.order_id, o.archived`

func (a *auditor) orders(ctx context.Context) error {
	var o, group order
	var l line
	row := []any{
		&o.device, &o.event, &o.total, &o.user, &o.settled, &o.named, &o.charged,
		&l.number, &l.origin, &l.product, &l.quantity, &l.price, &l.amount, &l.movements, &l.unused,
	}
	err := a.eachOf(ctx, orderTables, readOrders, []*int64{&o.id}, &o.archived, row, func() {
		if o.id != group.id || o.archived != group.archived {
			a.checkOrder(&group)
			if o.id == group.id {
				a.i1.Doubled++
				a.i1.violated("orders order=%d: also in orders_archive", o.id)
			}
			group = o
		}
		if l.number.Valid {
			group.lines++
			group.sum += l.amount.V
			a.checkLine(&group, &l)
		}
	})
	if err == nil {
		a.checkOrder(&group)
	}
	return err
}

func (a *auditor) checkOrder(o *order) {
	if o.event == "" { // before the first
		return
	}
	a.i1.Rows++
	key := fmt.Sprintf("%s order=%d", orderTables.inWhich(o.archived), o.id)
	switch {
	case !o.settled:
		a.i1.violated("%s: no settlement of device=%d event=%s", key, o.device, o.event)
	case !o.named.Valid:
		a.i1.violated("%s: the settlement of device=%d event=%s names no order", key, o.device, o.event)
	case o.named.V != o.id:
		a.i1.Doubled++
		a.i1.violated("%s: the settlement of device=%d event=%s names order=%d", key, o.device, o.event, o.named.V)
	}
	if o.settled && o.user != o.charged {
		a.i1.violated("%s: of %s, the settlement is of %s", key, person(o.user), person(o.charged))
	}
	if o.lines == 0 {
		a.i1.violated("%s: no line", key)
	}
	a.i3.Rows++
	if o.total != o.sum {
		a.i3.violated("%s: total %d, lines %d", key, o.total, o.sum)
	}
}

func person(user sql.Null[int64]) string {
	if !user.Valid {
		return "nobody known"
	}
	return fmt.Sprintf("user=%d", user.V)
}

func (a *auditor) checkLine(o *order, l *line) {
	a.i3.Rows++
	key := fmt.Sprintf("%s device=%d order=%d line=%d", lineTables.inWhich(o.archived), o.device, o.id, l.number.V)
	if l.amount.V != l.quantity.V*l.price.V {
		a.i3.violated("%s: amount %d, but %d at %d", key, l.amount.V, l.quantity.V, l.price.V)
	}
	if l.unused {
		a.i3.violated("%s: at the price of a promotion that promotion_uses doesn't have for this order", key)
	}
	switch l.origin.V {
	case originSettlement:
		if l.movements != 1 {
			a.i3.violated("%s: %d movements of product %d for event=%s, not one", key, l.movements, l.product.V, o.event)
		}
	case originReview:
	default:
		a.i3.violated("%s: origin %q is none that is ever written", key, l.origin.V)
	}
}

var readOrderLines = `
SELECT l.archived, l.device_id, l.order_id, l.line, o.order_id IS NOT NULL OR oa.order_id IS NOT NULL
  FROM ` + lineTables.page() + ` l
  LEFT JOIN orders o ON NOT l.archived AND o.order_id = l.order_id AND o.device_id = l.device_id
  LEFT JOIN orders_archive oa ON l.archived AND oa.order_id = l.order_id AND oa.device_id = l.device_id
 ORDER BY l.device_id, l.order_id, l.line, l.archived`

func (a *auditor) orderLines(ctx context.Context) error {
	var device, orderID, number int64
	var archived, hasOrder bool
	place := []*int64{&device, &orderID, &number}
	return a.eachOf(ctx, lineTables, readOrderLines, place, &archived, []any{&hasOrder}, func() {
		a.i4.Rows++
		if !hasOrder {
			a.i4.violated("%s device=%d order=%d line=%d: no such order", lineTables.inWhich(archived), device, orderID, number)
		}
	})
}

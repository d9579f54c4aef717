package audit

import (
	"context"
	"database/sql"
	"fmt"
)

// order is one order with what its lines add up to.
type order struct {
	id, device int64
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
}

// The index is forced because a cabinet has far more movements of a product than an event has movements.
const readOrders = `
SELECT o.order_id, o.device_id, o.close_event_id, o.total_minor, o.user_id, s.device_id IS NOT NULL, s.order_id, s.user_id,
       l.line, l.origin, l.product_id, l.quantity, l.unit_price_minor, l.amount_minor,
       (SELECT COUNT(*) FROM stock_movements m FORCE INDEX (stock_movements_ref)
         WHERE m.device_id = o.device_id AND m.ref = o.close_event_id AND m.kind = 'sale' AND m.product_id = l.product_id)
  FROM orders o FORCE INDEX (PRIMARY)
  LEFT JOIN settlements s ON s.device_id = o.device_id AND s.close_event_id = o.close_event_id
  LEFT JOIN order_lines l ON l.device_id = o.device_id AND l.order_id = o.order_id
 ORDER BY o.order_id`

func (a *auditor) orders(ctx context.Context) error {
	var o, group order
	var l line
	row := []any{
		&o.id, &o.device, &o.event, &o.total, &o.user, &o.settled, &o.named, &o.charged,
		&l.number, &l.origin, &l.product, &l.quantity, &l.price, &l.amount, &l.movements,
	}
	err := a.each(ctx, readOrders, row, func() {
		if o.id != group.id {
			a.checkOrder(&group)
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
	key := fmt.Sprintf("orders order=%d", o.id)
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
	key := fmt.Sprintf("order_lines device=%d order=%d line=%d", o.device, o.id, l.number.V)
	if l.amount.V != l.quantity.V*l.price.V {
		a.i3.violated("%s: amount %d, but %d at %d", key, l.amount.V, l.quantity.V, l.price.V)
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

const readOrderLines = `
SELECT l.device_id, l.order_id, l.line, o.order_id IS NOT NULL
  FROM order_lines l FORCE INDEX (PRIMARY)
  LEFT JOIN orders o ON o.order_id = l.order_id AND o.device_id = l.device_id
 ORDER BY l.device_id, l.order_id, l.line`

func (a *auditor) orderLines(ctx context.Context) error {
	var device, orderID, number int64
	var hasOrder bool
	return a.each(ctx, readOrderLines, []any{&device, &orderID, &number, &hasOrder}, func() {
		a.i4.Rows++
		if !hasOrder {
			a.i4.violated("order_lines device=%d order=%d line=%d: no such order", device, orderID, number)
		}
	})
}

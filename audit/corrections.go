package audit

import (
	"context"
	"database/sql"
	"fmt"
)

// corrected is one product of one event that a review may have corrected.
type corrected struct {
	device  int64
	event   string
	product int64
}

// checkReviewed: n more were charged (−n), or given back or brought (+n), and the books followed as they could.
func (a *auditor) checkReviewed(l *ledger, m *movement) {
	a.i3.Rows++
	a.checkBooked(l, m, m.quantity != 0)
}

// The ones that the sums below add up: what is charged on the event's order, and what left or entered the cabinet for it.
var (
	unitsOnOrder = unitsOnOrderIn("order_lines") + " + " + unitsOnOrderIn("order_lines_archive")
	unitsMoved   = unitsMovedIn("stock_movements") + " + " + unitsMovedIn("stock_movements_archive")
)

func unitsOnOrderIn(lines string) string {
	return `COALESCE((SELECT SUM(l.quantity) FROM ` + lines + ` l
         WHERE l.device_id = s.device_id AND l.order_id = s.order_id AND l.product_id = p.product_id), 0)`
}

func unitsMovedIn(movements string) string {
	return fmt.Sprintf(`COALESCE((SELECT SUM(x.quantity) FROM %[1]s x FORCE INDEX (%[1]s_ref)
         WHERE x.device_id = s.device_id AND x.ref = s.close_event_id AND x.kind IN ('sale', 'restock')
           AND x.product_id = p.product_id), 0)
     + COALESCE((SELECT SUM(x.quantity) FROM reviews v FORCE INDEX (reviews_event)
          JOIN %[1]s x FORCE INDEX (%[1]s_ref)
            ON x.device_id = v.device_id AND x.ref = CONVERT(CONVERT(v.review_id, CHAR) USING ascii) COLLATE ascii_bin AND x.kind = 'review'
         WHERE v.device_id = s.device_id AND v.close_event_id = s.close_event_id AND x.product_id = p.product_id), 0)`, movements)
}

var readReviewMovements = `
SELECT p.device_id, p.product_id, p.version, p.ref, r.status, s.close_event_id, s.order_id, ` + unitsOnOrder + `, ` + unitsMoved + `
  FROM %s p FORCE INDEX (PRIMARY)
  LEFT JOIN reviews r ON r.review_id = CONVERT(p.ref, UNSIGNED) AND CONVERT(r.review_id, CHAR) = p.ref AND r.device_id = p.device_id
  LEFT JOIN settlements s ON s.device_id = r.device_id AND s.close_event_id = r.close_event_id
 WHERE p.kind = 'review'
 ORDER BY p.device_id, p.product_id, p.version`

// reviewMovements checks those of one of the two tables.
func (a *auditor) reviewMovements(table string) func(context.Context) error {
	return func(ctx context.Context) error { return a.eachReviewMovement(ctx, table) }
}

func (a *auditor) eachReviewMovement(ctx context.Context, table string) error {
	m := movement{archived: table != movementTables.table}
	var status, event sql.Null[string]
	var order sql.Null[int64]
	var onOrder, moved int64
	row := []any{&m.device, &m.product, &m.version, &m.ref, &status, &event, &order, &onOrder, &moved}
	return a.each(ctx, fmt.Sprintf(readReviewMovements, table), row, func() {
		a.i4.Rows++
		switch {
		case !status.Valid:
			a.i4.violated("%s: no review=%s", m.key(), m.ref)
		case status.V != "accepted" && status.V != "amended":
			a.i1.violated("%s: review=%s is %s, which moves nothing", m.key(), m.ref, status.V)
		case event.Valid:
			a.checkCorrected(corrected{m.device, event.V, m.product}, order, onOrder, moved)
		}
	})
}

var readReviewLines = `
SELECT p.device_id, s.close_event_id, p.product_id, s.order_id, ` + unitsOnOrder + `, ` + unitsMoved + `
  FROM %s p FORCE INDEX (PRIMARY)
  JOIN %s o ON o.order_id = p.order_id AND o.device_id = p.device_id
  JOIN settlements s ON s.device_id = o.device_id AND s.close_event_id = o.close_event_id AND s.order_id = o.order_id
 WHERE p.origin = 'review'
 ORDER BY p.device_id, p.order_id, p.line`

// reviewLines checks those of one table of lines, whose orders lie in the other one.
func (a *auditor) reviewLines(lines, orders string) func(context.Context) error {
	query := fmt.Sprintf(readReviewLines, lines, orders)
	return func(ctx context.Context) error {
		var c corrected
		var order sql.Null[int64]
		var onOrder, moved int64
		row := []any{&c.device, &c.event, &c.product, &order, &onOrder, &moved}
		return a.each(ctx, query, row, func() {
			a.i3.Rows++
			a.checkCorrected(c, order, onOrder, moved)
		})
	}
}

// checkCorrected compares all lines of a product with all its movements, once for each product of an event. Without an order
// the event is a restock door's, which can only have brought something.
func (a *auditor) checkCorrected(c corrected, order sql.Null[int64], onOrder, moved int64) {
	if a.apart[c] || order.Valid && onOrder == -moved || !order.Valid && moved >= 0 {
		return
	}
	a.apart[c] = true
	where := "which has no order"
	if order.Valid {
		where = fmt.Sprintf("order=%d says %d", order.V, onOrder)
	}
	a.i3.violated("settlements device=%d event=%s: %d of product %d moved, %s", c.device, c.event, moved, c.product, where)
}

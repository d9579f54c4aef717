package audit

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

const (
	reservationHeld = "held"
	reservationUsed = "used"
)

var reservationStates = []string{reservationHeld, reservationUsed, "returned", "expired"}

const readReservations = `
SELECT r.device_id, r.reservation_id, r.state,
       (SELECT SUM(l.left_quantity) FROM reservation_lines l WHERE l.device_id = r.device_id AND l.reservation_id = r.reservation_id),
       r.until_at > DATE_ADD('1970-01-01', INTERVAL COALESCE((SELECT m.version FROM marks m WHERE m.name = 'reservations'), 0) * 1000 MICROSECOND)
  FROM reservations r FORCE INDEX (PRIMARY)
 ORDER BY r.device_id, r.reservation_id`

// reservations checks that what is left fits the state, and that every settlement looks for what is held: the mark tells until when.
func (a *auditor) reservations(ctx context.Context) error {
	var device, id int64
	var state string
	var left sql.Null[int64]
	var unseen bool
	return a.each(ctx, readReservations, []any{&device, &id, &state, &left, &unseen}, func() {
		a.i4.Rows++
		key := fmt.Sprintf("reservations device=%d reservation=%d", device, id)
		switch {
		case !slices.Contains(reservationStates, state):
			a.i4.violated("%s: state %q is none that is ever written", key, state)
		case !left.Valid:
			a.i4.violated("%s: no line", key)
		case state == reservationHeld && left.V == 0:
			a.i4.violated("%s: held, but nothing is left of it", key)
		case state == reservationUsed && left.V != 0:
			a.i4.violated("%s: used, but %d units are left", key, left.V)
		case state == reservationHeld && unseen:
			a.i4.violated("%s: held for longer than marks name=reservations says", key)
		}
	})
}

const readReservationLines = `
SELECT l.device_id, l.reservation_id, l.product_id, r.device_id IS NULL, r.state = 'held' AND l.left_quantity > 0 AND t.device_id IS NULL
  FROM reservation_lines l FORCE INDEX (PRIMARY)
  LEFT JOIN reservations r ON r.device_id = l.device_id AND r.reservation_id = l.reservation_id
  LEFT JOIN reserved_stock t ON t.device_id = l.device_id AND t.product_id = l.product_id
 ORDER BY l.device_id, l.reservation_id, l.product_id`

func (a *auditor) reservationLines(ctx context.Context) error {
	var device, id, product int64
	var orphan bool
	var uncounted sql.Null[bool]
	return a.each(ctx, readReservationLines, []any{&device, &id, &product, &orphan, &uncounted}, func() {
		a.i4.Rows++
		key := fmt.Sprintf("reservation_lines device=%d reservation=%d product=%d", device, id, product)
		switch {
		case orphan:
			a.i4.violated("%s: no reservation", key)
		case uncounted.V:
			a.i4.violated("%s: held, but no reserved_stock row", key)
		}
	})
}

const readReservedStock = `
SELECT t.device_id, t.product_id, t.reserved, COALESCE((
         SELECT SUM(l.left_quantity) FROM reservations r
           JOIN reservation_lines l ON l.device_id = r.device_id AND l.reservation_id = r.reservation_id AND l.product_id = t.product_id
          WHERE r.device_id = t.device_id AND r.state = 'held'), 0)
  FROM reserved_stock t FORCE INDEX (PRIMARY)
 ORDER BY t.device_id, t.product_id`

// reservedStock checks that what is reserved is what held reservations have left.
func (a *auditor) reservedStock(ctx context.Context) error {
	var device, product, reserved, left int64
	return a.each(ctx, readReservedStock, []any{&device, &product, &reserved, &left}, func() {
		a.i4.Rows++
		if reserved != left {
			a.i4.violated("reserved_stock device=%d product=%d: reserved %d, held reservations have %d left", device, product, reserved, left)
		}
	})
}

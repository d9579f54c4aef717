package audit_test

import "testing"

// Some violations are no longer what their invariant says most of: a second order isn't lost, a vanished settlement no drift.
func TestViolationsThatAreDoubledOrLost(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	cases := []struct {
		name          string
		sql           []string
		doubled, lost int64
	}{
		{"a copied order with its lines", []string{
			`INSERT INTO orders (order_id, device_id, close_event_id, user_id, status, currency, total_minor, created_at)
				SELECT 199, device_id, close_event_id, user_id, status, currency, total_minor, created_at FROM orders WHERE order_id = 102`,
			`INSERT INTO order_lines (device_id, order_id, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence)
				SELECT device_id, 199, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence
				FROM order_lines WHERE order_id = 102`,
		}, 1, 0},
		{"settlement, order and lines are gone", []string{
			"DELETE FROM settlements WHERE close_event_id = 'short'",
			"DELETE FROM order_lines WHERE order_id = 102",
			"DELETE FROM orders WHERE order_id = 102",
		}, 0, 2}, // the goods, and the session that had closed
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := books{t, b.db}
			b.fill()
			for _, statement := range c.sql {
				b.exec(statement)
			}
			var total, doubled, lost int64
			for _, check := range run(t, b.db).Checks {
				total, doubled, lost = total+check.Total, doubled+check.Doubled, lost+check.Lost
			}
			if doubled != c.doubled || lost != c.lost || total != doubled+lost {
				t.Errorf("%d violations, doubled %d, lost %d; want doubled %d, lost %d and no other", total, doubled, lost, c.doubled, c.lost)
			}
		})
	}
}

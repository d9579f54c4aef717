package audit_test

import "testing"

func TestOutcomesAndTheirRows(t *testing.T) {
	findAll(t, []plant{
		{
			name: "settled, but the order is gone",
			sql:  []string{"DELETE FROM orders WHERE order_id = 103"},
			want: []string{
				"I1 settlements device=1001 event=before-count: outcome settled, no order=103 of this event",
				"I4 order_lines device=1001 order=103 line=1: no such order",
				`I5 settlements device=1001 event=before-count: receipt orderId "103", rows say ""`,
				"I5 settlements device=1001 event=before-count: receipt totalMinor 500, rows say 0",
				"I5 settlements device=1001 event=before-count: receipt lines [product 7: 1 x 500 = 500], rows say []",
			},
		},
		{
			name: "settled, but names no order",
			sql:  []string{"UPDATE settlements SET order_id = NULL WHERE close_event_id = 'short'"},
			want: []string{
				"I1 settlements device=1001 event=short: outcome settled, no order",
				"I1 orders order=102: the settlement of device=1001 event=short names no order",
				"I3 stock_movements device=1001 product=8 version=3: 3 taken, order lines of event=short say 0",
				`I5 settlements device=1001 event=short: receipt orderId "102", rows say ""`,
				"I5 settlements device=1001 event=short: receipt totalMinor 900, rows say 0",
				"I5 settlements device=1001 event=short: receipt lines [product 8: 3 x 300 = 900], rows say []",
			},
		},
		{
			name: "settled, but the order has no line",
			sql:  []string{"DELETE FROM order_lines WHERE order_id = 103"},
			want: []string{
				"I1 settlements device=1001 event=before-count: outcome settled, no sure line on order=103",
				"I1 orders order=103: no line",
				"I3 stock_movements device=1001 product=7 version=6: 1 taken, order lines of event=before-count say 0",
				"I3 orders order=103: total 500, lines 0",
				`I5 settlements device=1001 event=before-count: receipt orderId "103", rows say ""`,
				"I5 settlements device=1001 event=before-count: receipt totalMinor 500, rows say 0",
				"I5 settlements device=1001 event=before-count: receipt lines [product 7: 1 x 500 = 500], rows say []",
			},
		},
		{
			name: "settled, but the order has only lines of a review",
			sql:  []string{"UPDATE order_lines SET origin = 'review' WHERE order_id = 103"},
			want: []string{
				"I1 settlements device=1001 event=before-count: outcome settled, no sure line on order=103",
				"I3 stock_movements device=1001 product=7 version=6: 1 taken, order lines of event=before-count say 0",
				`I5 settlements device=1001 event=before-count: receipt orderId "103", rows say ""`,
				"I5 settlements device=1001 event=before-count: receipt totalMinor 500, rows say 0",
				"I5 settlements device=1001 event=before-count: receipt lines [product 7: 1 x 500 = 500], rows say []",
			},
		},
		{
			name: "settled, but the order waits for a review that nobody opened",
			sql:  []string{"UPDATE orders SET status = 'review' WHERE order_id = 103"},
			want: []string{
				"I1 settlements device=1001 event=before-count: outcome settled, order=103 waits for a review that isn't there",
			},
		},
		{
			name: "empty, but names an order of another event",
			sql:  []string{"UPDATE settlements SET order_id = 103 WHERE close_event_id = 'nothing'"},
			want: []string{
				"I1 settlements device=1001 event=nothing: outcome empty, no order=103 of this event",
				"I1 settlements device=1001 event=nothing: outcome empty, order=103",
			},
		},
		{
			name: "empty, but something was sold",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1001, 9, 2, 'sale', -1, -1, 3, 'nothing', NULL, NULL, NOW())",
				"UPDATE device_stock SET stock = 3, version = 2 WHERE device_id = 1001 AND product_id = 9",
			},
			want: []string{
				"I1 settlements device=1001 event=nothing: outcome empty, but product 9 was sold",
			},
		},
		{
			name: "empty, but has an order",
			sql:  []string{"INSERT INTO orders VALUES (199, 1001, 'nothing', 42, NULL, 'open', 'CNY', 0, NOW())"},
			want: []string{
				"I1 orders order=199: the settlement of device=1001 event=nothing names no order",
				"I1 orders order=199: no line",
			},
		},
		{
			name: "restocked, but waits for review",
			sql:  []string{"INSERT INTO reviews VALUES (299, 1001, 'staff', NULL, NULL, '', '', '', 'open', '', '', NULL, NOW())"},
			want: []string{
				"I1 settlements device=1001 event=staff: outcome restocked, 1 reviews",
			},
		},
		{
			name: "review without a review",
			sql:  []string{"DELETE FROM reviews WHERE review_id = 201"},
			want: []string{
				"I1 settlements device=1001 event=doubtful: outcome review, no review",
				"I1 settlements device=1001 event=doubtful: outcome review, order=104 waits for a review that isn't there",
			},
		},
		{
			name: "review, but the order has no line",
			sql:  []string{"DELETE FROM order_lines WHERE order_id = 106", "UPDATE orders SET total_minor = 0 WHERE order_id = 106"},
			want: []string{
				"I1 settlements device=1001 event=accepted: outcome review, no line on order=106",
				"I1 orders order=106: no line",
				"I3 settlements device=1001 event=accepted: -1 of product 11 moved, order=106 says 0",
			},
		},
		{
			name: "an outcome that doesn't exist",
			sql:  []string{"UPDATE settlements SET outcome = 'lost' WHERE close_event_id = 'nothing'"},
			want: []string{
				"I1 settlements device=1001 event=nothing: outcome lost, which is none that is ever written",
				"I5 settlements device=1001 event=nothing: receipt outcome empty, rows say lost",
			},
		},
		{
			name: "two orders for one event",
			sql: []string{
				"INSERT INTO orders VALUES (199, 1001, 'short', 42, NULL, 'open', 'CNY', 0, NOW())",
				"INSERT INTO order_lines VALUES (1001, 199, 1, 'review', 8, 0, 300, 0, '')",
			},
			want: []string{
				"I1 orders order=199: the settlement of device=1001 event=short names order=102",
			},
		},
		{
			name: "an order without a settlement",
			sql: []string{
				"INSERT INTO orders VALUES (199, 1001, 'never', 42, NULL, 'open', 'CNY', 300, NOW())",
				"INSERT INTO order_lines VALUES (1001, 199, 1, 'settlement', 8, 1, 300, 300, '')",
			},
			want: []string{
				"I1 orders order=199: no settlement of device=1001 event=never",
				"I3 order_lines device=1001 order=199 line=1: 0 movements of product 8 for event=never, not one",
			},
		},
		{
			name: "a lost settlement",
			sql:  []string{"DELETE FROM settlements WHERE close_event_id = 'short'"},
			want: []string{
				"I1 orders order=102: no settlement of device=1001 event=short",
				"I4 stock_movements device=1001 product=8 version=3: no settlement of event=short",
				"I4 door_sessions session=door-1: closed, but no settlement of device=1001 event=short is of it",
			},
		},
		{
			name: "a conflict without a review",
			sql:  []string{"DELETE FROM reviews WHERE review_id = 206"},
			want: []string{
				"I1 settlement_conflicts device=1001 event=two-products digest=6292C8B17C54: 0 reviews, not one",
			},
		},
		{
			name: "a conflict with two reviews",
			sql: []string{`INSERT INTO reviews SELECT 299, device_id, close_event_id, order_id, conflict_digest, '', '', '', 'open', '', '', NULL, created_at
				FROM reviews WHERE review_id = 206`},
			want: []string{
				"I1 settlement_conflicts device=1001 event=two-products digest=6292C8B17C54: 2 reviews, not one",
			},
		},
	})
}

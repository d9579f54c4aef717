package audit_test

import "testing"

func (b books) decided(review int64, status string) {
	b.t.Helper()
	b.exec("UPDATE reviews SET status = ?, note = 'seen', resolved_by = 'ann', resolved_at = ? WHERE review_id = ?", status, settledAt, review)
}

func (b books) corrections(order int64, first int, lines ...[3]int64) {
	b.t.Helper()
	for i, l := range lines { // product, units, price
		b.exec("INSERT INTO order_lines VALUES (1003, ?, ?, 'review', ?, ?, ?, ?, '{}')", order, first+i, l[0], l[1], l[2], l[1]*l[2])
		b.exec("UPDATE orders SET total_minor = total_minor + ? WHERE order_id = ?", l[1]*l[2], order)
	}
}

// corrected fills cabinet 1003, in which people decided a review of each kind.
func (b books) corrected() {
	b.exec("INSERT INTO restocks VALUES (1003, 'restock-1', '', 'ann', ?)", settledAt)
	b.movement(1003, 7, 1, "restock", 3, 3, 3, "restock-1")
	b.movement(1003, 7, 2, "sale", -2, -2, 1, "reopened")
	b.movement(1003, 7, 3, "sale", -1, -1, 0, "nothing-after-all")
	b.movement(1003, 7, 4, "review", 1, 1, 1, "210")
	b.movement(1003, 7, 5, "review", 1, 1, 2, "211")
	b.movement(1003, 7, 6, "review", -5, -2, 0, "212")
	b.exec("INSERT INTO discrepancies VALUES (1003, 7, 6, 'shortfall', 3, '212', ?)", settledAt)
	b.stock(1003, 7, 0, 6, nil)
	b.exec("INSERT INTO stocktakes VALUES (1003, 'count-1', 50, 0, 'ann', ?)", settledAt)
	b.movement(1003, 8, 1, "stocktake", 0, 0, 0, "count-1")
	b.movement(1003, 8, 2, "review", -1, 0, 0, "210")
	b.place(1003, 8, 2, 0, 49)
	b.stock(1003, 8, 0, 2, 50)
	b.movement(1003, 9, 1, "restock", 4, 4, 4, "staff-amended")
	b.movement(1003, 9, 2, "review", -1, -1, 3, "213")
	b.movement(1003, 9, 3, "review", 2, 2, 5, "214")
	b.stock(1003, 9, 5, 3, nil)

	b.settled(1003, "reopened", 110, "open", line(7, 2, 500))
	b.review(210, 1003, "reopened", 110, nil)
	b.decided(210, "amended")
	b.corrections(110, 2, [3]int64{7, -1, 500}, [3]int64{8, 1, 300})
	b.settled(1003, "nothing-after-all", 111, "void", line(7, 1, 500))
	b.review(211, 1003, "nothing-after-all", 111, nil)
	b.decided(211, "amended")
	b.corrections(111, 2, [3]int64{7, -1, 500})

	b.settlement(1003, "something-after-all", "empty", 0)
	b.exec("UPDATE settlements SET order_id = 112 WHERE close_event_id = 'something-after-all'")
	b.order(1003, "something-after-all", 112, "open")
	b.exec("INSERT INTO settlement_conflicts VALUES (1003, 'something-after-all', ?, '{}', ?)", digestOf("another content"), settledAt)
	b.review(212, 1003, "something-after-all", 112, digestOf("another content"))
	b.decided(212, "amended")
	b.corrections(112, 1, [3]int64{7, 5, 500})

	b.settlement(1003, "staff-amended", "review", 0)
	b.review(213, 1003, "staff-amended", nil, nil)
	b.decided(213, "amended")
	b.review(214, 1003, "staff-amended", nil, nil)
	b.decided(214, "accepted")
}

func TestCorrections(t *testing.T) {
	findAllIn(t, func(b books) { b.fill(); b.corrected() }, []plant{
		{
			name: "a line that a review added without moving stock",
			sql: []string{
				"INSERT INTO order_lines VALUES (1003, 110, 4, 'review', 9, 1, 250, 250, '')", "UPDATE orders SET total_minor = 1050 WHERE order_id = 110",
			},
			want: []string{"I3 settlements device=1003 event=reopened: 0 of product 9 moved, order=110 says 1"},
		},
		{
			name: "a line given back that went missing",
			sql:  []string{"DELETE FROM order_lines WHERE order_id = 110 AND line = 2", "UPDATE orders SET total_minor = 1300 WHERE order_id = 110"},
			want: []string{"I3 settlements device=1003 event=reopened: -1 of product 7 moved, order=110 says 2"},
		},
		{
			name: "another quantity on the line",
			sql: []string{
				"UPDATE order_lines SET quantity = -2, amount_minor = -1000 WHERE order_id = 110 AND line = 2",
				"UPDATE orders SET total_minor = 300 WHERE order_id = 110",
			},
			want: []string{"I3 settlements device=1003 event=reopened: -1 of product 7 moved, order=110 says 0"},
		},
		{
			name: "a total that did not follow",
			sql:  []string{"UPDATE orders SET total_minor = 1000 WHERE order_id = 110"},
			want: []string{"I3 orders order=110: total 1000, lines 800"},
		},
		{
			name: "a movement that did more to the books than happened",
			sql: []string{
				"UPDATE stock_movements SET delta = 3, balance = 6 WHERE device_id = 1003 AND product_id = 9 AND version = 3",
				"UPDATE device_stock SET stock = 6 WHERE device_id = 1003 AND product_id = 9",
			},
			want: []string{"I3 stock_movements device=1003 product=9 version=3: quantity 2, delta 3, shortfall 0"},
		},
		{
			name: "units that the books lacked, and no shortfall",
			sql:  []string{"DELETE FROM discrepancies WHERE device_id = 1003"},
			want: []string{"I3 stock_movements device=1003 product=7 version=6: quantity -5, delta -2, shortfall 0"},
		},
		{
			name: "a movement of nothing",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1003, 9, 4, 'review', 0, 0, 5, '214', NULL, NULL, NOW())",
				"UPDATE device_stock SET version = 4 WHERE device_id = 1003 AND product_id = 9",
			},
			want: []string{"I3 stock_movements device=1003 product=9 version=4: quantity 0, delta 0, shortfall 0"},
		},
		{
			name: "a movement of no review",
			sql:  []string{"UPDATE stock_movements SET ref = '214x' WHERE ref = '214'"},
			want: []string{"I4 stock_movements device=1003 product=9 version=3: no review=214x"},
		},
		{
			name: "a movement of another cabinet's review",
			sql:  []string{"UPDATE stock_movements SET ref = '205' WHERE ref = '214'"},
			want: []string{"I4 stock_movements device=1003 product=9 version=3: no review=205"},
		},
		{
			name: "a movement of a review that was waived",
			sql:  []string{"UPDATE reviews SET status = 'waived' WHERE review_id = 214"},
			want: []string{"I1 stock_movements device=1003 product=9 version=3: review=214 is waived, which moves nothing"},
		},
		{
			name: "more charged than lines say, without an order",
			sql: []string{
				"UPDATE stock_movements SET quantity = -5 WHERE ref = '213'",
				"INSERT INTO discrepancies VALUES (1003, 9, 2, 'shortfall', 4, '213', NOW())",
			},
			want: []string{
				"I3 stock_movements device=1003 product=9 version=2: quantity -5, delta -1, shortfall 4",
				"I3 stock_movements device=1003 product=9 version=3: quantity 2, delta 2, shortfall 0",
			},
		},
		{
			name: "stock charged without an order",
			sql: []string{
				"DELETE FROM order_lines WHERE order_id = 112", "DELETE FROM orders WHERE order_id = 112",
				"UPDATE settlements SET order_id = NULL WHERE order_id = 112", "UPDATE reviews SET order_id = NULL WHERE order_id = 112",
			},
			want: []string{"I3 settlements device=1003 event=something-after-all: -5 of product 7 moved, which has no order"},
		},
		{
			name: "a sure line on the order of an empty event",
			sql:  []string{"UPDATE order_lines SET origin = 'settlement' WHERE order_id = 112"},
			want: []string{
				"I1 settlements device=1003 event=something-after-all: outcome empty, order=112",
				"I3 order_lines device=1003 order=112 line=1: 0 movements of product 7 for event=something-after-all, not one",
				`I5 settlements device=1003 event=something-after-all: receipt orderId "", rows say "112"`,
				"I5 settlements device=1003 event=something-after-all: receipt totalMinor 0, rows say 2500",
				"I5 settlements device=1003 event=something-after-all: receipt lines [], rows say [product 7: 5 x 500 = 2500]",
			},
		},
		{
			name: "a restock door with an order",
			sql:  []string{"UPDATE settlements SET outcome = 'restocked' WHERE close_event_id = 'something-after-all'"},
			want: []string{
				"I1 settlements device=1003 event=something-after-all: outcome restocked, order=112",
				"I5 settlements device=1003 event=something-after-all: receipt outcome empty, rows say restocked",
			},
		},
		{
			name: "an order that waits although its review is decided",
			sql:  []string{"UPDATE orders SET status = 'review' WHERE order_id = 110"},
			want: []string{"I1 settlements device=1003 event=reopened: outcome settled, order=110 waits for a review that isn't there"},
		},
		{
			name: "an order that goes on while its review is open",
			sql:  []string{"UPDATE reviews SET status = 'open' WHERE review_id = 211"},
			want: []string{
				"I1 settlements device=1003 event=nothing-after-all: outcome settled, order=111 is void while its review is open",
				"I1 stock_movements device=1003 product=7 version=5: review=211 is open, which moves nothing",
			},
		},
		{
			name: "nothing left, and open",
			sql:  []string{"UPDATE orders SET status = 'open' WHERE order_id = 111"},
			want: []string{"I1 settlements device=1003 event=nothing-after-all: outcome settled, order=111 is open with nothing left on it"},
		},
		{
			name: "something left, and void",
			sql:  []string{"UPDATE orders SET status = 'void' WHERE order_id = 110"},
			want: []string{"I1 settlements device=1003 event=reopened: outcome settled, order=110 is void with something left on it"},
		},
	})
}

package audit_test

import "testing"

func TestNegativesAndOrphans(t *testing.T) {
	findAll(t, []plant{
		{
			name:      "negative stock",
			unchecked: true,
			sql:       []string{"UPDATE device_stock SET stock = -1 WHERE device_id = 1001 AND product_id = 10"},
			want: []string{
				"I2 device_stock device=1001 product=10: stock -1, version 0, but no movement",
				"I4 device_stock device=1001 product=10: stock -1",
			},
		},
		{
			name:      "a negative balance",
			unchecked: true,
			sql: []string{
				"DELETE FROM discrepancies WHERE product_id = 8",
				"UPDATE stock_movements SET delta = -3, balance = -1 WHERE device_id = 1001 AND product_id = 8 AND version = 3",
				"UPDATE device_stock SET stock = -1 WHERE device_id = 1001 AND product_id = 8",
			},
			want: []string{
				"I3 stock_movements device=1001 product=8 version=3: quantity -3, delta -3, shortfall 0",
				"I4 stock_movements device=1001 product=8 version=3: balance -1",
				"I4 device_stock device=1001 product=8: stock -1",
			},
		},
		{
			name: "a closed door without its settlement",
			sql:  []string{"UPDATE settlements SET session_id = NULL WHERE close_event_id = 'short'"},
			want: []string{
				"I4 door_sessions session=door-1: closed, but no settlement of device=1001 event=short is of it",
			},
		},
		{
			name: "an expired door with a settlement",
			sql:  []string{"UPDATE door_sessions SET settled_event_id = 'nothing' WHERE session_id = 'door-2'"},
			want: []string{
				"I4 door_sessions session=door-2: not closed, but names event=nothing",
			},
		},
		{
			name: "a line without an order",
			sql:  []string{"INSERT INTO order_lines VALUES (1001, 199, 1, 'settlement', 8, 1, 300, 300, '')"},
			want: []string{
				"I4 order_lines device=1001 order=199 line=1: no such order",
			},
		},
		{
			name: "a line of another cabinet's order",
			sql:  []string{"INSERT INTO order_lines VALUES (1002, 101, 3, 'review', 8, 1, 300, 300, '')"},
			want: []string{
				"I4 order_lines device=1002 order=101 line=3: no such order",
			},
		},
		{
			name: "movements without a stock row",
			sql:  []string{"DELETE FROM device_stock WHERE device_id = 1001 AND product_id = 9"},
			want: []string{
				"I4 stock_movements device=1001 product=9: no device_stock row",
			},
		},
		{
			name: "a sale without a settlement",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1002, 7, 3, 'sale', -1, -1, 4, 'never', NULL, NULL, NOW())",
				"UPDATE device_stock SET stock = 4, version = 3 WHERE device_id = 1002",
			},
			want: []string{
				"I4 stock_movements device=1002 product=7 version=3: no settlement of event=never",
			},
		},
		{
			name: "restock movements without a restock",
			sql:  []string{"DELETE FROM restocks WHERE device_id = 1002"},
			want: []string{
				"I4 stock_movements device=1002 product=7 version=1: no restock and no restocked settlement restock-1",
			},
		},
		{
			name: "a restock movement of a sale",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1002, 7, 3, 'restock', 1, 1, 6, 'two-products', NULL, NULL, NOW())",
				"UPDATE device_stock SET stock = 6, version = 3 WHERE device_id = 1002",
			},
			want: []string{
				"I4 stock_movements device=1002 product=7 version=3: no restock and no restocked settlement two-products",
			},
		},
		{
			name: "a restock without movements",
			sql:  []string{"INSERT INTO restocks VALUES (1002, 'restock-2', '', 'ann', NOW())"},
			want: []string{
				"I4 restocks device=1002 restock=restock-2: no movement",
			},
		},
		{
			name: "a movement of a kind that doesn't exist",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1002, 7, 3, 'theft', 0, 0, 5, '', NULL, NULL, NOW())",
				"UPDATE device_stock SET version = 3 WHERE device_id = 1002",
			},
			want: []string{
				`I4 stock_movements device=1002 product=7 version=3: kind "theft" is none that is ever written`,
			},
		},
		{
			name: "a review without a settlement",
			sql:  []string{"INSERT INTO reviews VALUES (299, 1001, 'never', NULL, NULL, '', '', '', 'open', '', '', NULL, NOW())"},
			want: []string{
				"I4 reviews review=299: no settlement of device=1001 event=never",
			},
		},
		{
			name: "a review of another event's order",
			sql:  []string{"UPDATE reviews SET order_id = 105 WHERE review_id = 201"},
			want: []string{
				"I4 reviews review=201: no order=105 of device=1001 event=doubtful",
			},
		},
		{
			name: "a review without its conflict",
			sql:  []string{"DELETE FROM settlement_conflicts"},
			want: []string{
				"I4 reviews review=206: no such conflict of device=1001 event=two-products",
			},
		},
		{
			name: "a conflict without a settlement",
			sql: []string{
				"INSERT INTO settlement_conflicts VALUES (1001, 'never', UNHEX(SHA2('x', 256)), '{}', NOW())",
				"INSERT INTO reviews VALUES (299, 1001, 'never', NULL, UNHEX(SHA2('x', 256)), '', '', '', 'open', '', '', NULL, NOW())",
			},
			want: []string{
				"I4 reviews review=299: no settlement of device=1001 event=never",
				"I4 settlement_conflicts device=1001 event=never digest=2D711642B726: no settlement",
			},
		},
		{
			name: "a discrepancy without a movement",
			sql:  []string{"INSERT INTO discrepancies VALUES (1001, 9, 5, 'shortfall', 1, 'short', NOW())"},
			want: []string{
				"I4 discrepancies device=1001 product=9 version=5: no such movement",
			},
		},
		{
			name: "a discrepancy of another event",
			sql:  []string{"UPDATE discrepancies SET ref = 'two-products' WHERE product_id = 8"},
			want: []string{
				"I4 discrepancies device=1001 product=8 version=3: ref two-products, the movement's is short",
			},
		},
		{
			name: "a shortfall of a restock",
			sql:  []string{"INSERT INTO discrepancies VALUES (1001, 9, 1, 'shortfall', 1, 'staff-doubtful', NOW())"},
			want: []string{
				"I3 stock_movements device=1001 product=9 version=1: quantity 4, delta 4, shortfall 1",
				"I4 discrepancies device=1001 product=9 version=1: a shortfall of a restock",
			},
		},
	})
}

package audit_test

import "testing"

func TestLedger(t *testing.T) {
	findAll(t, []plant{
		{
			name: "stock changed without a movement",
			sql:  []string{"UPDATE device_stock SET stock = 12 WHERE device_id = 1001 AND product_id = 7"},
			want: []string{
				"I2 device_stock device=1001 product=7: stock 12, last balance 11",
			},
		},
		{
			name: "version raised without a movement",
			sql:  []string{"UPDATE device_stock SET version = 8 WHERE device_id = 1001 AND product_id = 7"},
			want: []string{
				"I2 device_stock device=1001 product=7: version 8, last movement 7",
			},
		},
		{
			name: "a row without movements isn't empty",
			sql:  []string{"UPDATE device_stock SET stock = 2 WHERE device_id = 1001 AND product_id = 10"},
			want: []string{
				"I2 device_stock device=1001 product=10: stock 2, version 0, but no movement",
			},
		},
		{
			name: "a gap in the middle",
			sql:  []string{"DELETE FROM stock_movements WHERE device_id = 1001 AND product_id = 7 AND version = 3"},
			want: []string{
				"I2 stock_movements device=1001 product=7 version=4: follows version 2",
				"I2 stock_movements device=1001 product=7 version=4: balance 12, but 8 before it and delta -1",
				"I2 device_stock device=1001 product=7: stock 11, sum of deltas 6",
			},
		},
		{
			name: "a gap at the beginning",
			sql:  []string{"DELETE FROM stock_movements WHERE device_id = 1001 AND product_id = 8 AND version = 1"},
			want: []string{
				"I2 stock_movements device=1001 product=8 version=2: follows version 0",
				"I2 stock_movements device=1001 product=8 version=2: balance 2, but 0 before it and delta -1",
				"I2 device_stock device=1001 product=8: stock 0, sum of deltas -3",
			},
		},
		{
			name: "the last movement is gone",
			sql:  []string{"DELETE FROM stock_movements WHERE device_id = 1001 AND product_id = 9"},
			want: []string{
				"I2 device_stock device=1001 product=9: stock 4, version 1, but no movement",
			},
		},
		{
			name: "a balance that doesn't follow",
			sql:  []string{"UPDATE stock_movements SET balance = 14 WHERE device_id = 1001 AND product_id = 7 AND version = 3"},
			want: []string{
				"I2 stock_movements device=1001 product=7 version=3: balance 14, but 8 before it and delta 5",
				"I2 stock_movements device=1001 product=7 version=4: balance 12, but 14 before it and delta -1",
			},
		},
		{
			name: "the last balance",
			sql:  []string{"UPDATE stock_movements SET balance = 4 WHERE device_id = 1002 AND product_id = 7 AND version = 2"},
			want: []string{
				"I2 stock_movements device=1002 product=7 version=2: balance 4, but 6 before it and delta -1",
				"I2 device_stock device=1002 product=7: stock 5, last balance 4",
			},
		},
	})
}

func TestSums(t *testing.T) {
	findAll(t, []plant{
		{
			name: "an order total",
			sql:  []string{"UPDATE orders SET total_minor = 1301 WHERE order_id = 101"},
			want: []string{
				"I3 orders order=101: total 1301, lines 1300",
			},
		},
		{
			name: "a line amount",
			sql: []string{
				"UPDATE order_lines SET amount_minor = 499 WHERE order_id = 106",
				"UPDATE orders SET total_minor = 499 WHERE order_id = 106",
			},
			want: []string{
				"I3 order_lines device=1001 order=106 line=1: amount 499, but 1 at 500",
			},
		},
		{
			name: "an origin that doesn't exist",
			sql:  []string{"UPDATE order_lines SET origin = 'gift' WHERE order_id = 106"},
			want: []string{
				`I3 order_lines device=1001 order=106 line=1: origin "gift" is none that is ever written`,
			},
		},
		{
			name: "more taken than was sold",
			sql: []string{
				"UPDATE stock_movements SET quantity = -2, delta = -2, balance = 4 WHERE device_id = 1002 AND version = 2",
				"UPDATE device_stock SET stock = 4 WHERE device_id = 1002",
			},
			want: []string{
				"I3 stock_movements device=1002 product=7 version=2: 2 taken, order lines of event=two-products say 1",
			},
		},
		{
			name: "a line that took nothing from the stock",
			sql: []string{
				"DELETE FROM stock_movements WHERE device_id = 1002 AND version = 2",
				"UPDATE device_stock SET stock = 6, version = 1 WHERE device_id = 1002",
			},
			want: []string{
				"I3 order_lines device=1002 order=107 line=1: 0 movements of product 7 for event=two-products, not one",
			},
		},
		{
			name: "a sale booked twice",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1002, 7, 3, 'sale', -1, -1, 4, 'two-products', NULL, NULL, NOW())",
				"UPDATE device_stock SET stock = 4, version = 3 WHERE device_id = 1002",
			},
			want: []string{
				"I3 order_lines device=1002 order=107 line=1: 2 movements of product 7 for event=two-products, not one",
			},
		},
		{
			name: "a product sold that is on no line",
			sql: []string{
				"INSERT INTO stock_movements VALUES (1001, 9, 2, 'sale', -1, -1, 3, 'short', NULL, NULL, NOW())",
				"UPDATE device_stock SET stock = 3, version = 2 WHERE device_id = 1001 AND product_id = 9",
			},
			want: []string{
				"I3 stock_movements device=1001 product=9 version=2: 1 taken, order lines of event=short say 0",
			},
		},
		{
			name: "a shortfall that nobody recorded",
			sql:  []string{"DELETE FROM discrepancies WHERE product_id = 8"},
			want: []string{
				"I3 stock_movements device=1001 product=8 version=3: quantity -3, delta -2, shortfall 0",
			},
		},
		{
			name: "a shortfall of another size",
			sql:  []string{"UPDATE discrepancies SET quantity = 2 WHERE product_id = 8"},
			want: []string{
				"I3 stock_movements device=1001 product=8 version=3: quantity -3, delta -2, shortfall 2",
			},
		},
		{
			name: "a shortfall of nothing",
			sql:  []string{"INSERT INTO discrepancies VALUES (1002, 7, 2, 'shortfall', 0, 'two-products', NOW())"},
			want: []string{
				"I3 stock_movements device=1002 product=7 version=2: quantity -1, delta -1, shortfall 0",
				"I3 discrepancies device=1002 product=7 version=2: quantity 0",
			},
		},
		{
			name: "a sale that adds to the stock",
			sql: []string{
				"UPDATE stock_movements SET delta = 1, balance = 7 WHERE device_id = 1002 AND version = 2",
				"UPDATE device_stock SET stock = 7 WHERE device_id = 1002",
			},
			want: []string{
				"I3 stock_movements device=1002 product=7 version=2: quantity -1, delta 1, shortfall 0",
			},
		},
		{
			name: "a restock that brought less than it says",
			sql: []string{
				"UPDATE stock_movements SET delta = 3, balance = 3 WHERE device_id = 1001 AND product_id = 9",
				"UPDATE device_stock SET stock = 3 WHERE device_id = 1001 AND product_id = 9",
			},
			want: []string{
				"I3 stock_movements device=1001 product=9 version=1: quantity 4, delta 3, shortfall 0",
			},
		},
	})
}

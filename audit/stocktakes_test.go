package audit_test

import "testing"

func TestStocktakes(t *testing.T) {
	findAll(t, []plant{
		{
			name: "a row that forgot its count",
			sql:  []string{"UPDATE device_stock SET counted_seq = NULL WHERE product_id = 12"},
			want: []string{
				"I2 device_stock device=1001 product=12: counted up to epoch=0, the last stock-take up to epoch=0 seq=20",
			},
		},
		{
			name: "a row that says it was counted under another controller",
			sql:  []string{"UPDATE device_stock SET counted_epoch = 1 WHERE product_id = 12"},
			want: []string{
				"I2 device_stock device=1001 product=12: counted up to epoch=1 seq=20, the last stock-take up to epoch=0 seq=20",
			},
		},
		{
			name: "a sale before the count that moved what was counted",
			sql: []string{
				"UPDATE stock_movements SET delta = -1, balance = 11 WHERE device_id = 1001 AND product_id = 7 AND version = 6",
				"UPDATE stock_movements SET balance = 10 WHERE device_id = 1001 AND product_id = 7 AND version = 7",
				"UPDATE device_stock SET stock = 10 WHERE device_id = 1001 AND product_id = 7",
			},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=6: quantity -1, delta -1, shortfall 0",
			},
		},
		{
			name: "a sale before the count with a shortfall",
			sql:  []string{"INSERT INTO discrepancies VALUES (1001, 7, 6, 'shortfall', 1, 'before-count', NOW())"},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=6: quantity -1, delta 0, shortfall 1",
			},
		},
		{
			name: "a sale after the count that moved nothing",
			sql:  []string{"UPDATE stock_movements SET seq = 21 WHERE device_id = 1001 AND product_id = 7 AND version = 6"},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=6: quantity -1, delta 0, shortfall 0",
			},
		},
		{
			name: "a sale without a seq that moved nothing",
			sql:  []string{"UPDATE stock_movements SET seq = NULL, seq_epoch = NULL WHERE device_id = 1001 AND product_id = 7 AND version = 6"},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=6: quantity -1, delta 0, shortfall 0",
			},
		},
		{
			name: "a new controller's sale that an old count swallowed",
			sql:  []string{"UPDATE stock_movements SET seq_epoch = 1 WHERE device_id = 1001 AND product_id = 7 AND version = 6"},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=6: quantity -1, delta 0, shortfall 0",
			},
		},
		{
			name: "a replaced controller's sale that moved what was counted since",
			sql: []string{
				"UPDATE stocktakes SET seq_epoch = 1, as_of_seq = NULL",
				"UPDATE device_stock SET counted_epoch = 1, counted_seq = NULL WHERE counted_seq = 20",
				"UPDATE stock_movements SET seq_epoch = 1 WHERE product_id = 12 AND seq = 22",
			},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=7: quantity -1, delta -1, shortfall 0",
			},
		},
		{
			name: "a count whose difference nobody recorded",
			sql:  []string{"DELETE FROM discrepancies WHERE kind = 'stocktake'"},
			want: []string{
				"I3 stock_movements device=1001 product=12 version=3: quantity -2, delta -2, but 10 counted as of epoch=0 seq=20 make it 0",
			},
		},
		{
			name: "a difference of another size",
			sql:  []string{"UPDATE discrepancies SET quantity = -3 WHERE kind = 'stocktake'"},
			want: []string{
				"I3 stock_movements device=1001 product=12 version=3: quantity -2, delta -2, but 7 counted as of epoch=0 seq=20 make it -3",
			},
		},
		{
			name: "a count of less than nothing",
			sql:  []string{"UPDATE discrepancies SET quantity = -12 WHERE kind = 'stocktake'"},
			want: []string{
				"I3 stock_movements device=1001 product=12 version=3: quantity -2, delta -2, but -2 counted as of epoch=0 seq=20 make it -12",
			},
		},
		{
			name: "a count that did another thing than it says",
			sql:  []string{"UPDATE stock_movements SET quantity = -1 WHERE product_id = 12 AND version = 3"},
			want: []string{
				"I3 stock_movements device=1001 product=12 version=3: quantity -1, delta -2, but 8 counted as of epoch=0 seq=20 make it -2",
			},
		},
		{
			name: "a count that goes back",
			sql: []string{
				"INSERT INTO stocktakes VALUES (1001, 'count-2', 19, 0, 'ann', NOW())",
				"INSERT INTO stock_movements VALUES (1001, 7, 8, 'stocktake', -1, -1, 10, 'count-2', NULL, NULL, NOW())",
				"UPDATE device_stock SET stock = 10, version = 8, counted_seq = 19 WHERE device_id = 1001 AND product_id = 7",
			},
			want: []string{
				"I3 stock_movements device=1001 product=7 version=8: counts up to epoch=0 seq=19, the count before it up to epoch=0 seq=20",
			},
		},
		{
			name: "a movement without its stock-take",
			sql: []string{
				"UPDATE stock_movements SET ref = 'never' WHERE product_id = 12 AND version = 3",
				"UPDATE discrepancies SET ref = 'never' WHERE product_id = 12 AND version = 3",
			},
			want: []string{
				"I2 device_stock device=1001 product=12: counted up to epoch=0 seq=20, the last stock-take up to epoch=0",
				"I4 stock_movements device=1001 product=12 version=3: no stock-take never",
			},
		},
		{
			name: "a stock-take without movements",
			sql:  []string{"INSERT INTO stocktakes VALUES (1002, 'count-1', NULL, 0, 'ann', NOW())"},
			want: []string{
				"I4 stocktakes device=1002 stocktake=count-1: no movement",
			},
		},
		{
			name: "a difference of a sale",
			sql:  []string{"UPDATE discrepancies SET kind = 'stocktake' WHERE product_id = 8"},
			want: []string{
				"I3 stock_movements device=1001 product=8 version=3: quantity -3, delta -2, shortfall 0",
				"I4 discrepancies device=1001 product=8 version=3: a stocktake of a sale",
			},
		},
		{
			name: "a shortfall of a count",
			sql:  []string{"INSERT INTO discrepancies VALUES (1001, 7, 5, 'shortfall', 1, 'count-1', NOW())"},
			want: []string{
				"I4 discrepancies device=1001 product=7 version=5: a shortfall of a stocktake",
			},
		},
		{
			name: "a difference of nothing",
			sql:  []string{"INSERT INTO discrepancies VALUES (1001, 7, 5, 'stocktake', 0, 'count-1', NOW())"},
			want: []string{
				"I3 discrepancies device=1001 product=7 version=5: quantity 0",
			},
		},
	})
}

func TestWriteoffs(t *testing.T) {
	findAll(t, []plant{
		{
			name: "a write-off that adds to the stock",
			sql: []string{
				"UPDATE stock_movements SET quantity = 1, delta = 1, balance = 14 WHERE product_id = 12 AND version = 4",
				"UPDATE stock_movements SET quantity = -14, delta = -14 WHERE product_id = 12 AND version = 5",
				"DELETE FROM discrepancies WHERE product_id = 12 AND version = 5",
			},
			want: []string{
				"I3 stock_movements device=1001 product=12 version=4: quantity 1, delta 1, shortfall 0",
			},
		},
		{
			name: "a write-off whose shortfall nobody recorded",
			sql:  []string{"DELETE FROM discrepancies WHERE product_id = 12 AND version = 5"},
			want: []string{
				"I3 stock_movements device=1001 product=12 version=5: quantity -13, delta -12, shortfall 0",
			},
		},
		{
			name: "a movement without its write-off",
			sql:  []string{"DELETE FROM writeoffs WHERE writeoff_id = 'writeoff-1'"},
			want: []string{
				"I4 stock_movements device=1001 product=12 version=4: no write-off writeoff-1",
			},
		},
		{
			name: "a write-off without movements",
			sql:  []string{"INSERT INTO writeoffs VALUES (1002, 'writeoff-1', 'spoiled', 'ann', NOW())"},
			want: []string{
				"I4 writeoffs device=1002 writeoff=writeoff-1: no movement",
			},
		},
	})
}

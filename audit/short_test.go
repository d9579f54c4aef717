package audit_test

import "testing"

// takenBack adds to the corrections an order of ten of which the books had four: amended to seven, to eleven, to three.
func (b books) takenBack() {
	b.fill()
	b.corrected()
	b.exec("INSERT INTO restocks VALUES (1003, 'restock-2', '', 'ann', ?)", settledAt)
	b.movement(1003, 10, 1, "restock", 4, 4, 4, "restock-2")
	b.movement(1003, 10, 2, "sale", -10, -4, 0, "ten")
	b.movement(1003, 10, 3, "review", 3, 0, 0, "220")
	b.movement(1003, 10, 4, "review", -4, 0, 0, "221")
	b.movement(1003, 10, 5, "review", 8, 1, 1, "222")
	for version, short := range map[int]int{2: 6, 3: -3, 4: 4, 5: -7} {
		b.exec(`INSERT INTO discrepancies SELECT device_id, product_id, version, 'shortfall', ?, ref, created_at FROM stock_movements
			WHERE device_id = 1003 AND product_id = 10 AND version = ?`, short, version)
	}
	b.stock(1003, 10, 1, 5, nil)
	b.settled(1003, "ten", 120, "open", line(10, 10, 100))
	for i, units := range []int64{-3, 4, -8} {
		review := int64(220 + i)
		b.review(review, 1003, "ten", 120, nil)
		b.decided(review, "amended")
		b.corrections(120, 2+i, [3]int64{10, units, 100})
	}
}

func TestShortfallsTakenBackPass(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]int{"live": 1, "archived": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBooks(t)
			b.takenBack()
			const old = " stock_movements WHERE device_id = 1003 AND product_id = 10 AND version < ?"
			b.exec("INSERT INTO stock_movements_archive SELECT * FROM"+old, live)
			b.exec("DELETE FROM"+old, live)
			if got := violations(t, run(t, b.db)); len(got) > 0 {
				t.Errorf("violations of sound books: %q", got)
			}
		})
	}
}

func TestShortfallsTakenBackWrongly(t *testing.T) {
	// given makes the last movement return units that it must not, with the discrepancy given.
	given := func(discrepancy string) []string {
		return []string{
			"UPDATE stock_movements SET delta = delta + 1, balance = 2 WHERE device_id = 1003 AND product_id = 10 AND version = 5",
			"UPDATE device_stock SET stock = 2 WHERE device_id = 1003 AND product_id = 10",
			"UPDATE discrepancies SET quantity = " + discrepancy + " WHERE device_id = 1003 AND product_id = 10 AND version = 5",
		}
	}
	findAllIn(t, books.takenBack, []plant{
		{
			name: "less than is on record",
			sql:  given("-6"),
			want: []string{"I3 stock_movements device=1003 product=10 version=5: quantity 8, delta 2, shortfall -6"},
		},
		{
			name: "other units than stock got",
			sql:  []string{"UPDATE discrepancies SET quantity = -6 WHERE device_id = 1003 AND product_id = 10 AND version = 5"},
			want: []string{"I3 stock_movements device=1003 product=10 version=5: quantity 8, delta 1, shortfall -6"},
		},
		{
			name: "all units to stock",
			sql: []string{
				"UPDATE stock_movements SET delta = 8, balance = 8 WHERE device_id = 1003 AND product_id = 10 AND version = 5",
				"UPDATE device_stock SET stock = 8 WHERE device_id = 1003 AND product_id = 10",
				"DELETE FROM discrepancies WHERE device_id = 1003 AND product_id = 10 AND version = 5",
			},
			want: []string{"I3 stock_movements device=1003 product=10 version=5: quantity 8, delta 8, shortfall 0"},
		},
		{
			name: "where the event left none",
			sql: []string{
				"UPDATE stock_movements SET delta = 1, balance = 4 WHERE device_id = 1003 AND product_id = 9 AND version = 3",
				"UPDATE device_stock SET stock = 4 WHERE device_id = 1003 AND product_id = 9",
				"INSERT INTO discrepancies VALUES (1003, 9, 3, 'shortfall', -1, '214', NOW())",
			},
			want: []string{"I3 stock_movements device=1003 product=9 version=3: quantity 2, delta 1, shortfall -1"},
		},
		{
			name: "by a sale",
			sql:  []string{"INSERT INTO discrepancies VALUES (1003, 7, 2, 'shortfall', -1, 'reopened', NOW())"},
			want: []string{
				"I3 stock_movements device=1003 product=7 version=2: quantity -2, delta -2, shortfall -1",
				"I3 discrepancies device=1003 product=7 version=2: quantity -1",
			},
		},
	})
}

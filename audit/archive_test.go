package audit_test

import (
	"fmt"
	"slices"
	"testing"

	"doortab/audit"
)

// put moves rows of the books to the archive.
func (b books) put(table, where string) {
	b.t.Helper()
	b.exec("INSERT INTO " + table + "_archive SELECT * FROM " + table + " WHERE " + where)
	b.exec("DELETE FROM " + table + " WHERE " + where)
}

// fillArchived is the sound books with a part of each kind in the archive: orders 101, 102, 105 and 106 with their lines,
// all movements of cabinet 1001 but the last of each product, the payloads of "short" and of the conflict.
func (b books) fillArchived() {
	b.t.Helper()
	b.fill()
	b.put("orders", "order_id IN (101, 102, 105, 106)")
	b.put("order_lines", "order_id IN (101, 102, 105, 106)")
	b.put("stock_movements", `device_id = 1001 AND (product_id, version) IN
		((7,1), (7,2), (7,3), (7,4), (7,5), (7,6), (8,1), (8,2), (11,1), (12,1), (12,2), (12,3), (12,4))`)
	b.exec("INSERT INTO settlement_payloads_archive SELECT device_id, close_event_id, payload FROM settlements WHERE close_event_id = 'short'")
	b.exec("UPDATE settlements SET payload = '' WHERE close_event_id = 'short'")
	b.exec("INSERT INTO conflict_payloads_archive SELECT device_id, close_event_id, digest, payload FROM settlement_conflicts")
	b.exec("UPDATE settlement_conflicts SET payload = ''")
}

func TestSoundArchivedBooksPass(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.fill()
	live := run(t, b.db)
	b.fillArchived()
	report := run(t, b.db)
	if !report.OK() {
		t.Error(violations(t, report))
	}
	for i, c := range report.Checks {
		if c.Rows != live.Checks[i].Rows {
			t.Errorf("%s: %d rows checked, %d when all were live", c.Name, c.Rows, live.Checks[i].Rows)
		}
	}
	want := []audit.Read{
		{Table: "stock_movements", Live: 7, Archived: 13}, {Table: "payloads", Live: 10, Archived: 1},
		{Table: "orders", Live: 3, Archived: 4}, {Table: "order_lines", Live: 3, Archived: 5},
	}
	if !slices.Equal(report.Read, want) {
		t.Errorf("read %v, want %v", report.Read, want)
	}
}

func TestWhatIsArchivedIsAudited(t *testing.T) {
	findAllIn(t, books.fillArchived, []plant{
		{
			name: "movement lost on the way",
			sql:  []string{"DELETE FROM stock_movements_archive WHERE product_id = 7 AND version = 6"},
			want: []string{
				"I2 stock_movements device=1001 product=7 version=7: follows version 5",
				"I3 order_lines device=1001 order=103 line=1: 0 movements of product 7 for event=before-count, not one",
			},
		},
		{
			name: "oldest movement lost",
			sql:  []string{"DELETE FROM stock_movements_archive WHERE product_id = 8 AND version = 1"},
			want: []string{
				"I2 stock_movements_archive device=1001 product=8 version=2: follows version 0",
				"I2 stock_movements_archive device=1001 product=8 version=2: balance 2, but 0 before it and delta -1",
				"I2 device_stock device=1001 product=8: stock 0, sum of deltas -3",
			},
		},
		{
			name: "opening movement archived too",
			sql: []string{
				"INSERT INTO stock_movements_archive SELECT * FROM stock_movements WHERE product_id = 8 AND version = 3",
				"DELETE FROM stock_movements WHERE product_id = 8 AND version = 3",
			},
			want: []string{
				"I2 device_stock device=1001 product=8: stock 0, version 3, but no movement",
			},
		},
		{
			name: "movement in both places",
			sql:  []string{"INSERT INTO stock_movements SELECT * FROM stock_movements_archive WHERE product_id = 8 AND version = 2"},
			want: []string{
				"I2 stock_movements_archive device=1001 product=8 version=2: follows version 2",
				"I2 stock_movements_archive device=1001 product=8 version=2: balance 2, but 2 before it and delta -1",
				"I2 device_stock device=1001 product=8: stock 0, sum of deltas -1",
				"I3 order_lines_archive device=1001 order=101 line=2: 2 movements of product 8 for event=two-products, not one",
			},
		},
		{
			name: "archived movement changed",
			sql:  []string{"UPDATE stock_movements_archive SET quantity = -3 WHERE product_id = 7 AND version = 2"},
			want: []string{
				"I3 stock_movements_archive device=1001 product=7 version=2: quantity -3, delta -2, shortfall 0",
				"I3 stock_movements_archive device=1001 product=7 version=2: 3 taken, order lines of event=two-products say 2",
			},
		},
		{
			name: "order lost on the way",
			sql:  []string{"DELETE FROM orders_archive WHERE order_id = 102"},
			want: []string{
				"I1 settlements device=1001 event=short: outcome settled, no order=102 of this event",
				"I4 order_lines_archive device=1001 order=102 line=1: no such order",
				`I5 settlements device=1001 event=short: receipt orderId "102", rows say ""`,
				"I5 settlements device=1001 event=short: receipt totalMinor 900, rows say 0",
				"I5 settlements device=1001 event=short: receipt lines [product 8: 3 x 300 = 900], rows say []",
			},
		},
		{
			name: "order in both places",
			sql:  []string{"INSERT INTO orders SELECT * FROM orders_archive WHERE order_id = 102"},
			want: []string{
				"I1 orders order=102: no line",
				"I1 orders order=102: also in orders_archive",
				"I3 orders order=102: total 900, lines 0",
			},
		},
		{
			name: "lines left behind",
			sql: []string{
				"INSERT INTO order_lines SELECT * FROM order_lines_archive WHERE order_id = 102",
				"DELETE FROM order_lines_archive WHERE order_id = 102",
			},
			want: []string{
				"I1 settlements device=1001 event=short: outcome settled, no sure line on order=102",
				"I1 orders_archive order=102: no line",
				"I3 orders_archive order=102: total 900, lines 0",
				"I4 order_lines device=1001 order=102 line=1: no such order",
				`I5 settlements device=1001 event=short: receipt orderId "102", rows say ""`,
				"I5 settlements device=1001 event=short: receipt totalMinor 900, rows say 0",
				"I5 settlements device=1001 event=short: receipt lines [product 8: 3 x 300 = 900], rows say []",
			},
		},
		{
			name: "archived line changed",
			sql:  []string{"UPDATE order_lines_archive SET amount_minor = 1 WHERE order_id = 102"},
			want: []string{
				"I3 order_lines_archive device=1001 order=102 line=1: amount 1, but 3 at 300",
				"I3 orders_archive order=102: total 900, lines 1",
				"I5 settlements device=1001 event=short: receipt totalMinor 900, rows say 1",
				"I5 settlements device=1001 event=short: receipt lines [product 8: 3 x 300 = 900], rows say [product 8: 3 x 300 = 1]",
			},
		},
		{
			name: "correction in the archive lost",
			sql:  []string{"DELETE FROM stock_movements WHERE kind = 'review'"},
			want: []string{
				"I2 device_stock device=1001 product=11: stock 4, last balance 5",
				"I2 device_stock device=1001 product=11: version 2, last movement 1",
				"I2 device_stock device=1001 product=11: stock 4, version 2, but no movement",
				"I3 settlements device=1001 event=accepted: 0 of product 11 moved, order=106 says 1",
			},
		},
		{
			name: "payload lost",
			sql:  []string{"DELETE FROM settlement_payloads_archive"},
			want: []string{
				"I4 settlements device=1001 event=short: its payload is neither here nor in the archive",
			},
		},
		{
			name: "payload in both places",
			sql:  []string{`UPDATE settlements s JOIN settlement_payloads_archive p USING (device_id, close_event_id) SET s.payload = p.payload`},
			want: []string{
				"I4 settlements device=1001 event=short: its payload is here and in the archive",
			},
		},
		{
			name: "archived payload changed",
			sql:  []string{"UPDATE settlement_payloads_archive SET payload = REPLACE(payload, 'short', 'other')"},
			want: []string{
				"I1 settlement_payloads_archive device=1001 event=short: payload is of device=1001 event=other",
			},
		},
		{
			name: "payload of nothing",
			sql:  []string{"INSERT INTO settlement_payloads_archive VALUES (1009, 'x', '{}')"},
			want: []string{
				"I4 settlement_payloads_archive device=1009 event=x: nothing that it was the payload of",
			},
		},
		{
			name: "conflict's payload lost, and one of nothing",
			sql:  []string{"UPDATE conflict_payloads_archive SET device_id = 1009"},
			want: []string{
				"I4 conflict_payloads_archive device=1009 event=two-products: nothing that it was the payload of",
				"I4 settlement_conflicts device=1001 event=two-products digest=6292C8B17C54: its payload is neither here nor in the archive",
			},
		},
	})
}

// TestPagesHaveNoSeam: a ledger longer than several pages, part of it archived, with movements of other products beside it.
func TestPagesHaveNoSeam(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.fill()
	b.exec("INSERT INTO restocks VALUES (1002, 'long', '', 'ann', ?)", settledAt)
	const one = "INSERT INTO stock_movements VALUES (1002, 8, ?, 'restock', 1, 1, ?, 'long', NULL, NULL, ?)"
	b.exec(one, 1, 1, settledAt)
	for n := 1; n < 8192; n *= 2 {
		b.exec(`INSERT INTO stock_movements SELECT device_id, product_id, version + ?, kind, quantity, delta, balance + ?, ref, seq, seq_epoch,
			created_at FROM stock_movements WHERE device_id = 1002 AND product_id = 8`, n, n)
	}
	b.stock(1002, 8, 8192, 8192, nil)
	for version := 1978; version <= 1982; version++ { // 20 movements lie before the first: one of these ends a page of 2000
		where := fmt.Sprint(" WHERE device_id = 1002 AND product_id = 8 AND version = ", version)
		b.exec("INSERT INTO stock_movements_archive SELECT * FROM stock_movements" + where)
		want := fmt.Sprintf("I2 stock_movements_archive device=1002 product=8 version=%d: follows version %[1]d", version)
		if got := violations(t, run(t, b.db)); !slices.Contains(got, want) {
			t.Errorf("movement %d in both places: %v", version, got)
		}
		b.exec("DELETE FROM stock_movements_archive" + where)
	}
	for _, upTo := range []string{"0", "4000", "4001", "8191"} {
		b.put("stock_movements", "device_id = 1002 AND product_id = 8 AND version <= "+upTo)
		report := run(t, b.db)
		if !report.OK() {
			t.Errorf("archived up to %s: %v", upTo, violations(t, report))
		}
		if r := report.Read[0]; r.Live+r.Archived != 20+8192 {
			t.Errorf("archived up to %s: read %+v", upTo, r)
		}
	}
}

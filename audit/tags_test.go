package audit_test

import (
	"fmt"
	"testing"
)

func TestTags(t *testing.T) {
	findAll(t, []plant{
		{
			name: "sold in an order that isn't there",
			sql:  []string{"UPDATE epcs SET order_id = 199 WHERE epc = 'BBBB'"},
			want: []string{"I4 epcs epc=BBBB: no order=199"},
		},
		{
			name: "sold in no order",
			sql:  []string{"UPDATE epcs SET order_id = NULL WHERE epc = 'BBBB'"},
			want: []string{"I4 epcs epc=BBBB: sold in no order"},
		},
		{
			name: "sold in an order of another cabinet",
			sql:  []string{"UPDATE epcs SET order_id = 107 WHERE epc = 'BBBB'"},
			want: []string{"I4 epcs epc=BBBB: sold at device=1001 event=two-products, but order=107 is of device=1002 event=two-products"},
		},
		{
			name: "sold in an order of another event",
			sql:  []string{"UPDATE epcs SET order_id = 102 WHERE epc = 'BBBB'"},
			want: []string{"I4 epcs epc=BBBB: sold at device=1001 event=two-products, but order=102 is of device=1001 event=short"},
		},
		{
			name: "in a cabinet and sold",
			sql:  []string{"UPDATE epcs SET order_id = 101 WHERE epc = 'AAAA'"},
			want: []string{"I4 epcs epc=AAAA: in_cabinet, but names order=101"},
		},
		{
			name: "lost and sold",
			sql:  []string{"UPDATE epcs SET order_id = 101 WHERE epc = 'CCCC'"},
			want: []string{"I4 epcs epc=CCCC: lost, but names order=101"},
		},
		{
			name: "a state that doesn't exist",
			sql:  []string{"UPDATE epcs SET state = 'gone' WHERE epc = 'CCCC'"},
			want: []string{`I4 epcs epc=CCCC: state "gone" is none that is ever written`},
		},
	})
}

func TestPayloads(t *testing.T) {
	findAll(t, []plant{
		{
			name: "another payload",
			sql:  []string{`UPDATE settlements SET payload = REPLACE(payload, '"userId":42', '"userId":43') WHERE close_event_id = 'nothing'`},
			want: []string{"I1 settlements device=1001 event=nothing: digest 7CCEA325859E, the payload's is 067DDBFF4F76"},
		},
		{
			name: "another digest",
			sql:  []string{"UPDATE settlements SET digest = REPEAT('x', 32) WHERE close_event_id = 'nothing'"},
			want: []string{"I1 settlements device=1001 event=nothing: digest 787878787878, the payload's is 7CCEA325859E"},
		},
		{
			name: "the payload of another event",
			sql:  []string{`UPDATE settlements SET payload = REPLACE(payload, '"nothing"', '"short"') WHERE close_event_id = 'nothing'`},
			want: []string{"I1 settlements device=1001 event=nothing: payload is of device=1001 event=short"},
		},
		{
			name: "no event, and one that is archived",
			sql: []string{
				"UPDATE settlements SET payload = '[]' WHERE close_event_id = 'nothing'",
				"INSERT INTO settlement_payloads_archive SELECT device_id, close_event_id, payload FROM settlements WHERE close_event_id = 'short'",
				"UPDATE settlements SET payload = '' WHERE close_event_id = 'short'",
			},
			want: []string{"I1 settlements device=1001 event=nothing: payload can't be read: door-close event: is not a JSON object"},
		},
		{
			name: "an order of somebody else, and of nobody",
			sql: []string{
				"UPDATE orders SET user_id = 43 WHERE order_id = 101", "UPDATE orders SET user_id = NULL WHERE order_id = 102",
			},
			want: []string{
				"I1 orders order=101: of user=43, the settlement is of user=42",
				"I1 orders order=102: of nobody known, the settlement is of user=42",
			},
		},
	})
}

func TestRefunds(t *testing.T) {
	refund := func(quantity, delta, balance int, ref string) []string {
		return []string{
			fmt.Sprintf("INSERT INTO stock_movements VALUES (1002, 7, 3, 'refund', %d, %d, %d, '%s', NULL, NULL, NOW())", quantity, delta, balance, ref),
			fmt.Sprintf("UPDATE device_stock SET stock = %d, version = 3 WHERE device_id = 1002", balance),
		}
	}
	findAll(t, []plant{
		{
			name: "of no order", sql: refund(1, 1, 6, "107x"),
			want: []string{"I4 stock_movements device=1002 product=7 version=3: no order=107x"},
		},
		{
			name: "of another cabinet's order", sql: refund(1, 1, 6, "101"),
			want: []string{"I4 stock_movements device=1002 product=7 version=3: no order=101"},
		},
		{
			name: "that takes", sql: refund(-1, -1, 4, "107"),
			want: []string{"I3 stock_movements device=1002 product=7 version=3: quantity -1, delta -1, shortfall 0"},
		},
		{
			name: "of more than came back", sql: refund(1, 2, 7, "107"),
			want: []string{"I3 stock_movements device=1002 product=7 version=3: quantity 1, delta 2, shortfall 0"},
		},
	})
}

func TestARefundThatBringsUnitsBackIsSound(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.fill()
	b.movement(1002, 7, 3, "refund", 1, 1, 6, "107")
	b.exec("UPDATE device_stock SET stock = 6, version = 3 WHERE device_id = 1002")
	if report := run(t, b.db); !report.OK() {
		t.Error(violations(t, report))
	}
}

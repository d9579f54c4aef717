package audit_test

import "testing"

func TestReservations(t *testing.T) {
	findAll(t, []plant{
		{
			name: "more is reserved than is held",
			sql:  []string{"UPDATE reserved_stock SET reserved = 4 WHERE product_id = 7"},
			want: []string{"I4 reserved_stock device=1001 product=7: reserved 4, held reservations have 3 left"},
		},
		{
			name: "less is reserved than is held",
			sql:  []string{"UPDATE reserved_stock SET reserved = 0 WHERE product_id = 7"},
			want: []string{"I4 reserved_stock device=1001 product=7: reserved 0, held reservations have 3 left"},
		},
		{
			name: "one was ended and its units were not given back",
			sql:  []string{"UPDATE reservations SET state = 'expired' WHERE reservation_id = 302"},
			want: []string{"I4 reserved_stock device=1001 product=7: reserved 3, held reservations have 2 left"},
		},
		{
			name: "no row of what is held",
			sql:  []string{"DELETE FROM reserved_stock WHERE product_id = 7"},
			want: []string{
				"I4 reservation_lines device=1001 reservation=301 product=7: held, but no reserved_stock row",
				"I4 reservation_lines device=1001 reservation=302 product=7: held, but no reserved_stock row",
			},
		},
		{
			name: "lines of none",
			sql:  []string{"DELETE FROM reservations WHERE reservation_id = 304"},
			want: []string{"I4 reservation_lines device=1001 reservation=304 product=7: no reservation"},
		},
		{
			name: "one without lines",
			sql:  []string{"DELETE FROM reservation_lines WHERE reservation_id = 305"},
			want: []string{"I4 reservations device=1001 reservation=305: no line"},
		},
		{
			name: "held, with nothing left",
			sql: []string{
				"UPDATE reservation_lines SET left_quantity = 0 WHERE reservation_id = 302", "UPDATE reserved_stock SET reserved = 2 WHERE product_id = 7",
			},
			want: []string{"I4 reservations device=1001 reservation=302: held, but nothing is left of it"},
		},
		{
			name: "used, with something left",
			sql:  []string{"UPDATE reservation_lines SET left_quantity = 1 WHERE reservation_id = 303"},
			want: []string{"I4 reservations device=1001 reservation=303: used, but 1 units are left"},
		},
		{
			name: "a state that doesn't exist",
			sql:  []string{"UPDATE reservations SET state = 'lost' WHERE reservation_id = 304"},
			want: []string{`I4 reservations device=1001 reservation=304: state "lost" is none that is ever written`},
		},
		{
			name: "held for longer than doors look",
			sql:  []string{"UPDATE reservations SET until_at = DATE_ADD(until_at, INTERVAL 3601 SECOND) WHERE reservation_id IN (301, 304)"},
			want: []string{"I4 reservations device=1001 reservation=301: held for longer than marks name=reservations says"},
		},
	})
}

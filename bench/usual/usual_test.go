package usual_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"doortab/bench/usual"
	"doortab/database/databasetest"
	"doortab/services/servicestest"
)

const workers = 16

// shop is the usual design with the cabinets 1 and 2, which have 1000 units of each of the products 1 to 4.
type shop struct {
	*usual.Design
	t      *testing.T
	db     *sql.DB
	schema string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	dsn := databasetest.Empty(t)
	design, err := usual.Open(dsn, servicestest.Redis(t).URL(), workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := design.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := design.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := design.Fill(t.Context(), 2, 4, 1000, 0); err != nil {
		t.Fatal(err)
	}
	schema, _, _ := strings.Cut(dsn[strings.LastIndex(dsn, "/")+1:], "?") // a socket's path has slashes too
	return &shop{Design: design, t: t, db: databasetest.Open(t, dsn).SQL(), schema: schema}
}

func (s *shop) wantRows(query string, want ...string) {
	s.t.Helper()
	rows, err := s.db.Query(query)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	got := []string{}
	for rows.Next() {
		columns, _ := rows.Columns()
		values, targets := make([]string, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			s.t.Fatal(err)
		}
		got = append(got, strings.Join(values, " "))
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s:\ngot  %q\nwant %q", query, got, want)
	}
}

func TestASaleIsOneOrderAndLessStock(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	err := s.Settle(t.Context(), usual.Event{
		DeviceID: 2, CloseEventID: "a", UserID: 42, Lines: []usual.Line{{ProductID: 1, Quantity: 2}, {ProductID: 3, Quantity: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.wantRows("SELECT device_id, product_id, stock, version FROM device_stocks WHERE version <> 1 ORDER BY product_id",
		"2 1 998 2", "2 3 999 2")
	s.wantRows("SELECT order_no, user_id, device_id, close_event_id, status, total_minor FROM orders", "a 42 2 a 1 1500")
	s.wantRows("SELECT product_id, quantity, unit_price_minor FROM order_lines JOIN orders o ON o.id = order_id ORDER BY product_id",
		"1 2 500", "3 1 500")
}

func TestWhatEndsASale(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := usual.Event{DeviceID: 1, CloseEventID: "first", Lines: []usual.Line{{ProductID: 1, Quantity: 1}}}
	if err := s.Settle(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	tooMuch := usual.Event{
		DeviceID: 1, CloseEventID: "much", Lines: []usual.Line{{ProductID: 2, Quantity: 1}, {ProductID: 3, Quantity: 1001}},
	}
	for _, c := range []struct {
		name  string
		event usual.Event
		want  error
	}{
		{"the same event again", first, usual.ErrDuplicate},
		{"more than there is", tooMuch, usual.ErrShort},
		{"the token of a failed event stays taken", tooMuch, usual.ErrDuplicate},
	} {
		if err := s.Settle(t.Context(), c.event); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s.wantRows("SELECT product_id, stock, version FROM device_stocks WHERE version <> 1", "1 999 2")
	s.wantRows("SELECT close_event_id FROM orders", "first")
}

// One cabinet and one product give every kind of conflict that the design knows: versions that changed, and at last locks.
func TestWhatIsSoldAtOnceIsSoldOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const events = 200
	var next atomic.Int64
	var crew errgroup.Group
	for range workers {
		crew.Go(func() error {
			for n := next.Add(1); n <= events; n = next.Add(1) {
				lines := []usual.Line{{ProductID: 1, Quantity: 1}, {ProductID: 2, Quantity: 2}}
				if err := s.Settle(t.Context(), usual.Event{DeviceID: 1, CloseEventID: fmt.Sprint(n), Lines: lines}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := crew.Wait(); err != nil {
		t.Error(err)
	}
	s.wantRows("SELECT product_id, stock, version FROM device_stocks WHERE device_id = 1 AND product_id <= 2 ORDER BY product_id",
		"1 800 201", "2 600 201")
	s.wantRows("SELECT COUNT(*), SUM(total_minor) FROM orders", "200 300000")
	s.wantRows("SELECT COUNT(*), SUM(quantity) FROM order_lines", "400 600")
}

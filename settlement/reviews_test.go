package settlement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/settlement"
)

// decide resolves a review as ann: product, units, product, units … with amend.
func (s *shop) decide(reviewID int64, decision settlement.Decision, units ...int64) (settlement.Review, error) {
	r := settlement.Resolution{ReviewID: reviewID, Decision: decision, Note: "looked at the film"}
	if decision == settlement.Amend {
		r.Lines = []settlement.ProposedLine{}
	}
	for pair := range slices.Chunk(units, 2) {
		r.Lines = append(r.Lines, settlement.ProposedLine{ProductID: pair[0], Quantity: pair[1]})
	}
	return s.resolve(r)
}

func (s *shop) resolve(r settlement.Resolution) (review settlement.Review, err error) {
	err = s.db.InTxCounted(auditlog.WithActor(context.Background(), "ann"), func(tx *gorm.DB, attempt int) error {
		review, err = settlement.Resolve(tx, attempt, r, database.Now())
		return err
	})
	return review, err
}

func (s *shop) reopen(orderID int64) (review settlement.Review, err error) {
	err = s.db.InTx(auditlog.WithActor(context.Background(), "ben"), func(tx *gorm.DB) error {
		review, err = settlement.Reopen(tx, orderID, "the shopper complains", database.Now())
		return err
	})
	return review, err
}

// review is the newest review of an event.
func (s *shop) review(deviceID int64, event string) settlement.Review {
	s.t.Helper()
	x, err := settlement.ReadSettlement(context.Background(), s.db, deviceID, event)
	if err != nil || len(x.Reviews) == 0 {
		s.t.Fatalf("%d/%s has %d reviews, %v", deviceID, event, len(x.Reviews), err)
	}
	return x.Reviews[len(x.Reviews)-1]
}

func (s *shop) orderOf(deviceID int64, event string) settlement.Order {
	s.t.Helper()
	x, err := settlement.ReadSettlement(context.Background(), s.db, deviceID, event)
	if err != nil || x.OrderID == nil {
		s.t.Fatalf("%d/%s has no order, %v", deviceID, event, err)
	}
	o, err := settlement.ReadOrder(context.Background(), s.db, *x.OrderID)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// books is what event e of cabinet 1001 has come to: its order, the lines, what reviews moved, and book stock.
type books struct{ Order, Lines, Moved, Stock string }

func (s *shop) books() books {
	s.t.Helper()
	joined := func(query string) string { return strings.Join(s.rows(query), ", ") }
	return books{
		Order: joined("SELECT status, user_id, currency, total_minor FROM orders WHERE close_event_id = 'e'"),
		Lines: joined(`SELECT origin, product_id, quantity, amount_minor FROM order_lines l JOIN orders o USING (order_id)
			WHERE o.close_event_id = 'e' ORDER BY l.line`),
		Moved: joined("SELECT product_id, quantity, delta FROM stock_movements WHERE kind = 'review' ORDER BY product_id, version"),
		Stock: joined("SELECT product_id, stock FROM device_stock ORDER BY product_id"),
	}
}

// The situations in which a person decides about event e, each of a cabinet with ten of every product.
var situations = map[string]func(s *shop){
	"sure lines and proposed ones": func(s *shop) {
		s.settle(1001, event(1001, "e", `"userId":42`, `"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":3,"confidence":0.5}]`))
	},
	"no sure line": func(s *shop) {
		s.settle(1001, event(1001, "e", `"userId":42`, `"items":[{"productId":8,"quantity":3,"confidence":0.5}]`))
	},
	"a tag gone, its lane unchanged": func(s *shop) {
		s.catalogue("UPDATE products SET gtin = '08719139005740', gtin14 = '08719139005740', unit_weight_g = 345 WHERE product_id = 7")
		s.catalogue("INSERT INTO lanes (device_id, lane, product_id, capacity, par_level) VALUES (1001, 1, 7, 20, 4)")
		s.settle(1001, staff("in", "", tagA), shopper("e", tagA, "", oneLane(690, 690)))
	},
	"nothing proposed": func(s *shop) {
		s.settle(1001, event(1001, "e", items(99, 1), `"userId":42`))
	},
	"nobody known": func(s *shop) {
		s.settle(1001, event(1001, "e", items(7, 2)))
	},
	"conflict": func(s *shop) {
		s.settle(1001, sale(1001, "e", 7, 2))
		s.settle(1001, sale(1001, "e", 8, 1))
	},
	"conflict with nothing": func(s *shop) {
		s.settle(1001, sale(1001, "e"))
		s.settle(1001, sale(1001, "e", 8, 1))
	},
	"reopened": func(s *shop) {
		s.settle(1001, sale(1001, "e", 7, 2, 9, 1))
		if _, err := s.reopen(s.orderOf(1001, "e").OrderID); err != nil {
			s.t.Fatal(err)
		}
	},
	"restock door": func(s *shop) {
		s.settle(1001, event(1001, "e", `"kind":"restock"`,
			`"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":3,"confidence":0.5}]`))
	},
	"conflict with a restock door": func(s *shop) {
		s.settle(1001, event(1001, "e", `"kind":"restock"`, items(7, 2)))
		s.settle(1001, event(1001, "e", `"kind":"restock"`, items(7, 3)))
	},
}

func TestEachDecisionInEachSituation(t *testing.T) {
	t.Parallel()
	const full = "7|10, 8|10, 9|10"
	for name, c := range map[string]struct {
		situation string
		decision  settlement.Decision
		lines     []int64
		want      books
	}{
		"accept adds the proposed lines": {"sure lines and proposed ones", settlement.Accept, nil, books{
			"open|42|CNY|1900", "settlement|7|2|1000, review|8|3|900", "8|-3|-3", "7|8, 8|7, 9|10"}},
		"amend books the differences": {"sure lines and proposed ones", settlement.Amend, []int64{7, 1, 8, 2}, books{
			"open|42|CNY|1100", "settlement|7|2|1000, review|7|-1|-500, review|8|2|600", "7|1|1, 8|-2|-2", "7|9, 8|8, 9|10"}},
		"amend to what stands": {"sure lines and proposed ones", settlement.Amend, []int64{7, 2}, books{
			"open|42|CNY|1000", "settlement|7|2|1000", "", "7|8, 8|10, 9|10"}},
		"amend to nothing": {"sure lines and proposed ones", settlement.Amend, nil, books{
			"void|42|CNY|0", "settlement|7|2|1000, review|7|-2|-1000", "7|2|2", full}},
		"waive leaves the sure lines": {"sure lines and proposed ones", settlement.Waive, nil, books{
			"open|42|CNY|1000", "settlement|7|2|1000", "", "7|8, 8|10, 9|10"}},

		"accept makes the order": {"no sure line", settlement.Accept, nil, books{
			"open|42|CNY|900", "review|8|3|900", "8|-3|-3", "7|10, 8|7, 9|10"}},
		"amend makes the order": {"no sure line", settlement.Amend, []int64{9, 2}, books{
			"open|42|CNY|500", "review|9|2|500", "9|-2|-2", "7|10, 8|10, 9|8"}},
		"amend to nothing makes no order": {"no sure line", settlement.Amend, nil, books{Stock: full}},
		"waive makes no order":            {"no sure line", settlement.Waive, nil, books{Stock: full}},
		"accept of nothing":               {"nothing proposed", settlement.Accept, nil, books{Stock: full}},
		"a product that was not known": {"nothing proposed", settlement.Amend, []int64{7, 1}, books{
			"open|42|CNY|500", "review|7|1|500", "7|-1|-1", "7|9, 8|10, 9|10"}},
		"nobody is charged": {"nobody known", settlement.Accept, nil, books{
			"open||CNY|1000", "settlement|7|2|1000", "", "7|8, 8|10, 9|10"}},

		"accept of a conflict lets the first stand": {"conflict", settlement.Accept, nil, books{
			"open|42|CNY|1000", "settlement|7|2|1000", "", "7|8, 8|10, 9|10"}},
		"waive of a conflict likewise": {"conflict", settlement.Waive, nil, books{
			"open|42|CNY|1000", "settlement|7|2|1000", "", "7|8, 8|10, 9|10"}},
		"amend of a conflict": {"conflict", settlement.Amend, []int64{8, 1}, books{
			"open|42|CNY|300", "settlement|7|2|1000, review|7|-2|-1000, review|8|1|300", "7|2|2, 8|-1|-1", "7|10, 8|9, 9|10"}},
		"a conflict shows that nothing was taken": {"conflict", settlement.Amend, nil, books{
			"void|42|CNY|0", "settlement|7|2|1000, review|7|-2|-1000", "7|2|2", full}},
		"a conflict shows that something was taken": {"conflict with nothing", settlement.Amend, []int64{8, 1}, books{
			"open|42|CNY|300", "review|8|1|300", "8|-1|-1", "7|10, 8|9, 9|10"}},
		"nothing was taken after all": {"conflict with nothing", settlement.Accept, nil, books{Stock: full}},

		"accept of a reopened order": {"reopened", settlement.Accept, nil, books{
			"open|42|CNY|1250", "settlement|7|2|1000, settlement|9|1|250", "", "7|8, 8|10, 9|9"}},
		"waive of a reopened order": {"reopened", settlement.Waive, nil, books{
			"open|42|CNY|1250", "settlement|7|2|1000, settlement|9|1|250", "", "7|8, 8|10, 9|9"}},
		"amend of a reopened order": {"reopened", settlement.Amend, []int64{7, 3}, books{
			"open|42|CNY|1500", "settlement|7|2|1000, settlement|9|1|250, review|7|1|500, review|9|-1|-250", "7|-1|-1, 9|1|1", "7|7, 8|10, 9|10"}},
		"a reopened order that comes to nothing": {"reopened", settlement.Amend, nil, books{
			"void|42|CNY|0", "settlement|7|2|1000, settlement|9|1|250, review|7|-2|-1000, review|9|-1|-250", "7|2|2, 9|1|1", full}},

		"accept of a restock door adds units": {"restock door", settlement.Accept, nil, books{Moved: "8|3|3", Stock: "7|12, 8|13, 9|10"}},
		"amend of a restock door": {"restock door", settlement.Amend, []int64{7, 1, 9, 4}, books{
			Moved: "7|-1|-1, 9|4|4", Stock: "7|11, 8|10, 9|14"}},
		"nothing was brought":     {"restock door", settlement.Amend, nil, books{Moved: "7|-2|-2", Stock: full}},
		"waive of a restock door": {"restock door", settlement.Waive, nil, books{Stock: "7|12, 8|10, 9|10"}},
		"amend of a restock door's conflict": {"conflict with a restock door", settlement.Amend, []int64{7, 3}, books{
			Moved: "7|1|1", Stock: "7|13, 8|10, 9|10"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 10, 8, 10, 9, 10)
			situations[c.situation](s)
			receipt := s.rows("SELECT receipt FROM settlements")
			review := s.review(1001, "e")
			decided, err := s.decide(review.ReviewID, c.decision, c.lines...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(c.want, s.books()); diff != "" {
				t.Error(diff)
			}
			if decided.Decision() != c.decision || decided.Note != "looked at the film" || decided.ResolvedBy != "ann" || decided.ResolvedAt == nil {
				t.Errorf("decided review %+v", decided)
			}
			if (decided.OrderID == nil) != (c.want.Order == "") || decided.OrderID != nil && *decided.OrderID != s.orderOf(1001, "e").OrderID {
				t.Errorf("review of order %v", decided.OrderID)
			}
			if ref := s.rows("SELECT DISTINCT ref FROM stock_movements WHERE kind = 'review'"); len(ref) > 0 && ref[0] != fmt.Sprint(review.ReviewID) {
				t.Errorf("movements of review %d name %v", review.ReviewID, ref)
			}
			if _, err := s.decide(review.ReviewID, settlement.Waive); !errors.Is(err, settlement.ErrDecided) {
				t.Errorf("decided again: %v", err)
			}
			if diff := gocmp.Diff(receipt, s.rows("SELECT receipt FROM settlements")); diff != "" {
				t.Errorf("the receipt was rewritten: %s", diff)
			}
			s.audited()
		})
	}
}

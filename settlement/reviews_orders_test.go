package settlement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/inventory"
	"doortab/settlement"
)

func TestAnOrderWaitsForAllOfItsReviews(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 10, 9, 10)
	situations["no sure line"](s)
	outcome := s.review(1001, "e")
	s.settle(1001, sale(1001, "e", 7, 1)) // a conflict
	conflict := s.review(1001, "e")
	// The conflict makes the order, which waits for the review of the outcome.
	if _, err := s.decide(conflict.ReviewID, settlement.Amend, 7, 1); err != nil {
		t.Fatal(err)
	}
	if got := s.books(); got.Order != "review|42|CNY|500" {
		t.Errorf("%+v", got)
	}
	s.audited()
	r, err := settlement.ReadReview(t.Context(), s.db, outcome.ReviewID)
	if err != nil || r.OrderID == nil || r.Status != "open" {
		t.Fatalf("review of the outcome %+v, %v", r, err)
	}
	if _, err := s.reopen(*r.OrderID); !errors.Is(err, settlement.ErrUnderReview) {
		t.Errorf("reopened: %v", err)
	}
	if _, err := s.decide(outcome.ReviewID, settlement.Accept); err != nil {
		t.Fatal(err)
	}
	if got := s.books(); got.Order != "open|42|CNY|1400" || got.Lines != "review|7|1|500, review|8|3|900" {
		t.Errorf("%+v", got)
	}
	s.audited()
}

func TestReopening(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 10)
	s.settle(1001, sale(1001, "e", 7, 2))
	s.settle(1001, sale(1001, "e", 7, 3)) // the conflict doesn't stand in the way
	orderID := s.orderOf(1001, "e").OrderID
	for round, want := range []struct {
		units []int64
		order string
	}{{nil, "void|42|CNY|0"}, {[]int64{8, 1}, "open|42|CNY|300"}, {[]int64{7, 1, 8, 2}, "open|42|CNY|1100"}} {
		review, err := s.reopen(orderID)
		if err != nil {
			t.Fatal(err)
		}
		if review.Status != "open" || len(review.Reasons)+len(review.Proposed) != 0 || review.Note != "the shopper complains" ||
			review.OrderID == nil || *review.OrderID != orderID || !strings.Contains(string(review.Evidence), `"reopenedBy":"ben"`) {
			t.Errorf("round %d: reopened %+v", round, review)
		}
		if got := s.books().Order; !strings.HasPrefix(got, "review|") {
			t.Errorf("round %d: order %s while it is reopened", round, got)
		}
		s.audited()
		if _, err := s.reopen(orderID); !errors.Is(err, settlement.ErrUnderReview) {
			t.Errorf("round %d: reopened twice: %v", round, err)
		}
		if _, err := s.decide(review.ReviewID, settlement.Amend, want.units...); err != nil {
			t.Fatal(err)
		}
		if got := s.books().Order; got != want.order {
			t.Errorf("round %d: order %s, want %s", round, got, want.order)
		}
		s.audited()
	}
	if _, err := s.reopen(1); !errors.Is(err, settlement.ErrNotFound) {
		t.Errorf("an order that isn't there: %v", err)
	}
	s.exec("UPDATE orders SET status = 'paid'")
	if _, err := s.reopen(orderID); !errors.Is(err, settlement.ErrOrderClosed) {
		t.Errorf("a paid order: %v", err)
	}
}

func TestWhatNoReviewCanBecome(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	situations["no sure line"](s)
	id := s.review(1001, "e").ReviewID
	if _, err := s.resolve(settlement.Resolution{ReviewID: id, Decision: settlement.Amend, Note: "x"}); !errors.Is(err, settlement.ErrInvalid) {
		t.Errorf("amend without lines: %v", err)
	}
	for name, c := range map[string]struct {
		review   int64
		decision settlement.Decision
		lines    []int64
		want     error
	}{
		"no such review":     {1, settlement.Waive, nil, settlement.ErrNotFound},
		"accept with lines":  {id, settlement.Accept, []int64{7, 1}, settlement.ErrInvalid},
		"waive with lines":   {id, settlement.Waive, []int64{7, 1}, settlement.ErrInvalid},
		"quantity 0":         {id, settlement.Amend, []int64{7, 0}, settlement.ErrInvalid},
		"quantity -1":        {id, settlement.Amend, []int64{7, -1}, settlement.ErrInvalid},
		"quantity 1001":      {id, settlement.Amend, []int64{7, 1001}, settlement.ErrInvalid},
		"a product twice":    {id, settlement.Amend, []int64{7, 1, 7, 1}, settlement.ErrInvalid},
		"an unknown product": {id, settlement.Amend, []int64{7, 1, 99, 1}, inventory.ErrUnknownProduct},
	} {
		if _, err := s.decide(c.review, c.decision, c.lines...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if s.review(1001, "e").Status != "open" || s.count("audit_log", "1") != 0 || s.count("orders", "1") != 0 {
		t.Error("a refused resolution left something")
	}
	// A paid order isn't corrected, but a conflict with it can be set aside.
	s.settle(1001, sale(1001, "f", 7, 1), sale(1001, "f", 7, 2))
	s.exec("UPDATE orders SET status = 'paid'")
	conflict := s.review(1001, "f").ReviewID
	if _, err := s.decide(conflict, settlement.Amend, 7, 2); !errors.Is(err, settlement.ErrOrderClosed) {
		t.Errorf("a paid order is amended: %v", err)
	}
	if _, err := s.decide(conflict, settlement.Accept); err != nil || s.count("orders", "status = 'paid'") != 1 {
		t.Errorf("a conflict with a paid order: %v", err)
	}
	s.audited()
}

func TestEachDecisionIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 10)
	situations["sure lines and proposed ones"](s)
	review := s.review(1001, "e")
	if _, err := s.decide(review.ReviewID, settlement.Amend, 7, 1); err != nil {
		t.Fatal(err)
	}
	order := s.orderOf(1001, "e").OrderID
	if _, err := s.reopen(order); err != nil {
		t.Fatal(err)
	}
	got := s.rows("SELECT actor, action, target, before_change, after_change FROM audit_log ORDER BY action DESC")
	state := func(status string, total, units int) string {
		return fmt.Sprintf(`"order":{"orderId":"%d","status":%q,"totalMinor":%d},"units":[{"productId":7,"quantity":%d}]}`, order, status, total, units)
	}
	want := []string{
		fmt.Sprintf(`ann|review.amend|review %d|{"status":"open",%s|{"status":"amended","note":"looked at the film",%s`,
			review.ReviewID, state("review", 1000, 2), state("open", 500, 1)),
		fmt.Sprintf(`ben|order.reopen|order %d|{%s|{"reviewId":"%d","status":"open","note":"the shopper complains",%s`,
			order, state("open", 500, 1), s.review(1001, "e").ReviewID, state("review", 500, 1)),
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

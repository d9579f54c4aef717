package settlement_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/settlement"
)

// atOnce runs eight operators side by side and returns how many of them won; the others must lose by the error given.
func atOnce(t *testing.T, lost error, operator func(n int) error) (won int) {
	t.Helper()
	errs := make([]error, 8)
	var wait sync.WaitGroup
	for n := range errs {
		wait.Go(func() { errs[n] = operator(n) })
	}
	wait.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, lost):
			t.Error(err)
		}
	}
	return won
}

func TestOneOfManyOperatorsWins(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 100, 8, 100)
	for round := range 6 {
		id := fmt.Sprint("e", round)
		s.settle(1001, event(1001, id, `"userId":42`, `"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":1,"confidence":0.5}]`))
		review := s.review(1001, id)
		won := atOnce(t, settlement.ErrDecided, func(n int) (err error) {
			switch n % 3 {
			case 0:
				_, err = s.decide(review.ReviewID, settlement.Accept)
			case 1:
				_, err = s.decide(review.ReviewID, settlement.Amend, 7, int64(n), 8, 4)
			default:
				_, err = s.decide(review.ReviewID, settlement.Waive)
			}
			return err
		})
		orderID := s.orderOf(1001, id).OrderID
		reopened := atOnce(t, settlement.ErrUnderReview, func(int) error {
			_, err := s.reopen(orderID)
			return err
		})
		if won != 1 || reopened != 1 {
			t.Errorf("round %d: %d operators decided, %d reopened", round, won, reopened)
		}
		if n := s.count("reviews", "order_id = ? AND status = 'open'", orderID); n != 1 {
			t.Errorf("round %d: %d open reviews", round, n)
		}
	}
	if n := s.count("audit_log", "1"); n != 12 {
		t.Errorf("%d lines of the audit log for 6 decisions and 6 reopenings", n)
	}
	s.audited()
}

// TestReviewsBesideSales: all reviews of one event are decided at once, while the cabinet sells, resends and is restocked.
func TestReviewsBesideSales(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 500, 8, 500, 9, 500)
	doubtful := event(1001, "e", `"userId":42`, `"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":3,"confidence":0.5}]`)
	first := s.receipts(1001, doubtful)
	for n := range int64(7) {
		s.settle(1001, sale(1001, "e", 9, n+1)) // conflicts
	}
	x, err := settlement.ReadSettlement(t.Context(), s.db, 1001, "e")
	if err != nil || len(x.Reviews) != 8 {
		t.Fatalf("%d reviews, %v", len(x.Reviews), err)
	}
	var sellers sync.WaitGroup
	sellers.Go(func() {
		for n := range 20 {
			s.receipts(1001, sale(1001, fmt.Sprint("s", n), 9, 1, 7, 1), doubtful)
		}
	})
	sellers.Go(func() {
		for range 20 {
			if err := s.tryRestock(1001, 8, 1, 7, 1); err != nil {
				t.Error(err)
			}
		}
	})
	won := atOnce(t, nil, func(n int) error {
		_, err := s.decide(x.Reviews[n].ReviewID, settlement.Amend, 7, int64(n+1), 9, 2)
		return err
	})
	sellers.Wait()
	if won != 8 {
		t.Errorf("%d of 8 reviews were decided", won)
	}
	if o := s.orderOf(1001, "e"); o.Status != "open" || o.TotalMinor%500 != 0 || o.TotalMinor < 1000 {
		t.Errorf("order %+v", o)
	}
	again := s.receipts(1001, doubtful)
	first[0].Duplicate = true
	if diff := gocmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	s.audited()
}

// TestAWriterBetweenReadAndWriteOfACorrection: R5 holds for reviews.
func TestAWriterBetweenReadAndWriteOfACorrection(t *testing.T) {
	t.Parallel()
	for _, conflicts := range []int64{1, 3} { // after the third the rows are locked as they are read
		s := newShop(t)
		s.cabinet(1001, 7, 10, 8, 10, 9, 10)
		situations["sure lines and proposed ones"](s)
		id := s.review(1001, "e").ReviewID
		seller, sold := s.another(nil), int64(0)
		beforeWrite(t, s.db, updateStock, func(*gorm.DB) {
			if sold < conflicts {
				sold++
				seller.receipts(1001, sale(1001, fmt.Sprint("s", sold), 8, 1))
			}
		})
		if _, err := s.decide(id, settlement.Accept); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("7|8, 8|%d, 9|10", 7-conflicts)
		if got := s.books(); got.Stock != want || got.Order != "open|42|CNY|1900" {
			t.Errorf("%d conflicts: %+v, want stock %s", conflicts, got, want)
		}
		s.audited()
	}
}

// For each table that a decision writes to, a trigger makes the statement fail: nothing of the decision remains.
func TestAFailedStatementTakesTheDecisionBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, moment, situation string }{
		"stock":          {"device_stock", "UPDATE", "sure lines and proposed ones"},
		"movement":       {"stock_movements", "INSERT", "sure lines and proposed ones"},
		"order":          {"orders", "UPDATE", "sure lines and proposed ones"},
		"line":           {"order_lines", "INSERT", "sure lines and proposed ones"},
		"review":         {"reviews", "UPDATE", "sure lines and proposed ones"},
		"audit log":      {"audit_log", "INSERT", "sure lines and proposed ones"},
		"tag":            {"epcs", "UPDATE", "a tag gone, its lane unchanged"},
		"new order":      {"orders", "INSERT", "no sure line"},
		"order's number": {"settlements", "UPDATE", "no sure line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 10, 8, 10, 9, 10)
			situations[c.situation](s)
			id := s.review(1001, "e").ReviewID
			before, stood := s.everythingOf(1001), s.books()
			s.exec(fmt.Sprintf("CREATE TRIGGER fails BEFORE %s ON %s FOR EACH ROW SIGNAL SQLSTATE '45000'", c.moment, c.table))
			if _, err := s.decide(id, settlement.Amend, 7, 1, 8, 2); err == nil || database.ClassOf(err) != database.Permanent {
				t.Errorf("decided: %v", err)
			}
			if diff := gocmp.Diff(before, s.everythingOf(1001)); diff != "" || s.count("audit_log", "1") != 0 {
				t.Errorf("something remains: %s", diff)
			}
			s.exec("DROP TRIGGER fails")
			if _, err := s.decide(id, settlement.Amend, 7, 1, 8, 2); err != nil || gocmp.Equal(stood, s.books()) {
				t.Errorf("decided after: %v", err)
			}
			s.audited()
		})
	}
}

// TestTheQueueIsMeasured reads the metrics as a scrape does.
func TestTheQueueIsMeasured(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 10)
	queue := func() (open, oldest float64) {
		t.Helper()
		return s.metric("doortab_reviews_open", ""), s.metric("doortab_review_oldest_seconds", "")
	}
	if open, oldest := queue(); open != 0 || oldest != 0 {
		t.Errorf("%v open, the oldest for %v s, of none", open, oldest)
	}
	situations["no sure line"](s)
	s.settle(1001, event(1001, "f", items(99, 1), `"userId":42`))
	s.exec("UPDATE reviews SET created_at = ? WHERE close_event_id = 'e'", database.Now().Add(-time.Hour))
	if open, oldest := queue(); open != 2 || oldest < 3600 || oldest > 3700 {
		t.Errorf("%v open, the oldest for %v s", open, oldest)
	}
	if _, err := s.decide(s.review(1001, "e").ReviewID, settlement.Waive); err != nil {
		t.Fatal(err)
	}
	if open, oldest := queue(); open != 1 || oldest > 60 {
		t.Errorf("%v open, the oldest for %v s", open, oldest)
	}
	s.exec("DROP TABLE reviews") // what can't be read isn't told, and the rest is
	if open, _ := queue(); open != 0 || s.metric("doortab_settlements_total", "review") != 2 {
		t.Errorf("without the table: %v open, %v settled", open, s.metric("doortab_settlements_total", "review"))
	}
}

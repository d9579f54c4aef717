package settlement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/settlement"
)

// TestAResendAfterACorrectionGetsTheFirstReceipt is R15.
func TestAResendAfterACorrectionGetsTheFirstReceipt(t *testing.T) {
	t.Parallel()
	for name, prepare := range situations {
		if strings.HasPrefix(name, "conflict") {
			continue
		}
		s := newShop(t)
		s.cabinet(1001, 7, 10, 8, 10, 9, 10)
		prepare(s)
		payload := s.rows("SELECT payload FROM settlements")[0]
		before := s.receipts(1001, payload)
		if _, err := s.decide(s.review(1001, "e").ReviewID, settlement.Amend, 9, 3); err != nil {
			t.Fatal(name, err)
		}
		after := s.receipts(1001, payload)
		if diff := gocmp.Diff(before, after); diff != "" || !after[0].Duplicate {
			t.Errorf("%s: resent: %s", name, diff)
		}
		s.audited()
	}
}

func TestAnEventIsPricedAsItWasReceived(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 10)
	situations["sure lines and proposed ones"](s)
	for id := range priceOf {
		s.catalogue("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (?, ?, 9999)", id, receivedAt.AddDate(0, 0, 1))
	}
	if _, err := s.decide(s.review(1001, "e").ReviewID, settlement.Amend, 7, 3, 8, 1); err != nil {
		t.Fatal(err)
	}
	if got := s.books().Order; got != "open|42|CNY|1800" {
		t.Errorf("order %s", got)
	}
	s.audited()
}

func TestWhatACountHasSeenMovesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		epoch, seq, countedEpoch, counted int
		want                              string
	}{
		"up to the count":          {0, 5, 0, 5, "7|1|0, 8|-3|0"},
		"after the count":          {0, 6, 0, 5, "7|1|1, 8|-3|-3"},
		"of a newer controller":    {1, 5, 0, 5, "7|1|1, 8|-3|-3"},
		"up to the count of a new": {1, 5, 1, 7, "7|1|0, 8|-3|0"},
		"of an older controller":   {0, 5, 1, 1, "7|1|0, 8|-3|0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 10, 8, 10)
			count := func() {
				s.exec("REPLACE INTO cabinet_sequences (device_id, epoch, last_seq) VALUES (1001, ?, 10)", c.countedEpoch)
				s.stocktake(1001, c.counted, 7, 10, 8, 10)
			}
			if c.countedEpoch < c.epoch {
				count()
			}
			s.exec("REPLACE INTO cabinet_sequences (device_id, epoch, last_seq) VALUES (1001, ?, 1)", c.epoch)
			s.settle(1001, event(1001, "e", `"userId":42`, fmt.Sprintf(`"seq":%d`, c.seq),
				`"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":3,"confidence":0.5}]`))
			if c.countedEpoch >= c.epoch {
				count()
			}
			if _, err := s.decide(s.review(1001, "e").ReviewID, settlement.Amend, 7, 1, 8, 3); err != nil {
				t.Fatal(err)
			}
			if got := s.books(); got.Moved != c.want || got.Order != "open|42|CNY|1400" {
				t.Errorf("%+v", got)
			}
			s.audited()
		})
	}
}

func TestMoreThanTheBooksHaveIsAShortfall(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 2)
	situations["sure lines and proposed ones"](s)
	review := s.review(1001, "e")
	if _, err := s.decide(review.ReviewID, settlement.Accept); err != nil {
		t.Fatal(err)
	}
	if got := s.books(); got.Moved != "8|-3|-2" || got.Stock != "7|8, 8|0" {
		t.Errorf("%+v", got)
	}
	want := []string{fmt.Sprint("8|shortfall|1|", review.ReviewID)}
	if got := s.rows("SELECT product_id, kind, quantity, ref FROM discrepancies"); !slices.Equal(got, want) {
		t.Errorf("discrepancies %v, want %v", got, want)
	}
	s.audited()
}

// What a door session knew better than its event holds for the corrections too: kind, user, app and prices.
func TestAReviewOfADoorSession(t *testing.T) {
	t.Parallel()
	const other = `"userId":43`
	t.Run("sale", func(t *testing.T) {
		t.Parallel()
		s, session := opened(t, cabinet.KindSale)
		s.receipts(1001, event(1001, session.CloseEventID, other, `"kind":"restock"`, `"items":[{"productId":7,"quantity":2,"confidence":0.5}]`))
		if _, err := s.decide(s.review(1001, session.CloseEventID).ReviewID, settlement.Accept); err != nil {
			t.Fatal(err)
		}
		got := s.rows("SELECT status, user_id, app, total_minor FROM orders")
		if !slices.Equal(got, []string{"open|42|shopper|1000"}) || s.books().Moved != "7|-2|-2" {
			t.Errorf("order %v, %+v", got, s.books())
		}
		s.audited()
	})
	t.Run("restock", func(t *testing.T) {
		t.Parallel()
		s, session := opened(t, cabinet.KindRestock)
		s.receipts(1001, event(1001, session.CloseEventID, other, items(7, 2)))
		if _, err := s.decide(s.review(1001, session.CloseEventID).ReviewID, settlement.Amend, 7, 5); err != nil {
			t.Fatal(err)
		}
		if got := s.books(); got.Moved != "7|3|3" || got.Stock != "7|15" || s.count("orders", "1") != 0 {
			t.Errorf("%+v", got)
		}
		s.audited()
	})
}

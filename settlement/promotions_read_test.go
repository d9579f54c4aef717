package settlement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"doortab/promotion"
)

// What processes keep of promotions must not outlive a change by a single event.
func TestAChangeOfPromotionsCountsFromTheNextEventOn(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 1000)
	processes, events := []*shop{s, s.another(nil)}, 0
	check := func(when, want string) {
		t.Helper()
		for n, process := range processes {
			events++
			if got := linesOf(process.receipts(1001, sale(1001, fmt.Sprint("e", events), 7, 1))[0]); got != want {
				t.Errorf("%s, process %d: %s, want %s", when, n, got, want)
			}
		}
	}
	check("without any", "7:1x500")
	p := s.promotion(promotion.Promotion{Quota: 99, PerUser: 99})
	check("live", "7:1x100")
	s.become(p, promotion.Paused)
	check("paused", "7:1x500")
	s.become(p, promotion.Live)
	second := s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 50, Quota: 99, PerUser: 99})
	check("a cheaper one beside it", "7:1x50")
	s.become(second, promotion.Ended)
	check("the cheaper one ended", "7:1x100")
	s.become(p, promotion.Ended)
	check("ended", "7:1x500")
	s.audited()
}

// A group that sells nothing that a promotion is of reads nothing of promotions but their mark and, after seconds, which there are.
func TestGroupsWithoutPromotionsReadNothingOfThem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 1000, 8, 1000)
	s.promotion(promotion.Promotion{ProductID: 8, PriceMinor: 1, NeedsClaim: true, Site: "HQ"})
	s.receipts(1001, sale(1001, "first", 7, 1))
	var asked []string
	see := func(tx *gorm.DB) {
		text := tx.Statement.SQL.String()
		if strings.Contains(text, "FROM promotions") {
			return
		}
		if slices.ContainsFunc([]string{"promotion_", "claims", "site"}, func(word string) bool { return strings.Contains(text, word) }) {
			asked = append(asked, text)
		}
	}
	callbacks := s.db.Read(t.Context()).Callback()
	for _, register := range []func(string, func(*gorm.DB)) error{
		callbacks.Raw().Before("gorm:raw").Register, callbacks.Row().Before("gorm:row").Register, callbacks.Query().Before("gorm:query").Register,
	} {
		if err := register("test:see", see); err != nil {
			t.Fatal(err)
		}
	}
	s.receipts(1001, sale(1001, "e", 7, 1), event(1001, "nobody", items(8, 1)), event(1001, "staff", `"userId":42,"kind":"restock"`, items(8, 1)))
	if len(asked) > 0 {
		t.Errorf("%q", asked)
	}
	s.receipts(1001, sale(1001, "f", 8, 1))
	if len(asked) == 0 {
		t.Error("nothing is seen")
	}
}

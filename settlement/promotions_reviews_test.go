package settlement_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/settlement"
)

// linesNow are all lines of event e: origin, product, units and price.
func (s *shop) linesNow() string {
	s.t.Helper()
	return strings.Join(s.rows(`SELECT origin, product_id, quantity, unit_price_minor FROM order_lines l JOIN orders o USING (order_id)
		WHERE o.close_event_id = 'e' ORDER BY l.line`), ", ")
}

// A shopper took three of product 7: one for a claim, one by a promotion without claims, one at its price.
func TestReviewsOfOrdersWithPromotions(t *testing.T) {
	t.Parallel()
	const taken = "settlement|7|1|100, settlement|7|1|200, settlement|7|1|500"
	cases := []struct {
		name  string
		do    func(s *shop)
		order string
		lines string // behind those of the door
		left  string
	}{
		{
			name: "the dearest go first", do: func(s *shop) { s.mustDecide(settlement.Amend, 7, 2) },
			order: "open|42|CNY|300", lines: "review|7|-1|500",
			left: "claim|used|1|0, quota|1, quota|1, user|42|1, user|42|1, use|0|42|1|0, use|1|42|1|0",
		},
		{
			name: "then those of promotions, which get their units back", do: func(s *shop) { s.mustDecide(settlement.Amend, 7, 1) },
			order: "open|42|CNY|100", lines: "review|7|-1|500, review|7|-1|200",
			left: "claim|used|1|0, quota|0, quota|1, user|42|0, user|42|1, use|0|42|1|1, use|1|42|1|0",
		},
		{
			name: "a void order gives all back", do: func(s *shop) { s.mustDecide(settlement.Amend) },
			order: "void|42|CNY|0", lines: "review|7|-1|500, review|7|-1|200, review|7|-1|100",
			left: "claim|used|1|0, quota|0, quota|0, user|42|0, user|42|0, use|0|42|1|1, use|1|42|1|1",
		},
		{
			name: "what is added has the price in force where nothing is held or left", do: func(s *shop) { s.mustDecide(settlement.Amend, 7, 5) },
			order: "open|42|CNY|1800", lines: "review|7|2|500",
			left: "claim|used|1|0, quota|1, quota|1, user|42|1, user|42|1, use|0|42|1|0, use|1|42|1|0",
		},
		{
			name: "what is added is priced by a claim that is still good", do: func(s *shop) {
				s.claim(s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 50, NeedsClaim: true}), 42, 1, 5)
				s.mustDecide(settlement.Amend, 7, 5)
			},
			order: "open|42|CNY|1350", lines: "review|7|1|50, review|7|1|500",
			left: "claim|used|1|0, claim|used|1|0, quota|1, quota|1, quota|1, user|42|1, user|42|1, user|42|1, " +
				"use|0|42|1|0, use|1|42|1|0, use|1|42|1|0",
		},
		{
			name: "what was claimed after the door was for another one", do: func(s *shop) {
				s.claim(s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 50, NeedsClaim: true}), 42, 1, -5)
				s.mustDecide(settlement.Amend, 7, 4)
			},
			order: "open|42|CNY|1300", lines: "review|7|1|500",
			left: "claim|held|1|1, claim|used|1|0, quota|1, quota|1, quota|1, user|42|1, user|42|1, user|42|1, use|0|42|1|0, use|1|42|1|0",
		},
		{
			name: "a unit that came back may be sold again at its price", do: func(s *shop) {
				s.mustDecide(settlement.Amend, 7, 1)
				s.mustReopen()
				s.mustDecide(settlement.Amend, 7, 3)
			},
			order: "open|42|CNY|800", lines: "review|7|-1|500, review|7|-1|200, review|7|1|200, review|7|1|500",
			left: "claim|used|1|0, quota|1, quota|1, user|42|1, user|42|1, use|0|42|2|1, use|1|42|1|0",
		},
		{
			name: "other products have nothing to do with it", do: func(s *shop) { s.mustDecide(settlement.Amend, 7, 3, 8, 1) },
			order: "open|42|CNY|1100", lines: "review|8|1|300",
			left: "claim|used|1|0, quota|1, quota|1, user|42|1, user|42|1, use|0|42|1|0, use|1|42|1|0",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 10, 8, 10)
			s.claim(s.promotion(promotion.Promotion{NeedsClaim: true}), 42, 1, 5)
			s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200})
			s.receipts(1001, sale(1001, "e", 7, 3))
			s.mustReopen()
			c.do(s)
			want := []string{c.order, taken + ", " + c.lines, c.left}
			got := []string{s.books().Order, s.linesNow(), s.counters()}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			s.audited()
		})
	}
}

// An order that only a review makes is priced as at its door.
func TestOrderThatAReviewMakesWithPromotions(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	s.claim(s.promotion(promotion.Promotion{NeedsClaim: true}), 42, 1, 5)
	s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200})
	s.receipts(1001, event(1001, "e", `"userId":42`, `"items":[{"productId":7,"quantity":4,"confidence":0.5}]`))
	s.mustDecide(settlement.Accept)
	want := []string{
		"open|42|CNY|1300", "review|7|1|100, review|7|1|200, review|7|2|500",
		"claim|used|1|0, quota|1, quota|1, user|42|1, user|42|1, use|0|42|1|0, use|1|42|1|0",
	}
	if diff := gocmp.Diff(want, []string{s.books().Order, s.linesNow(), s.counters()}); diff != "" {
		t.Error(diff)
	}
	s.audited()
}

// Who counts the persons of claims elsewhere hears what a decision gave back to them.
func TestReviewsTellWhatTheyGiveBackToPersonsOfClaims(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200})
	c := s.claim(s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 2, PerUser: 2}), 42, 2, 5)
	s.receipts(1001, sale(1001, "e", 7, 3))
	for _, step := range []struct {
		units int64
		want  []promotion.Return
	}{
		{2, nil}, // the dearest was of no claim
		{1, []promotion.Return{{PromotionID: c.PromotionID, ClaimID: c.ClaimID, UserID: 42, Quantity: 1}}},
	} {
		s.mustReopen()
		review, err := s.decide(s.review(1001, "e").ReviewID, settlement.Amend, 7, step.units)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(step.want, review.Returns); diff != "" {
			t.Error(diff)
		}
	}
}

// A review that locks what it reads does so in the order in which settlements do.
func TestReviewsLockStockBeforePromotions(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200})
	s.receipts(1001, sale(1001, "e", 7, 3))
	s.mustReopen()
	locked := 0
	beforeWrite(t, s.db, "FROM promotion_quota FORCE INDEX", func(*gorm.DB) {
		locked++
		if err := s.tryLock(1001); !database.IsLockWait(err) {
			t.Errorf("the stock is not locked before the quota: %v", err)
		}
	})
	r := settlement.Resolution{ReviewID: s.review(1001, "e").ReviewID, Decision: settlement.Amend, Note: "none", Lines: []settlement.ProposedLine{}}
	err := s.db.InTx(t.Context(), func(tx *gorm.DB) error {
		_, err := settlement.Resolve(tx, database.OptimisticAttempts+1, r, database.Now())
		return err
	})
	if err != nil || locked != 1 {
		t.Errorf("the quota is locked %d times, error %v", locked, err)
	}
	s.audited()
}

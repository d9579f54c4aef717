package settlement_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/door"
	"doortab/promotion"
)

// promotion makes one that is live; what is left out is of product 7 at 100, for everybody without a claim.
func (s *shop) promotion(p promotion.Promotion) promotion.Promotion {
	s.t.Helper()
	if p.ProductID == 0 {
		p.ProductID, p.PriceMinor = 7, 100
	}
	p.Name, p.Quota, p.PerUser = "x", max(p.Quota, 1), max(p.PerUser, 1)
	if p.StartsAt.IsZero() {
		p.StartsAt, p.EndsAt = receivedAt.Add(-time.Hour), receivedAt.Add(time.Hour)
	}
	err := s.db.InTx(context.Background(), func(tx *gorm.DB) (err error) {
		if p, err = promotion.Create(tx, p, database.Now()); err != nil {
			return err
		}
		p, err = promotion.Transition(tx, p.PromotionID, promotion.Live, database.Now())
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *shop) become(p promotion.Promotion, to promotion.State) {
	s.t.Helper()
	err := s.db.InTx(context.Background(), func(tx *gorm.DB) error {
		_, err := promotion.Transition(tx, p.PromotionID, to, database.Now())
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// claim takes units for a user so many seconds before the doors of these tests.
func (s *shop) claim(p promotion.Promotion, userID, units int64, before int) promotion.Claim {
	s.t.Helper()
	s.tokens++
	ask := promotion.Ask{UserID: userID, Quantity: units, At: receivedAt.Add(-time.Duration(before) * time.Second)}
	ask.TokenID = promotion.TokenID{byte(s.tokens >> 16), byte(s.tokens >> 8), byte(s.tokens)}
	var claims []promotion.Claim
	err := s.db.InTx(context.Background(), func(tx *gorm.DB) (err error) {
		claims, err = promotion.Take(tx, p.PromotionID, []promotion.Ask{ask}, database.Now())
		return err
	})
	if err != nil || claims[0].State != promotion.Held {
		s.t.Fatalf("%+v: %v", claims, err)
	}
	return claims[0]
}

// end gives a claim back, or expires it, as long as it is held.
func (s *shop) end(claimID int64, to promotion.ClaimState) (ended bool) {
	s.t.Helper()
	err := s.db.InTx(context.Background(), func(tx *gorm.DB) error {
		c, err := promotion.ReadClaim(tx, claimID)
		if ended = err == nil && c.State == promotion.Held; ended {
			_, err = promotion.GiveBack(tx, c, to, database.Now())
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
	return ended
}

// linesOf is what a receipt charges: product, units and price of each line.
func linesOf(r cabinet.Receipt) string {
	var words []string
	total := int64(0)
	for _, l := range r.Lines {
		words = append(words, fmt.Sprintf("%d:%dx%d", l.ProductID, l.Quantity, l.UnitPriceMinor))
		total += l.AmountMinor
	}
	if total != r.TotalMinor {
		words = append(words, fmt.Sprintf("but the total is %d", r.TotalMinor))
	}
	return strings.Join(words, " ")
}

// counters are what the promotions have taken: of the quota, of each person, and what claims and uses say.
func (s *shop) counters() string {
	s.t.Helper()
	list := slices.Concat(
		s.rows("SELECT 'quota', taken FROM promotion_quota"), s.rows("SELECT 'user', user_id, taken FROM promotion_users"),
		s.rows("SELECT 'claim', state, quantity, left_quantity FROM claims"),
		s.rows("SELECT 'use', claim_id <> 0, user_id, quantity, given_back FROM promotion_uses"),
	)
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Of each of these a shopper with or without claims buys: which units have which price.
func TestWhatADoorPricesByPromotions(t *testing.T) {
	t.Parallel()
	hour := func(n int) time.Time { return receivedAt.Add(time.Duration(n) * time.Hour) }
	cases := []struct {
		name  string
		given func(s *shop)
		sales []string // of one group
		want  []string // the lines of each
		left  string   // counters
	}{
		{
			name: "no promotion", given: func(*shop) {},
			sales: []string{sale(1001, "e", 7, 2, 8, 1)}, want: []string{"7:2x500 8:1x300"},
		},
		{
			name: "the limit caps what is cheaper, never the sale", given: func(s *shop) { s.promotion(promotion.Promotion{Quota: 9}) },
			sales: []string{sale(1001, "e", 7, 2, 8, 1), sale(1001, "f", 7, 1)},
			want:  []string{"7:1x100 7:1x500 8:1x300", "7:1x500"},
			left:  "quota|1, user|42|1, use|0|42|1|0",
		},
		{
			name: "so does the quota", given: func(s *shop) { s.promotion(promotion.Promotion{Quota: 3, PerUser: 2}) },
			sales: []string{
				sale(1001, "e", 7, 5), event(1001, "f", `"userId":43`, items(7, 4)), event(1001, "g", `"userId":44`, items(7, 1)),
			},
			want: []string{"7:2x100 7:3x500", "7:1x100 7:3x500", "7:1x500"},
			left: "quota|3, user|42|2, user|43|1, use|0|42|2|0, use|0|43|1|0",
		},
		{
			name: "claims first, the one that expires first before the others, then the cheapest", given: func(s *shop) {
				dear := s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 400, NeedsClaim: true, Quota: 9, PerUser: 9})
				cheap := s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 9, PerUser: 9})
				s.claim(cheap, 42, 1, 10)
				s.claim(dear, 42, 2, 20)
				s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 300, Quota: 1})
				s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200, Quota: 1})
			},
			sales: []string{sale(1001, "e", 7, 1), sale(1001, "f", 7, 9)},
			want:  []string{"7:1x400", "7:1x400 7:1x100 7:1x200 7:1x300 7:5x500"},
			left: "claim|used|1|0, claim|used|2|0, quota|1, quota|1, quota|1, quota|2, user|42|1, user|42|1, user|42|1, user|42|2, " +
				"use|0|42|1|0, use|0|42|1|0, use|1|42|1|0, use|1|42|1|0, use|1|42|1|0",
		},
		{
			name: "what a claim has left stays its person's", given: func(s *shop) {
				s.claim(s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 9, PerUser: 9}), 42, 3, 10)
			},
			sales: []string{sale(1001, "e", 7, 1), event(1001, "f", `"userId":43`, items(7, 1))},
			want:  []string{"7:1x100", "7:1x500"},
			left:  "claim|held|3|2, quota|3, user|42|3, use|1|42|1|0",
		},
		{
			name: "several claims of one promotion are one line", given: func(s *shop) {
				p := s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 9, PerUser: 9})
				s.claim(p, 42, 1, 10)
				s.claim(p, 42, 1, 20)
			},
			sales: []string{sale(1001, "e", 7, 3)}, want: []string{"7:2x100 7:1x500"},
			left: "claim|used|1|0, claim|used|1|0, quota|2, user|42|2, use|1|42|1|0, use|1|42|1|0",
		},
		{
			name: "a claim outlives its promotion", given: func(s *shop) {
				paused := s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 9, PerUser: 9})
				ended := s.promotion(promotion.Promotion{ProductID: 8, PriceMinor: 1, NeedsClaim: true, EndsAt: hour(0), StartsAt: hour(-1)})
				s.claim(paused, 42, 1, 10)
				s.claim(ended, 42, 1, 10)
				s.become(paused, promotion.Paused)
				s.become(ended, promotion.Ended)
			},
			sales: []string{sale(1001, "e", 7, 1, 8, 1)}, want: []string{"7:1x100 8:1x1"},
			left: "claim|used|1|0, claim|used|1|0, quota|1, quota|1, user|42|1, user|42|1, use|1|42|1|0, use|1|42|1|0",
		},
		{
			name: "a claim is good before the moment at which it expires", given: func(s *shop) {
				p := s.promotion(promotion.Promotion{NeedsClaim: true, ClaimTTLS: 10, Quota: 9})
				s.claim(p, 42, 1, 10)
				s.claim(p, 43, 1, 9)
			},
			sales: []string{sale(1001, "e", 7, 1), event(1001, "f", `"userId":43`, items(7, 1))},
			want:  []string{"7:1x500", "7:1x100"},
			left:  "claim|held|1|1, claim|used|1|0, quota|2, user|42|1, user|43|1, use|1|43|1|0",
		},
		{
			name: "a claim that was made after the event came is for another door", given: func(s *shop) {
				p := s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 9, PerUser: 9})
				s.claim(p, 42, 1, -1)
				s.claim(p, 42, 1, 0)
			},
			sales: []string{sale(1001, "e", 7, 2)}, want: []string{"7:1x100 7:1x500"},
			left: "claim|held|1|1, claim|used|1|0, quota|2, user|42|2, use|1|42|1|0",
		},
		{
			name: "paused, over, yet to come, of another site or dearer than the price in force: not at this door", given: func(s *shop) {
				s.exec("UPDATE cabinets SET site = 'HQ'")
				s.become(s.promotion(promotion.Promotion{}), promotion.Paused)
				s.become(s.promotion(promotion.Promotion{}), promotion.Ended)
				s.promotion(promotion.Promotion{StartsAt: hour(-2), EndsAt: receivedAt})
				s.promotion(promotion.Promotion{StartsAt: receivedAt.Add(time.Millisecond), EndsAt: hour(1)})
				s.promotion(promotion.Promotion{Site: "branch"})
				s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 500})
				s.claim(s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 501, NeedsClaim: true}), 42, 1, 5)
				s.claim(s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 100, NeedsClaim: true, Site: "branch"}), 42, 1, 5)
			},
			sales: []string{sale(1001, "e", 7, 1)}, want: []string{"7:1x500"},
			left: "claim|held|1|1, claim|held|1|1, quota|0, quota|0, quota|0, quota|0, quota|0, quota|0, quota|1, quota|1, user|42|1, user|42|1",
		},
		{
			name: "of the site, from its first moment on", given: func(s *shop) {
				s.exec("UPDATE cabinets SET site = 'HQ'")
				s.promotion(promotion.Promotion{Site: "HQ", StartsAt: receivedAt, EndsAt: hour(1)})
			},
			sales: []string{sale(1001, "e", 7, 1)}, want: []string{"7:1x100"},
			left: "quota|1, user|42|1, use|0|42|1|0",
		},
		{
			name: "nobody known, and staff", given: func(s *shop) { s.promotion(promotion.Promotion{}) },
			sales: []string{event(1001, "e", items(7, 1)), event(1001, "f", `"userId":42,"kind":"restock"`, items(7, 1))},
			want:  []string{"7:1x500", ""},
			left:  "quota|0",
		},
		{
			name: "an order that waits for review", given: func(s *shop) { s.promotion(promotion.Promotion{}) },
			sales: []string{sale(1001, "e", 7, 2, 99, 1)}, want: []string{"7:1x100 7:1x500"},
			left: "quota|1, user|42|1, use|0|42|1|0",
		},
		{
			name: "for nothing", given: func(s *shop) { s.promotion(promotion.Promotion{ProductID: 8, PriceMinor: 0}) },
			sales: []string{sale(1001, "e", 8, 1)}, want: []string{"8:1x0"},
			left: "quota|1, user|42|1, use|0|42|1|0",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 50, 8, 50)
			c.given(s)
			var got []string
			for _, r := range s.receipts(1001, c.sales...) {
				got = append(got, linesOf(r))
			}
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := gocmp.Diff(c.left, s.counters()); diff != "" {
				t.Error(diff)
			}
			products := s.count("(SELECT DISTINCT order_id, product_id FROM order_lines) x", "1")
			if n := s.count("stock_movements", "kind = 'sale'"); n != products {
				t.Errorf("%d movements for %d products of orders", n, products)
			}
			for _, line := range s.rows(`SELECT evidence FROM order_lines l JOIN promotion_uses USING (device_id, order_id)
				WHERE unit_price_minor IN (SELECT price_minor FROM promotions)`) {
				if !strings.Contains(line, `"rule":"cabinet_count"`) || !strings.Contains(line, `"promotionId":"`) {
					t.Errorf("a line at a promotion's price has the evidence %s", line)
				}
			}
			for i, r := range s.receipts(1001, c.sales...) {
				if linesOf(r) != got[i] || !r.Duplicate {
					t.Errorf("sent again: %+v", r)
				}
			}
			s.audited()
		})
	}
}

// The moment whose prices hold is that at which the door was opened.
func TestPromotionsOfTheMomentAtWhichTheDoorWasOpened(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 50)
	opened := receivedAt.Add(-time.Minute)
	s.promotion(promotion.Promotion{StartsAt: opened, EndsAt: opened.Add(time.Second)})
	p := s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200, NeedsClaim: true, ClaimTTLS: 30})
	s.claim(p, 42, 1, 80) // expires between the opening and the receipt
	session := s.openAt(door.Request{DeviceID: 1001, UserID: 42, Kind: cabinet.KindSale}, opened)
	r := s.receipts(1001, event(1001, session.CloseEventID, `"userId":42`, items(7, 3)))[0]
	if got := linesOf(r); got != "7:1x200 7:1x100 7:1x500" {
		t.Error(got)
	}
	s.audited()
}

// Two doors of a person at the same time, in two processes: one gets what the limit leaves.
func TestTwoDoorsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 50)
	s.cabinet(1002, 7, 50)
	p := s.promotion(promotion.Promotion{Quota: 100})
	claimed := s.promotion(promotion.Promotion{ProductID: 8, PriceMinor: 1, NeedsClaim: true, Quota: 100})
	services := []*shop{s, s.another(nil)}
	for user := int64(100); user < 130; user++ {
		s.claim(claimed, user, 1, 5)
		lines := make([]string, 2)
		var both sync.WaitGroup
		for n, device := range []int64{1001, 1002} {
			both.Go(func() {
				answer := services[n].settle(device, event(device, "e"+fmt.Sprint(user), fmt.Sprintf(`"userId":%d`, user), items(7, 1, 8, 1)))[0]
				lines[n] = linesOf(*answer.Receipt)
			})
		}
		both.Wait()
		got := strings.Join(lines, " ")
		for _, once := range []string{"7:1x100", "7:1x500", "8:1x1", "8:1x300"} {
			if strings.Count(got+" ", once+" ") != 1 {
				t.Errorf("user %d: %s", user, got)
			}
		}
	}
	if n := s.rows("SELECT taken FROM promotion_quota ORDER BY promotion_id"); !slices.Equal(n, []string{"30", "30"}) {
		t.Errorf("promotions %d and %d have taken %s", p.PromotionID, claimed.PromotionID, n)
	}
	s.audited()
}

// A claim is picked up at the very moment at which it expires, a thousand times: one of both has it.
func TestPickUpOrExpiry(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 2000)
	p := s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 1000})
	const rounds = 1000
	used, expired, random := 0, 0, rand.New(rand.NewPCG(1, 2))
	for user := int64(1); user <= rounds; user++ {
		c := s.claim(p, user, 1, 5)
		var both sync.WaitGroup
		var ended bool
		both.Go(func() {
			for range random.IntN(16) { // somewhere in the transaction of the door
				s.count("marks", "name = 'promotions'")
			}
			ended = s.end(c.ClaimID, promotion.Expired)
		})
		answer := s.settle(1001, event(1001, fmt.Sprint("e", user), fmt.Sprintf(`"userId":%d`, user), items(7, 1)))[0]
		both.Wait()
		lines := "7:1x100"
		if ended {
			expired, lines = expired+1, "7:1x500"
		} else {
			used++
		}
		if answer.Receipt == nil || linesOf(*answer.Receipt) != lines {
			t.Errorf("user %d, expired %v: %+v", user, ended, answer)
		}
	}
	if n := s.rows("SELECT taken FROM promotion_quota")[0]; n != fmt.Sprint(used) || s.count("claims", "state = 'expired'") != expired {
		t.Errorf("%s taken, %d used and %d expired", n, used, expired)
	}
	t.Logf("%d used, %d expired", used, expired)
	s.audited()
}

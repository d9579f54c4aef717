package settlement_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/promotion"
	"doortab/settlement"
)

// promoted is a shop in which user 42 has a claim of two units of product 7 and may have one without a claim, and has bought one.
func promoted(t *testing.T) *shop {
	s := newShop(t)
	s.cabinet(1001, 7, 100)
	s.cabinet(1002, 7, 100)
	s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 200, Quota: 9, PerUser: 2})
	s.receipts(1001, sale(1001, "before", 7, 1))
	s.claim(s.promotion(promotion.Promotion{NeedsClaim: true, Quota: 9, PerUser: 2}), 42, 2, 5)
	return s
}

const promotedSale = "7:2x100 7:1x200 7:1x500" // of four units

// For each statement that promotions add to the transaction a trigger makes it fail.
func TestEachStatementOfPromotionsThatFailsTakesAllOfItsEventBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, moment, row, user string }{
		"quota":         {"promotion_quota", "UPDATE", "NEW.taken = 2", "42"},
		"person":        {"promotion_users", "UPDATE", "NEW.user_id = 42", "42"},
		"fresh person":  {"promotion_users", "INSERT", "NEW.user_id = 43", "43"},
		"claim":         {"claims", "UPDATE", "NEW.user_id = 42", "42"},
		"uses":          {"promotion_uses", "INSERT", "NEW.user_id = 42 AND NEW.claim_id = 0", "42"},
		"use of claims": {"promotion_uses", "INSERT", "NEW.claim_id <> 0", "42"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := promoted(t)
			was, counters := s.everythingOf(1001), s.counters()
			s.exec(fmt.Sprintf(`CREATE TRIGGER broken BEFORE %s ON %s FOR EACH ROW
				IF %s THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted'; END IF`, c.moment, c.table, c.row))
			victim := event(1001, "bad", `"userId":`+c.user, items(7, 4))
			group := deliveriesOf(1002, event(1002, "g1", items(7, 1)), event(1002, "g2", items(7, 1)))
			answers := s.Settle(t.Context(), slices.Insert(group, 1, deliveriesOf(1001, victim)...))
			if a := answers[1]; a.Err == nil || !a.Unwritable() || answers[0].Err != nil || answers[2].Err != nil {
				t.Errorf("%+v", answers)
			}
			if diff := gocmp.Diff(was, s.everythingOf(1001)) + gocmp.Diff(counters, s.counters()); diff != "" {
				t.Errorf("something of it remains:\n%s", diff)
			}
			s.exec("DROP TRIGGER broken")
			want := map[string]string{"42": promotedSale, "43": "7:2x200 7:2x500"}[c.user]
			if got := linesOf(s.receipts(1001, victim)[0]); got != want {
				t.Errorf("once the trigger is gone: %s", got)
			}
			s.audited()
		})
	}
}

// A row of promotions that somebody holds keeps back those who need it, and nobody else.
func TestAHeldRowOfPromotionsHoldsUpItsOwnEventsAlone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{
		"quota":  "SELECT * FROM promotion_quota FOR UPDATE",
		"person": "SELECT * FROM promotion_users WHERE user_id = 42 FOR UPDATE",
		"claim":  "SELECT * FROM claims FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := promoted(t)
			release := s.held(row)
			var group []settlement.Delivery
			for n := range 6 {
				group = append(group, deliveriesOf(1002, event(1002, fmt.Sprint("other", n), items(7, 1)))...)
				group = append(group, deliveriesOf(1001, sale(1001, fmt.Sprint("e", n), 7, 4))...)
			}
			var answers []settlement.Answer
			within(t, 3*database.LockWait, "a group with six events of one held row", func() { answers = s.Settle(t.Context(), group) })
			for n, a := range answers {
				if held := n%2 == 1; held != (a.Err != nil) || held != a.Alone() || a.Unwritable() {
					t.Errorf("event %d: %+v", n, a)
				}
			}
			release()
			if got := linesOf(s.receipts(1001, sale(1001, "e0", 7, 4))[0]); got != promotedSale {
				t.Errorf("after the release: %s", got)
			}
			s.audited()
		})
	}
}

func TestTheAnswerToCommitIsLostWithPromotions(t *testing.T) {
	t.Parallel()
	s := promoted(t)
	proxy := newProxy(t, s.dsn)
	far := &shop{t: t, db: databasetest.Open(t, proxy.dsn), dsn: proxy.dsn}
	far.serve(nil)
	proxy.losing.Store(1)
	r := far.receipts(1001, sale(1001, "e", 7, 4))[0]
	if proxy.lost.Load() < 1 || r.Duplicate || linesOf(r) != promotedSale {
		t.Errorf("%d answers lost, %+v", proxy.lost.Load(), r)
	}
	want := "claim|used|2|0, quota|2, quota|2, user|42|2, user|42|2, use|0|42|1|0, use|0|42|1|0, use|1|42|2|0"
	if diff := gocmp.Diff(want, s.counters()); diff != "" {
		t.Error(diff)
	}
	s.audited()
}

// Many doors in two processes want the last units: as many get one as there are, and every sale is settled.
func TestTheLastUnits(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	services := []*shop{s, s.another(nil)}
	const doors, quota = 48, 17
	s.promotion(promotion.Promotion{Quota: quota})
	for n := range int64(doors) {
		s.cabinet(1001+n, 7, 10)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	cheap, dear := 0, 0
	for n := range int64(8) {
		all.Go(func() {
			for round := range int64(doors / 8) {
				device := 1001 + n*doors/8 + round
				a := services[n%2].settle(device, event(device, "e", fmt.Sprintf(`"userId":%d`, device), items(7, 2)))[0]
				mu.Lock()
				switch {
				case a.Receipt == nil:
					t.Errorf("%d: %v", device, a.Err)
				case linesOf(*a.Receipt) == "7:1x100 7:1x500":
					cheap++
				case linesOf(*a.Receipt) == "7:2x500":
					dear++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if cheap != quota || dear != doors-quota || s.rows("SELECT taken FROM promotion_quota")[0] != fmt.Sprint(quota) {
		t.Errorf("%d of %d got a unit, %d paid the full price", cheap, doors, dear)
	}
	s.audited()
}

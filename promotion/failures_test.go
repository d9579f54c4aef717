package promotion_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

// Each statement of a claim, and of its end, fails once by a trigger.
func TestAStatementThatFailsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	take := func(s shop, p promotion.Promotion, _ promotion.Claim) error {
		_, err := s.tryTake(p, ask(1, 2, 1), ask(2, 1, 1))
		return err
	}
	giveBack := func(s shop, _ promotion.Promotion, c promotion.Claim) error {
		return s.inTx(func(tx *gorm.DB) error {
			_, err := promotion.GiveBack(tx, c, promotion.Returned, database.Now())
			return err
		})
	}
	expire := func(s shop, p promotion.Promotion, c promotion.Claim) error {
		return s.inTx(func(tx *gorm.DB) error {
			_, err := promotion.Expire(tx, p.PromotionID, []int64{c.ClaimID}, c.ExpiresAt)
			return err
		})
	}
	pause := func(s shop, p promotion.Promotion, _ promotion.Claim) error {
		_, err := s.transition(p, promotion.Paused)
		return err
	}
	create := func(s shop, _ promotion.Promotion, _ promotion.Claim) error {
		_, err := s.create(cola(5, 1))
		return err
	}
	for _, c := range []struct {
		name, moment, table string
		do                  func(shop, promotion.Promotion, promotion.Claim) error
	}{
		{"take", "UPDATE", "promotion_quota", take},
		{"take", "INSERT", "promotion_users", take},
		{"take", "UPDATE", "promotion_users", take},
		{"take", "INSERT", "claims", take},
		{"give back", "UPDATE", "promotion_quota", giveBack},
		{"give back", "UPDATE", "promotion_users", giveBack},
		{"give back", "UPDATE", "claims", giveBack},
		{"expire", "UPDATE", "promotion_quota", expire},
		{"expire", "UPDATE", "promotion_users", expire},
		{"expire", "UPDATE", "claims", expire},
		{"pause", "UPDATE", "promotions", pause},
		{"pause", "INSERT", "audit_log", pause},
		{"pause", "UPDATE", "marks", pause},
		{"create", "INSERT", "promotions", create},
		{"create", "INSERT", "promotion_quota", create},
		{"create", "INSERT", "audit_log", create},
	} {
		t.Run(strings.Join([]string{c.name, c.moment, c.table}, " "), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			p := s.live(cola(5, 5))
			claim := s.take(p, ask(1, 1, 2))[0]
			before := s.everything()
			s.exec(fmt.Sprintf("CREATE TRIGGER broken BEFORE %s ON %s FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted'",
				c.moment, c.table))
			if err := c.do(s, p, claim); err == nil || !strings.Contains(err.Error(), "planted") {
				t.Errorf("it did not fail: %v", err)
			}
			if after := s.everything(); after != before {
				t.Errorf("%s\nbecame\n%s", before, after)
			}
			s.exec("DROP TRIGGER broken")
			if err := c.do(s, p, claim); err != nil {
				t.Errorf("without the trigger: %v", err)
			}
			if s.everything() == before {
				t.Error("without the trigger nothing changed")
			}
			s.checkBooks(p)
		})
	}
}

// A claim that came through Redis, of units that the quota has not as taken: it fails for good, so that it can be kept and shown, and
// is not tried again for ever as if another writer were in the way.
func TestAQuotaThatIsWrongIsNoConflict(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p, e := s.opened(10, 1)
	if _, err := s.lease(p, e.Epoch, nil, promotion.Want{Need: 5}); err != nil {
		t.Fatal(err)
	}
	s.take(p, streamed(e, 0, 1, 1))
	s.exec("UPDATE promotions SET per_user = 1 WHERE promotion_id = ?", p.PromotionID)
	s.exec("UPDATE promotion_quota SET taken = 0 WHERE promotion_id = ?", p.PromotionID)
	again := streamed(e, 0, 1, 1)
	again.TokenID[15]++
	_, err := s.tryTake(p, again) // beyond the limit by now: its unit would go back to the quota
	if err == nil || database.ClassOf(err) != database.Permanent || !strings.Contains(err.Error(), "doortab reconcile") {
		t.Errorf("%v, class %v", err, database.ClassOf(err))
	}
}

// everything is what the tables of promotions hold.
func (s shop) everything() string {
	s.Helper()
	var all strings.Builder
	for _, table := range []string{"promotions", "promotion_quota", "promotion_users", "claims", "marks", "audit_log"} {
		var rows []map[string]any
		if err := s.db.Read(s.Context()).Raw("SELECT * FROM " + table + " ORDER BY 1, 2").Scan(&rows).Error; err != nil {
			s.Fatal(err)
		}
		fmt.Fprintln(&all, table, rows)
	}
	return all.String()
}

// A door, the sweep and the person's own return meet at a claim's last moment, a thousand times: one of them has it.
func TestOneOfUseExpiryAndReturnWins(t *testing.T) {
	t.Parallel()
	const persons, workers = 1000, 8
	s := newShop(t)
	p := s.live(cola(persons, 1))
	asks := make([]promotion.Ask, persons)
	for n := range asks {
		asks[n] = ask(int64(1+n), 1, 1)
	}
	claims := s.take(p, asks...)
	queue := make(chan promotion.Claim)
	var racing sync.WaitGroup
	for range workers {
		racing.Go(func() {
			for c := range queue {
				s.race(t, c)
			}
		})
	}
	for _, c := range claims {
		queue <- c
	}
	close(queue)
	racing.Wait()

	s.checkBooks(p)
	count := func(state string) int64 { return s.number("SELECT COUNT(*) FROM claims WHERE state = ?", state) }
	used, ended := count("used"), count("expired")+count("returned")
	if used+ended != persons || used == 0 || ended == 0 {
		t.Errorf("%d used and %d expired or returned of %d", used, ended, persons)
	}
	if uses := s.number("SELECT COUNT(*) FROM promotion_uses"); uses != used {
		t.Errorf("%d claims used, %d uses", used, uses)
	}
	if taken := s.number("SELECT taken FROM promotion_quota"); taken != used {
		t.Errorf("%d units taken, %d used", taken, used)
	}
}

// race lets a door use a claim while it expires and, for every third, is returned.
func (s shop) race(t *testing.T, c promotion.Claim) {
	last := c.ExpiresAt.Add(-time.Millisecond)
	var won [3]bool
	var runners sync.WaitGroup
	run := func(n int, work func(tx *gorm.DB) (bool, error)) {
		runners.Go(func() {
			err := s.inTx(func(tx *gorm.DB) (err error) {
				won[n], err = work(tx)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	contest := []func(*gorm.DB) (bool, error){
		func(tx *gorm.DB) (bool, error) { return s.use(tx, c, last) },
		func(tx *gorm.DB) (bool, error) {
			ended, err := promotion.Expire(tx, c.PromotionID, []int64{c.ClaimID}, c.ExpiresAt)
			return len(ended) == 1, err
		},
	}
	if c.UserID%3 == 0 {
		run(0, contest[0])
		run(1, contest[1])
		run(2, func(tx *gorm.DB) (bool, error) { return returned(tx, c.ClaimID) })
	} else { // one comes when the other has written and not committed yet
		first := int(c.UserID % 2)
		written := make(chan struct{})
		tell := sync.OnceFunc(func() { close(written) })
		run(first, func(tx *gorm.DB) (bool, error) {
			defer tell()
			return contest[first](tx)
		})
		<-written
		run(1-first, contest[1-first])
	}
	runners.Wait()
	if winners := fmt.Sprint(won); strings.Count(winners, "true") != 1 {
		t.Errorf("claim of user %d: door, expiry and return: %s", c.UserID, winners)
	}
}

// use has a door of the claim's person take one unit at a moment.
func (s shop) use(tx *gorm.DB, c promotion.Claim, at time.Time) (bool, error) {
	offers, err := promotion.ReadOffers(tx, at)
	if err != nil {
		return false, err
	}
	bought := promotion.Purchase{
		DeviceID: 1001, OrderID: c.ClaimID, UserID: c.UserID, ProductID: 7, Quantity: 1, PriceMinor: 500, At: at, ReportedAt: at,
	}
	doors, err := promotion.OpenDoors(tx, offers, []promotion.Purchase{bought}, database.Optimistic)
	if err != nil {
		return false, err
	}
	portions := doors.Price(bought)
	return len(portions) == 1, doors.Write(tx, at)
}

func returned(tx *gorm.DB, claimID int64) (bool, error) {
	c, err := promotion.ReadClaim(tx, claimID)
	if err != nil || c.State != promotion.Held {
		return false, err
	}
	_, err = promotion.GiveBack(tx, c, promotion.Returned, database.Now())
	return err == nil, err
}

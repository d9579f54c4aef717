package claims_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/services/servicestest"
)

func TestCountersAreReadyBeforeTheFirstShopper(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	f.another(f.url) // both see what is warming
	drafts := map[string]promotion.Promotion{}
	for name, change := range map[string]string{
		"warming":          "state = 'warming', way = 'redis'",
		"begins soon":      "starts_at = NOW(3) + INTERVAL 30 SECOND, way = 'redis'",
		"begins later":     "starts_at = NOW(3) + INTERVAL 30 MINUTE, way = 'redis'",
		"is a draft":       "state = 'draft', way = 'redis'",
		"is paused":        "state = 'paused', way = 'redis'",
		"by the database":  "state = 'warming'",
		"over":             "state = 'warming', way = 'redis', ends_at = NOW(3)",
		"needs no claim":   "state = 'warming', way = 'redis', needs_claim = FALSE",
		"live and running": "way = 'redis'",
	} {
		p := f.shop.live(100, 1)
		f.exec("UPDATE promotions SET "+change+" WHERE promotion_id = ?", p.PromotionID)
		drafts[name] = p
	}
	warms := []string{"warming", "begins soon", "live and running"}
	for _, name := range warms {
		f.until(name+" has counters", func() bool { return f.epochs(drafts[name], "'open'") == 1 })
	}
	for name, p := range drafts {
		n := f.number("SELECT COUNT(*) FROM promotion_epochs WHERE promotion_id = ?", p.PromotionID)
		if n != 0 && !slices.Contains(warms, name) {
			t.Errorf("%s: %d epochs", name, n)
		}
	}
	warm := drafts["warming"]
	_, err := f.Claim(t.Context(), f.request(warm, 1, 1))
	refusedAs(t, err, promotion.NotLive)
	err = f.db.InTx(t.Context(), func(tx *gorm.DB) error {
		_, err := promotion.Transition(tx, warm.PromotionID, promotion.Live, database.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var c promotion.Claim
	user := int64(1)
	f.until("a claim through Redis", func() bool { // until then what is known as warming asks the database
		user++
		c, err = f.Claim(t.Context(), f.request(warm, user, 1))
		return err == nil && c.Source != nil
	})
	if c.Source.Epoch != 1 {
		t.Errorf("%+v: not of the epoch that was warmed", c)
	}
	f.checkBooks(warm)
}

// A shopper who goes while the counters of all are being loaded leaves them to be loaded.
func TestAShopperWhoGoesLeavesNoEpochHalfLoaded(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	p := f.shop.live(100, 1)
	tx, err := f.db.SQL().BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.Exec("SELECT * FROM promotion_quota WHERE promotion_id = ? FOR UPDATE", p.PromotionID)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE promotions SET way = 'redis' WHERE promotion_id = ?", p.PromotionID)
	shopper, leave := context.WithCancel(t.Context())
	went := make(chan error, 1)
	request := f.request(p, 1, 1)
	go func() {
		_, err := f.Claim(shopper, request)
		went <- err
	}()
	f.until("somebody begins an epoch", func() bool {
		return f.number(`SELECT COUNT(*) FROM information_schema.processlist
			WHERE db = DATABASE() AND info LIKE '%FROM promotion_quota%FOR UPDATE' AND id <> CONNECTION_ID()`) > 0
	})
	leave()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-went; !errors.Is(err, context.Canceled) {
		t.Errorf("who went heard %v", err)
	}
	f.until("counters", func() bool { return f.epochs(p, "'open'") == 1 })
	if n := f.epochs(p, "'warming', 'open', 'draining', 'done'"); n != 1 {
		t.Errorf("%d epochs were begun", n)
	}
}

func TestAnEpochThatWarmsWhenItsPromotionIsOverEnds(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	p := f.shop.live(100, 1)
	f.exec("UPDATE promotions SET way = 'redis', ends_at = NOW(3) WHERE promotion_id = ?", p.PromotionID)
	f.exec("INSERT INTO promotion_epochs (promotion_id, epoch, state, buckets, created_at) VALUES (?, 1, 'warming', 4, NOW(3))", p.PromotionID)
	f.until("its end", func() bool { return f.epochs(p, "'done'") == 1 })
}

func TestAnEpochWhoseProcessDiedWhileItWarmedIsBegunAnew(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	p := f.shop.live(100, 1)
	f.exec("INSERT INTO promotion_epochs (promotion_id, epoch, state, buckets, created_at) VALUES (?, 1, 'warming', 4, NOW(3))", p.PromotionID)
	f.exec("UPDATE promotions SET way = 'redis' WHERE promotion_id = ?", p.PromotionID)
	f.until("another epoch", func() bool { return f.epochs(p, "'open'") == 1 })
	f.settled(p)
}

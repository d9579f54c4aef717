package claims_test

import (
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

func TestAnEpochWhoseProcessDiedWhileItWarmedIsBegunAnew(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	p := f.shop.live(100, 1)
	f.exec("INSERT INTO promotion_epochs (promotion_id, epoch, state, buckets, created_at) VALUES (?, 1, 'warming', 4, NOW(3))", p.PromotionID)
	f.exec("UPDATE promotions SET way = 'redis' WHERE promotion_id = ?", p.PromotionID)
	f.until("another epoch", func() bool { return f.epochs(p, "'open'") == 1 })
	f.settled(p)
}

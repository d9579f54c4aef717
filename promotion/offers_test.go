package promotion_test

import (
	"testing"
	"time"

	"doortab/database"
	"doortab/promotion"
)

func TestOffersAreKeptUnderTheirMark(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.live(cola(10, 1))
	var cache promotion.OfferCache
	now := database.Now()
	step := func(name string, mark int64, later time.Duration, want bool) {
		t.Helper()
		now = now.Add(later)
		offers, err := cache.Read(s.db.Read(t.Context()), mark, now)
		if err != nil || offers.Of(7) != want {
			t.Errorf("%s: %v, error %v", name, offers, err)
		}
	}
	step("read first", 1, 0, true)
	s.exec("UPDATE promotions SET product_id = 8")
	step("kept", 1, time.Second, true)
	step("a later mark", 2, 0, false)
	s.exec("UPDATE promotions SET product_id = 7")
	step("kept again", 2, time.Second, false)
	step("an earlier mark, as of a restored database", 1, 0, true)
	s.exec("UPDATE promotions SET product_id = 8")
	step("kept for nobody for ever", 1, time.Minute, false)
}

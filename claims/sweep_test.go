package claims_test

import (
	"testing"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/services"
	"doortab/services/servicestest"
)

func (f fast) become(p promotion.Promotion, to promotion.State) {
	f.Helper()
	err := f.db.InTx(f.Context(), func(tx *gorm.DB) error {
		_, err := promotion.Transition(tx, p.PromotionID, to, database.Now())
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
}

func TestCountersFollowThePromotionsState(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(10, 1)
	f.until("counters before anybody claims", func() bool { return f.epochs(p, "'open'") == 1 })
	f.become(p, promotion.Paused)
	for user := range int64(20) { // within the time that the promotion is cached
		_, err := f.Claim(t.Context(), f.request(p, 1+user, 1))
		refusedAs(t, err, promotion.NotLive)
	}
	f.settled(p)
	if n := f.epochs(p, "'open', 'warming', 'draining'"); n != 0 {
		t.Errorf("%d epochs of a promotion that is paused", n)
	}
	f.checkBooks(p)
	f.become(p, promotion.Live)
	f.until("fresh counters", func() bool { return f.epochs(p, "'open'") == 1 })
	f.exec("UPDATE promotions SET ends_at = ? WHERE promotion_id = ?", database.Now(), p.PromotionID)
	f.until("the end of the counters", func() bool { return f.epochs(p, "'done'") == 2 })
	if taken := f.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); taken != 0 {
		t.Errorf("%d units lie in leases", taken)
	}
}

// A Redis that comes back empty is no reason to wait for a shopper: until then its units would lie in leases.
func TestCountersThatRedisLostAreReplaced(t *testing.T) {
	t.Parallel()
	own := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
	f := newFast(t, own.URL(), 4)
	p := f.live(40, 1)
	f.open(p)
	if err := f.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	f.until("a second epoch", func() bool {
		e, err := promotion.CurrentEpoch(f.db.Read(t.Context()), p.PromotionID)
		return err == nil && e.Epoch == 2 && e.State == promotion.EpochOpen
	})
	f.settled(p)
	f.checkBooks(p)
	f.checkRedis(p)
}

// Somebody writes over all that Redis keeps of one promotion: it goes on, and so do the others.
func TestKeysOfAnotherKindCostOnePromotionItsCounters(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	hit, other := f.live(40, 1), f.live(40, 1)
	f.open(hit)
	f.open(other)
	f.settled(hit)
	for bucket := range f.buckets {
		for _, name := range []string{"units", "users", "tokens", "stream"} {
			if err := f.client.Set(t.Context(), f.bucketKey(hit, 1, bucket)+name, "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for user := range int64(5) {
		if _, err := f.Claim(t.Context(), f.request(hit, 1+user, 1)); err != nil {
			t.Errorf("user %d: %v", 1+user, err)
		}
		if c, err := f.Claim(t.Context(), f.request(other, 1+user, 1)); err != nil || c.Source == nil {
			t.Errorf("user %d of the other: %+v, %v", 1+user, c, err)
		}
	}
	f.until("fresh counters", func() bool { return f.epochs(hit, "'done'") == 1 && f.epochs(hit, "'open'") == 1 })
	f.settled(hit)
	f.checkBooks(hit)
	f.checkRedis(hit)
}

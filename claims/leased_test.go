package claims_test

import (
	"errors"
	"testing"
	"time"

	"doortab/claims"
	"doortab/promotion"
	"doortab/services/servicestest"
)

// claimAll has users claim a unit each, one after the other, and returns how many got one.
func (f fast) claimAll(by *claims.Service, p promotion.Promotion, users int64) (got int64) {
	f.Helper()
	for user := range users {
		_, err := by.Claim(f.Context(), f.request(p, 1+user, 1))
		if err == nil {
			got++
		} else if !errors.Is(err, promotion.SoldOut) && !errors.Is(err, promotion.LimitReached) {
			f.Fatalf("user %d: %v", 1+user, err)
		}
	}
	return got
}

// An operator may start the service again without Redis.
func TestAProcessWithoutRedisSellsWhatIsLeased(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	p := f.live(40, 1)
	f.open(p)
	f.Close()
	if got := f.claimAll(serve(t, f.db), p, 45); got != 40 {
		t.Errorf("%d of 40 units are claimed", got)
	}
	f.checkBooks(p)
}

// What a process knows of a promotion is up to a second old; its first shoppers don't wait for that.
func TestThePromotionThatHasJustBegunSellsAll(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 4)
	p := f.live(40, 1)
	f.exec("UPDATE promotions SET state = 'warming' WHERE promotion_id = ?", p.PromotionID)
	f.until("its counters", func() bool { return f.epochs(p, "'open'") == 1 })
	_, err := f.Claim(t.Context(), f.request(p, 1, 1))
	refusedAs(t, err, promotion.NotLive)
	f.become(p, promotion.Live)
	if got := f.claimAll(f.Service, p, 45); got != 40 {
		t.Errorf("%d of 40 units are claimed", got)
	}
	f.checkBooks(p)
}

func TestAPromotionThatStoppedGivesNothingMore(t *testing.T) {
	t.Parallel()
	for _, stop := range []promotion.State{promotion.Paused, promotion.Ended} {
		t.Run(string(stop), func(t *testing.T) {
			t.Parallel()
			f := newFast(t, servicestest.Redis(t).URL(), 4)
			p := f.live(40, 1)
			f.open(p)
			f.become(p, stop)
			for user := range int64(10) {
				_, err := f.Claim(t.Context(), f.request(p, 101+user, 1))
				refusedAs(t, err, promotion.NotLive)
			}
			f.checkBooks(p)
		})
	}
}

// A sale that the database refuses, since its person has claimed elsewhere meanwhile, gives its unit back: nobody hears that all is
// sold for the rest of the second for which buckets know that.
func TestAUnitThatTheDatabaseRefusedIsSold(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(3, 1)
	f.open(p)
	if _, err := serve(t, f.db).Claim(t.Context(), f.request(p, 1, 1)); err != nil {
		t.Fatal(err)
	}
	f.lease(p, 1)
	buckets, err := promotion.Buckets(f.db.Read(t.Context()), p.PromotionID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range buckets {
		err := f.client.HSet(t.Context(), f.bucketKey(p, 1, b.Bucket)+"units", "units", b.Left(), "granted", b.Granted,
			"low", 1, "until", time.Now().Add(time.Hour).UnixMilli()).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = f.Claim(t.Context(), f.request(p, 1, 1))
	refusedAs(t, err, promotion.LimitReached)
	if got := f.claimAll(f.Service, p, 10); got != 2 {
		t.Errorf("%d of 2 units are claimed", got)
	}
	f.checkBooks(p)
}

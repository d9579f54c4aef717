package claims_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"doortab/claims"
	"doortab/promotion"
	"doortab/services/servicestest"
)

// patient is a budget for a busy machine.
const patient = 10 * time.Second

// fast is a service that takes claims the Redis way, with what it stands on.
type fast struct {
	shop
	url     string
	client  redis.UniversalClient
	buckets int
}

func newFast(t *testing.T, url string, buckets int) fast {
	t.Helper()
	s := newShop(t)
	f := fast{shop: s, url: url, buckets: buckets}
	f.client = client(t, url)
	t.Cleanup(func() { _ = f.client.Close() })
	f.Service, _ = f.another(url)
	return f
}

func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	if strings.Contains(url, "addr=") {
		o, err := redis.ParseClusterURL(url)
		if err != nil {
			t.Fatal(err)
		}
		return redis.NewClusterClient(o)
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return redis.NewClient(o)
}

// another is one more process on the same database and Redis, or on the way to it that url says. kill ends it.
func (f fast) another(url string) (service *claims.Service, kill func()) {
	f.Helper()
	var once sync.Once
	own, err := claims.OpenRedis(claims.RedisConfig{URL: url, Installation: f.dsn, Budget: patient, Logger: slog.Default()})
	if err != nil {
		f.Fatal(err)
	}
	db := databaseOf(f.T, f.shop)
	service = claims.New(claims.Config{DB: db, Redis: own, Buckets: f.buckets, Logger: slog.Default()})
	kill = func() {
		once.Do(func() {
			service.Close()
			_ = own.Close()
		})
	}
	f.Cleanup(kill)
	return service, kill
}

// live is a promotion that goes the Redis way.
func (f fast) live(quota, perUser int64) promotion.Promotion {
	f.Helper()
	p := f.shop.live(quota, perUser)
	f.exec("UPDATE promotions SET way = 'redis' WHERE promotion_id = ?", p.PromotionID)
	return p
}

// checkBooks compares quota and person counters to what they stand for, leases counted.
func (f fast) checkBooks(p promotion.Promotion) {
	f.Helper()
	id := p.PromotionID
	held := f.number("SELECT COALESCE(SUM(left_quantity), 0) FROM claims WHERE promotion_id = ? AND state = 'held'", id)
	leased := f.number(`SELECT COALESCE(SUM(b.granted - b.revoked - b.written), 0) FROM promotion_buckets b
		JOIN promotion_epochs e ON e.promotion_id = b.promotion_id AND e.epoch = b.epoch
		WHERE b.promotion_id = ? AND e.state = 'open'`, id)
	if taken := f.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", id); taken != held+leased {
		f.Errorf("taken %d, but held %d + leased %d", taken, held, leased)
	}
	if counted := f.number("SELECT COALESCE(SUM(taken), 0) FROM promotion_users WHERE promotion_id = ?", id); counted != held {
		f.Errorf("persons have %d, but hold %d", counted, held)
	}
}

func TestRedisWayAnswersAsTheDatabaseWay(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(4, 2)
	first := f.request(p, 1, 1)
	held, err := f.Claim(t.Context(), first)
	if err != nil || held.State != promotion.Held || held.Source == nil {
		t.Fatalf("%+v, %v; want one held through Redis", held, err)
	}
	again, err := f.Claim(t.Context(), first)
	if err != nil || again.ClaimID != held.ClaimID {
		t.Errorf("the same token again: %+v, %v", again, err)
	}
	other := first
	other.Quantity = 2
	for _, c := range []struct {
		name    string
		request claims.Request
		want    error
	}{
		{"the same token for more", other, promotion.TokenUsed},
		{"more than the limit", f.request(p, 1, 2), promotion.LimitReached},
		{"0", f.request(p, 2, 0), promotion.ErrInvalid},
		{"-3", f.request(p, 2, -3), promotion.ErrInvalid},
		{"10^9", f.request(p, 2, 1e9), promotion.ErrInvalid},
	} {
		_, err := f.Claim(t.Context(), c.request)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", c.name, err, c.want)
		}
	}
	for user := range int64(3) {
		if _, err := f.Claim(t.Context(), f.request(p, 2+user, 1)); err != nil {
			t.Errorf("user %d: %v", 2+user, err)
		}
	}
	_, err = f.Claim(t.Context(), f.request(p, 9, 1))
	refusedAs(t, err, promotion.SoldOut)
	f.checkBooks(p)
	if _, err := f.GiveBack(t.Context(), held.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if c, err := f.Claim(t.Context(), f.request(p, 1, 1)); err != nil {
		t.Errorf("after a unit came back: %+v, %v", c, err)
	}
	f.checkBooks(p)
}

func TestFiveAreServedOutOfBucketsOfTwo(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 5)
	p := f.live(10, 5)
	f.open(p)
	f.lease(p, 2)
	for user := range int64(2) {
		if c, err := f.Claim(t.Context(), f.request(p, 1+user, 5)); err != nil || c.Quantity != 5 {
			t.Fatalf("5 wanted by user %d: %+v, %v", 1+user, c, err)
		}
	}
	_, err := f.Claim(t.Context(), f.request(p, 3, 1))
	refusedAs(t, err, promotion.SoldOut)
	f.checkBooks(p)
}

// open has the promotion's epoch opened, by a claim that is given back.
func (f fast) open(p promotion.Promotion) {
	f.Helper()
	c, err := f.Claim(f.Context(), f.request(p, 99, 1))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.GiveBack(f.Context(), c.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
		f.Fatal(err)
	}
}

// lease leases each bucket what it lacks of some units.
func (f fast) lease(p promotion.Promotion, units int64) {
	f.Helper()
	err := f.db.InTx(f.Context(), func(tx *gorm.DB) error {
		buckets, err := promotion.Buckets(tx, p.PromotionID, 1)
		if err != nil {
			return err
		}
		var wants []promotion.Want
		for _, b := range buckets {
			wants = append(wants, promotion.Want{Bucket: b.Bucket, Need: units - b.Left()})
		}
		_, err = promotion.Lease(tx, p.PromotionID, 1, nil, wants)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	if left := f.number("SELECT quota - taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); left != 0 {
		f.Fatalf("%d units are not leased", left)
	}
}

// press has each user press three times, twice with one token and once with another, on the service that at names. Whoever hears
// that it failed presses again, and whoever hears that it is pending asks until it isn't.
func (f fast) press(p promotion.Promotion, users int64, connections int, at func() *claims.Service) *tally {
	f.Helper()
	got := newTally()
	presses := make(chan claims.Request)
	var pressing sync.WaitGroup
	for range connections {
		pressing.Go(func() {
			for r := range presses {
				got.add(insist(f.Context(), r, at))
			}
		})
	}
	for user := range users {
		first := f.request(p, 1+user, 1)
		for _, r := range []claims.Request{first, f.request(p, 1+user, 1), first} {
			presses <- r
		}
	}
	close(presses)
	pressing.Wait()
	return got
}

func insist(ctx context.Context, r claims.Request, at func() *claims.Service) (promotion.Claim, error) {
	for {
		service := at()
		c, err := service.Claim(ctx, r)
		for err == nil && c.State == promotion.Pending {
			c, err = service.Read(ctx, c.ClaimID)
			if err == nil {
				err = c.Refusal()
			}
		}
		var refusal promotion.Refusal
		if err == nil || errors.As(err, &refusal) || ctx.Err() != nil {
			return c, err
		}
	}
}

// checkSold compares what everybody heard with the database: all units went, each to a person of its own.
func (f fast) checkSold(p promotion.Promotion, got *tally, units int64) {
	f.Helper()
	if got.failed != nil {
		f.Error(got.failed)
	}
	if int64(len(got.claims)) != units || int64(len(got.users)) != units {
		f.Errorf("%d claims of %d users were heard of, not %d; refused: %v", len(got.claims), len(got.users), units, got.refused)
	}
	if left := f.number("SELECT quota - taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); left != 0 {
		f.Errorf("%d units left over", left)
	}
	if held := f.number("SELECT COUNT(*) FROM claims WHERE promotion_id = ? AND state = 'held'", p.PromotionID); held != units {
		f.Errorf("%d claims are held", held)
	}
	for id := range got.claims {
		if n := f.number("SELECT COUNT(*) FROM claims WHERE claim_id = ? AND state = 'held'", id); n != 1 {
			f.Errorf("claim %d was heard of and isn't there", id)
		}
	}
	f.checkBooks(p)
}

func TestManyPressOneButtonTheRedisWay(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 8)
	p := f.live(50, 1)
	other, _ := f.another(f.url)
	var n atomic.Int64
	got := f.press(p, 2000, 200, func() *claims.Service { return []*claims.Service{f.Service, other}[n.Add(1)%2] })
	f.checkSold(p, got, 50)
	f.checkRedis(p)
}

// checkRedis compares the buckets of the open epoch with the database, once all is written.
func (f fast) checkRedis(p promotion.Promotion) {
	f.Helper()
	var buckets []promotion.Bucket
	current, err := promotion.CurrentEpoch(f.db.Read(f.Context()), p.PromotionID)
	if err == nil {
		buckets, err = promotion.Buckets(f.db.Read(f.Context()), p.PromotionID, current.Epoch)
	}
	if err != nil || current.State != promotion.EpochOpen {
		f.Fatalf("epoch %+v, %v", current, err)
	}
	for _, b := range buckets {
		key := f.bucketKey(p, current.Epoch, b.Bucket)
		units, granted, revoked := f.count(key, "units"), f.count(key, "granted"), f.count(key, "revoked")
		sold := granted - revoked - units
		if granted != b.Granted || revoked != b.Revoked || sold != b.Written {
			f.Errorf("bucket %d: Redis granted %d, revoked %d, sold %d; database %+v", b.Bucket, granted, revoked, sold, b)
		}
		if n := f.client.XLen(f.Context(), key+"stream").Val(); n != 0 {
			f.Errorf("bucket %d: %d entries aren't written", b.Bucket, n)
		}
	}
}

func (f fast) count(key, field string) int64 {
	f.Helper()
	n, err := f.client.HGet(f.Context(), key+"units", field).Int64()
	if err != nil {
		f.Fatalf("%s of %s: %v", field, key, err)
	}
	return n
}

func (f fast) bucketKey(p promotion.Promotion, epoch int64, bucket int) string {
	return fmt.Sprintf("doortab:{%s:%d:%d:%d}:", f.dsn, p.PromotionID, epoch, bucket)
}

func xadd(stream, text string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: stream, Values: []any{"claim", text}}
}

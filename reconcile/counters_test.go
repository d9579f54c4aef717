package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"doortab/audit"
	"doortab/claims"
	"doortab/database"
	"doortab/promotion"
	"doortab/reconcile"
	"doortab/services"
	"doortab/services/servicestest"
	"doortab/settlement"
)

// fast is a shop whose claims come the Redis way, through 16 buckets.
type fast struct {
	*shop
	*claims.Service

	url, installation string
	tokens            *promotion.Tokens
	redis             redis.UniversalClient
}

func newFast(t *testing.T, url string) *fast {
	t.Helper()
	f := &fast{shop: newShop(t), url: url}
	var err error
	if f.installation, err = settlement.Installation(t.Context(), f.db); err != nil {
		t.Fatal(err)
	}
	f.tokens = promotion.NewTokens(f.db)
	if options, err := redis.ParseURL(url); err == nil {
		f.redis = redis.NewClient(options)
	} else if options, err := redis.ParseClusterURL(url); err == nil {
		f.redis = redis.NewClusterClient(options)
	} else {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.redis.Close() })
	f.Service = f.serve()
	return f
}

func (f *fast) open() *claims.Redis {
	f.Helper()
	r, err := claims.OpenRedis(claims.RedisConfig{URL: f.url, Installation: f.installation, Budget: 5 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = r.Close() })
	return r
}

// serve is one process.
func (f *fast) serve() *claims.Service {
	f.Helper()
	service := claims.New(claims.Config{DB: f.db, Redis: f.open(), Buckets: 16})
	f.Cleanup(service.Close)
	return service
}

func (f *fast) reconciling() *reconcile.Service {
	f.Helper()
	service := reconcile.New(reconcile.Config{DB: f.db, Redis: f.open()})
	service.Hurry(100*time.Millisecond, 10*time.Second)
	return service
}

// press makes a claim of 2 units at a service.
func (f *fast) press(ctx context.Context, service *claims.Service, promotionID, userID int64) (promotion.Claim, error) {
	purpose := promotion.Purpose{PromotionID: promotionID, UserID: userID, App: "shopper"}
	token, _, err := f.tokens.Issue(ctx, purpose, database.Now())
	if err != nil {
		return promotion.Claim{}, err
	}
	return service.Claim(ctx, claims.Request{Purpose: purpose, Token: token, Quantity: 2})
}

// key is one of the bucket of a person, in the promotion's first epoch.
func (f *fast) key(promotionID int64, bucket int, name string) string {
	return fmt.Sprintf("doortab:{%s:%d:1:%d}:%s", f.installation, promotionID, bucket, name)
}

func (f *fast) do(command redis.Cmder) {
	f.Helper()
	if err := command.Err(); err != nil {
		f.Errorf("%s: %v", command, err)
	}
}

// crowd makes claims of n persons and tells them by bucket.
func (f *fast) crowd(promotionID int64, n int) (buckets [16][]promotion.Claim) {
	f.Helper()
	for userID := range int64(n) {
		c, err := f.press(f.Context(), f.Service, promotionID, 1+userID)
		if err != nil {
			f.Fatal(err)
		}
		at := claims.BucketOf(promotion.Epoch{Buckets: 16}, c.UserID)
		buckets[at] = append(buckets[at], c)
	}
	return buckets
}

// The differences that Redis shows are found, each under its cause, and a fresh epoch mends them.
func TestCountersInRedisAreCompared(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL())
	id := f.live(100_000, promotion.Redis)
	crowd := f.crowd(id, 160)
	service := f.reconciling()
	if standing, _ := f.run(service, false); len(standing) > 0 {
		t.Fatalf("before anything is wrong: %q", standing)
	}
	planted := f.plantInRedis(id, &crowd)
	t.Logf("%d differences planted", len(planted))
	if found, _ := f.run(service, false); !slices.Equal(found, planted) {
		t.Errorf("differences (- planted, + found):\n%s", cmp.Diff(planted, found))
	}
	standing, repaired := f.run(service, true)
	if len(standing) > 0 || !slices.Equal(repaired, planted) {
		t.Errorf("the repair leaves %q; it mends (- planted, + found):\n%s", standing, cmp.Diff(planted, repaired))
	}
	f.awaitEpoch(id, 2)
	if standing, _ = f.run(service, false); len(standing) > 0 {
		t.Errorf("after the repair: %q", standing)
	}
}

// awaitEpoch claims until a claim comes through an epoch.
func (f *fast) awaitEpoch(promotionID, epoch int64) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	for userID := int64(5000); ; userID++ {
		c, err := f.press(ctx, f.Service, promotionID, userID)
		if err != nil {
			f.Fatalf("claims until epoch %d: %v", epoch, err)
		}
		if c.Source != nil && c.Source.Epoch == epoch {
			return
		}
	}
}

// plantInRedis makes differences of every cause, those of a whole bucket each in one of its own, and returns them.
func (f *fast) plantInRedis(id int64, crowd *[16][]promotion.Claim) (planted []string) {
	f.Helper()
	ctx, r := f.Context(), f.redis
	note := func(cause string, bucket int, what string, args ...any) {
		planted = append(planted, fmt.Sprintf("%s redis promotion=%d epoch=1 bucket=%d%s", cause, id, bucket, fmt.Sprintf(what, args...)))
	}
	f.do(r.Del(ctx, f.key(id, 0, "units")))
	note("redis_bucket_missing", 0, "")
	for bucket, n := range map[int]int64{1: 3, 2: -1} {
		f.do(r.HIncrBy(ctx, f.key(id, bucket, "units"), "units", n))
		note("redis_units_drift", bucket, "")
	}
	for bucket, field := range map[int]string{3: "granted", 4: "revoked"} {
		f.do(r.HIncrBy(ctx, f.key(id, bucket, "units"), field, 5))
		note("redis_lease_drift", bucket, " %s", field)
	}
	for bucket := 5; bucket < 16; bucket++ {
		users, tokens := f.key(id, bucket, "users"), f.key(id, bucket, "tokens")
		for n, c := range crowd[bucket] {
			switch n {
			case 0:
				f.do(r.HIncrBy(ctx, users, fmt.Sprint(c.UserID), int64(bucket%3+1)))
				note("redis_person_drift", bucket, " user=%d", c.UserID)
			case 1:
				f.do(r.HDel(ctx, users, fmt.Sprint(c.UserID)))
				note("redis_person_drift", bucket, " user=%d", c.UserID)
			case 2:
				f.do(r.HDel(ctx, tokens, string(c.TokenID[:])))
				note("redis_token_missing", bucket, " claim=%d", c.ClaimID)
			case 3:
				f.do(r.HSet(ctx, tokens, string(c.TokenID[:]), fmt.Sprintf("%d %d 4", c.ClaimID, c.UserID)))
				note("redis_token_drift", bucket, " claim=%d", c.ClaimID)
			case 4:
				f.do(r.HSet(ctx, tokens, fmt.Sprintf("%016d", bucket), fmt.Sprintf("%d %d 1", 100+bucket, c.UserID)))
				note("redis_token_unknown", bucket, " claim=%d", 100+bucket)
			case 5: // sold, but its entry is gone
				f.do(r.HIncrBy(ctx, f.key(id, bucket, "units"), "units", -2))
				f.do(r.HIncrBy(ctx, users, fmt.Sprint(c.UserID), 2))
				f.do(r.HSet(ctx, tokens, fmt.Sprintf("%016d", 1000+bucket), fmt.Sprintf("%d %d 2", 1000+bucket, c.UserID)))
				note("redis_sold_unwritten", bucket, " claim=%d", 1000+bucket)
			}
		}
	}
	slices.Sort(planted)
	return planted
}

// While two processes take claims through Redis and give some back, each run finds nothing.
func TestNothingIsFoundInRedisWhileClaimsAreInFlight(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL())
	id := f.live(1_000_000, promotion.Redis)
	other := f.serve()
	var over atomic.Bool
	var made, users atomic.Int64
	var shopping sync.WaitGroup
	for worker := range 16 {
		process := []*claims.Service{f.Service, other}[worker%2]
		shopping.Go(func() {
			for n := 0; !over.Load(); n++ {
				c, err := f.press(t.Context(), process, id, 1+users.Add(1))
				if err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
				if n%5 == 0 {
					if _, err := process.GiveBack(t.Context(), c.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	service, runs := f.reconciling(), 0
	for limit := time.Now().Add(enough); (runs < 4 || made.Load() < 500) && time.Now().Before(limit); runs++ {
		if standing, _ := f.run(service, false); len(standing) > 0 {
			t.Errorf("run %d finds %q", runs, standing[:min(len(standing), 5)])
			break
		}
	}
	over.Store(true)
	shopping.Wait()
	t.Logf("%d claims, %d runs", made.Load(), runs)
	if runs < 2 || made.Load() < 500 {
		t.Errorf("%d claims and %d runs prove nothing", made.Load(), runs)
	}
}

// Each bucket is read in the slot where it lies.
func TestCountersOfAClusterAreCompared(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, services.Options{Cluster: &services.ClusterOptions{}})
	f := newFast(t, g.Cluster.URL())
	id := f.live(1000, promotion.Redis)
	f.crowd(id, 30)
	service := f.reconciling()
	if standing, _ := f.run(service, false); len(standing) > 0 {
		t.Errorf("before anything is wrong: %q", standing)
	}
	f.checkAudit(0)
	for bucket := range 16 {
		f.do(f.redis.HIncrBy(t.Context(), f.key(id, bucket, "units"), "units", 1))
	}
	if standing, _ := f.run(service, false); len(standing) != 16 {
		t.Errorf("each of 16 buckets has a unit too many: %q", standing)
	}
	f.checkAudit(16)
}

// checkAudit has the audit look at the same counters.
func (f *fast) checkAudit(want int64) {
	f.Helper()
	report, err := audit.RunWithRedis(f.Context(), f.db, f.url)
	if err != nil {
		f.Fatal(err)
	}
	if got := report.Checks[5].Total; got != want {
		f.Errorf("the audit finds %d violations, not %d: %q", got, want, report.Checks[5].Violations)
	}
}

// A bucket whose claims aren't written is behind and not different; one that can't be read neither.
func TestAWriteBackThatIsBehindIsNoDifference(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}})
	f := newFast(t, g.Redis.URL())
	id := f.live(100, promotion.Redis)
	f.crowd(id, 4)
	service := f.reconciling()
	service.Hurry(time.Millisecond, 50*time.Millisecond)
	held, err := f.db.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback() }()
	if _, err := held.ExecContext(t.Context(), "UPDATE promotion_buckets SET granted = granted + 1"); err != nil {
		t.Fatal(err)
	}
	if c, err := f.press(t.Context(), f.Service, id, 77); err != nil || c.State != promotion.Pending {
		t.Fatalf("a claim that can't be written is %s (%v)", c.State, err)
	}
	behind := func(want int64) {
		t.Helper()
		r, err := service.Run(t.Context(), reconcile.Options{Origin: reconcile.Command})
		if err != nil || r.Found != 0 || r.Behind != want {
			t.Errorf("%d differences, %d buckets behind, not %d (%v)", r.Found, r.Behind, want, err)
		}
	}
	behind(1)
	if err := g.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	behind(16)
}

package claims_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"doortab/claims"
	"doortab/promotion"
	"doortab/services"
	"doortab/services/servicestest"
)

// until waits for a condition, looking again and again.
func (f fast) until(what string, holds func() bool) {
	f.Helper()
	deadline := time.After(30 * time.Second)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			f.Fatalf("%s did not come; epochs: %s", what,
				f.text("SELECT GROUP_CONCAT(epoch, ' ', state ORDER BY epoch) FROM promotion_epochs"))
		case <-ticker.C:
		}
	}
}

func (f fast) epochs(p promotion.Promotion, states string) int64 {
	f.Helper()
	return f.number("SELECT COUNT(*) FROM promotion_epochs WHERE promotion_id = ? AND state IN ("+states+")", p.PromotionID)
}

func TestAScriptThatRunsTwiceSellsOnce(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(10, 5)
	f.open(p)
	proxy, url := throughLossy(t, f.url)
	behind, _ := f.another(url)
	proxy.lose.Store(1)
	c, err := behind.Claim(t.Context(), f.request(p, 1, 2))
	if err != nil || c.Quantity != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if proxy.lost.Load() != 1 {
		t.Fatalf("%d answers were lost", proxy.lost.Load())
	}
	if held := f.number("SELECT SUM(left_quantity) FROM claims WHERE promotion_id = ? AND state = 'held'", p.PromotionID); held != 2 {
		t.Errorf("%d units are held", held)
	}
	f.checkBooks(p)
	f.settled(p)
	f.checkRedis(p)
	if n := f.epochs(p, "'open', 'draining', 'done'"); n != 1 {
		t.Errorf("%d epochs: one lost answer is no outage", n)
	}
}

// settled waits until every epoch but the open one is done, and every stream empty.
func (f fast) settled(p promotion.Promotion) {
	f.Helper()
	f.until("the end of all epochs that are over", func() bool { return f.epochs(p, "'draining', 'warming'") == 0 })
	current, err := promotion.CurrentEpoch(f.db.Read(f.Context()), p.PromotionID)
	if err != nil {
		f.Fatal(err)
	}
	f.until("the last write-back", func() bool {
		for bucket := range current.Buckets {
			if f.client.XLen(f.Context(), f.bucketKey(p, current.Epoch, bucket)+"stream").Val() > 0 {
				return false
			}
		}
		return true
	})
}

func TestWithoutRedisTheDatabaseDecidesAndFreshCountersFollow(t *testing.T) {
	t.Parallel()
	own := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{AppendOnly: true}}).Redis
	f := newFast(t, own.URL(), 4)
	p := f.live(20, 5)
	first := f.request(p, 1, 5)
	held, err := f.Claim(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	for user := range int64(3) { // 15 units: more than were not leased
		c, err := f.Claim(t.Context(), f.request(p, 2+user, 5))
		if err != nil || c.Source != nil {
			t.Fatalf("without Redis: %+v, %v", c, err)
		}
	}
	_, err = f.Claim(t.Context(), f.request(p, 9, 1))
	refusedAs(t, err, promotion.SoldOut)
	again, err := f.Claim(t.Context(), first)
	if err != nil || again.ClaimID != held.ClaimID {
		t.Errorf("the token of a claim through Redis: %+v, %v", again, err)
	}
	if _, err := f.GiveBack(t.Context(), held.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
		t.Fatal(err)
	}
	f.checkBooks(p)
	if err := own.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var c promotion.Claim
	f.until("a claim through Redis", func() bool {
		if c, err = f.Claim(t.Context(), f.request(p, 10, 1)); err != nil {
			t.Fatal(err)
		}
		if c.Source == nil {
			if _, err := f.GiveBack(t.Context(), c.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		return c.Source != nil
	})
	if c.Source.Epoch != 2 {
		t.Errorf("epoch %d after an outage", c.Source.Epoch)
	}
	_, err = f.Claim(t.Context(), f.request(p, 2, 1)) // who claimed while Redis was down has no more to get
	refusedAs(t, err, promotion.LimitReached)
	f.settled(p)
	f.checkBooks(p)
	f.checkRedis(p)
}

// Redis loses what it sold before the database has it: nobody heard 201, so it is decided anew, once.
func TestClaimsOfAnEpochThatIsGoneAreDecidedOnce(t *testing.T) {
	t.Parallel()
	own := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
	f := newFast(t, own.URL(), 4)
	p := f.live(32, 1)
	f.open(p)
	f.lease(p, 8)
	release := f.holdUp(p)
	heard := make(chan error, 8)
	for user := range int64(8) {
		go func() {
			c, err := insist(t.Context(), f.request(p, 1+user, 1), func() *claims.Service { return f.Service })
			if err == nil && c.UserID != 1+user {
				t.Errorf("user %d got %+v", 1+user, c)
			}
			heard <- err
		}()
	}
	f.until("sales that aren't written", func() bool { return f.entries(p) > 0 })
	if err := f.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	release()
	for range 8 {
		if err := <-heard; err != nil {
			t.Error(err)
		}
	}
	f.settled(p)
	f.checkBooks(p)
	if held := f.number("SELECT COUNT(DISTINCT user_id) FROM claims WHERE promotion_id = ? AND state = 'held'", p.PromotionID); held != 8 {
		t.Errorf("%d users hold a unit", held)
	}
}

// holdUp keeps the database from writing claims of a promotion until it is released.
func (f fast) holdUp(p promotion.Promotion) (release func()) {
	f.Helper()
	tx, err := f.db.SQL().BeginTx(f.Context(), nil)
	if err == nil {
		_, err = tx.Exec("SELECT * FROM promotion_buckets WHERE promotion_id = ? FOR UPDATE", p.PromotionID)
	}
	if err != nil {
		f.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// entries is how many sales of the open epoch aren't written.
func (f fast) entries(p promotion.Promotion) (n int64) {
	f.Helper()
	current, err := promotion.CurrentEpoch(f.db.Read(f.Context()), p.PromotionID)
	if err != nil {
		f.Fatal(err)
	}
	for bucket := range current.Buckets {
		n += f.client.XLen(f.Context(), f.bucketKey(p, current.Epoch, bucket)+"stream").Val()
	}
	return n
}

// Redis dies twice and is flushed once, a process dies three times, and answers get lost, while 2,000 users press.
func TestManyPressWhileEverythingFails(t *testing.T) {
	t.Parallel()
	const users, units = 2000, 60
	own := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{AppendOnly: true}}).Redis
	f := newFast(t, own.URL(), 8)
	p := f.live(units, 1)
	proxy, url := throughLossy(t, own.URL())
	var serving atomic.Pointer[claims.Service]
	service, kill := f.another(url)
	serving.Store(service)
	var presses atomic.Int64
	done := make(chan *tally, 1)
	go func() {
		done <- f.press(p, users, 100, func() *claims.Service {
			if presses.Add(1)%3 == 0 {
				return f.Service
			}
			return serving.Load()
		})
	}()
	failures := []func(){
		func() { proxy.lose.Store(1) },
		func() { f.must(own.Kill()) },
		func() { f.must(own.Start(t.Context())) },
		func() { serving.Store(f.Service); kill() },
		func() { service, kill = f.another(url); serving.Store(service) },
		func() { f.must(f.client.FlushAll(t.Context()).Err()) },
		func() { serving.Store(f.Service); kill() },
		func() { service, kill = f.another(url); serving.Store(service); proxy.lose.Store(2) },
		func() { f.must(own.Kill()) },
		func() { f.must(own.Start(t.Context())) },
		func() { serving.Store(f.Service); kill() },
		func() { service, kill = f.another(url); serving.Store(service) },
	}
	for i, fail := range failures {
		after := int64(i+1) * users * 3 / int64(len(failures)+2)
		f.until("more presses", func() bool { return presses.Load() >= after })
		fail()
	}
	got := <-done
	f.checkSold(p, got, units)
	slog.Info("What was refused.", "refused", got.refused)
}

func (f fast) must(err error) {
	f.Helper()
	if err != nil {
		f.Error(err)
	}
}

func (f fast) text(statement string) (text string) {
	f.Helper()
	if err := f.db.Read(f.Context()).Raw(statement).Scan(&text).Error; err != nil {
		f.Error(err)
	}
	return text
}

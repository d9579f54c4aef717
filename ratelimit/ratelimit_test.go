package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sony/gobreaker/v2"

	"doortab/services"
	"doortab/services/servicestest"
)

// slow limits come back so slowly that no test sees it.
var slow = Limit{Rate: 1, Burst: 5, Period: time.Hour}

// patient is for a busy machine.
const patient = 5 * time.Second

func limiter(t *testing.T, c Config, budget time.Duration) *Limiter {
	t.Helper()
	c.Logger, c.RedisBudget = slog.New(slog.DiscardHandler), budget
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// served asks n times and counts what is not refused.
func served(t *testing.T, n int, ask func() error) (served int) {
	t.Helper()
	for range n {
		err := ask()
		var refusal *Refusal
		switch {
		case err == nil:
			served++
		case !errors.Is(err, ErrTooMany) || !errors.As(err, &refusal) || refusal.RetryAfter <= 0:
			t.Fatalf("%v", err)
		}
	}
	return served
}

func TestEachLimitCountsByItself(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"with Redis": servicestest.Redis(t).URL(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			l := limiter(t, Config{
				User: slow, Address: Limit{1, 3, time.Hour}, RedisURL: url, Installation: uuid.NewString(), Metrics: registry,
			}, patient)
			ctx := t.Context()
			for what, c := range map[string]struct {
				want int
				ask  func() error
			}{
				"one shopper":     {5, func() error { return l.User(ctx, 42) }},
				"another shopper": {5, func() error { return l.User(ctx, 43) }},
				"an address":      {3, func() error { return l.Address(ctx, "42") }},
				"no limit":        {9, func() error { return l.Token(ctx, "42") }},
			} {
				if got := served(t, 9, c.ask); got != c.want {
					t.Errorf("%s: %d of 9 served, want %d", what, got, c.want)
				}
			}
			for of, want := range map[string]float64{"user": 8, "address": 6, "token": 0} {
				if got := testutil.ToFloat64(l.refused.WithLabelValues(of)); got != want {
					t.Errorf("%v refusals of %s, want %v", got, of, want)
				}
			}
			if n, err := testutil.GatherAndCount(registry, "doortab_rate_limited_total"); err != nil || n != 3 {
				t.Errorf("%d series: %v", n, err)
			}
		})
	}
}

func TestNobodyIsLimitedWithoutALimiter(t *testing.T) {
	t.Parallel()
	var l *Limiter
	if err := errors.Join(l.User(t.Context(), 1), l.Address(t.Context(), "a"), l.Token(t.Context(), "t")); err != nil {
		t.Error(err)
	}
}

func TestProcessesThatShareARedisCountTogether(t *testing.T) {
	t.Parallel()
	c := Config{User: Limit{1, 100, time.Hour}, RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString()}
	one, two, other := limiter(t, c, patient), limiter(t, c, patient), c
	var all atomic.Int64
	var callers sync.WaitGroup
	for n := range 8 {
		callers.Go(func() {
			l := []*Limiter{one, two}[n%2]
			for range 50 {
				if l.User(context.Background(), 42) == nil {
					all.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if n := all.Load(); n != 100 {
		t.Errorf("two processes served %d of 400 calls, want 100 together", n)
	}
	other.Installation = uuid.NewString()
	if got := served(t, 10, func() error { return limiter(t, other, patient).User(t.Context(), 42) }); got != 10 {
		t.Errorf("another installation on that Redis: %d of 10 served", got)
	}
}

// A Redis that fails costs the answer its budget once, and nothing is refused for it.
func TestEachProcessCountsByItselfWhileRedisFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ break_, mend func(*services.Redis) error }{
		"killed":  {func(r *services.Redis) error { return r.Kill() }, func(r *services.Redis) error { return r.Start(context.Background()) }},
		"hanging": {func(r *services.Redis) error { return r.Pause() }, func(r *services.Redis) error { return r.Continue() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
			l := limiter(t, Config{User: slow, RedisURL: r.URL(), Installation: "a"}, rest/2) // once, when it hangs
			l.Check(t.Context())
			if got := served(t, 9, func() error { return l.User(t.Context(), 1) }); got != 5 || l.Breaker() != gobreaker.StateClosed {
				t.Errorf("%d of 9 served by Redis, breaker %v", got, l.Breaker())
			}
			if err := c.break_(r); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if got := served(t, 9, func() error { return l.User(t.Context(), 1) }); got != 5 || l.Breaker() != gobreaker.StateOpen {
				t.Errorf("%d of 9 served without Redis, breaker %v", got, l.Breaker())
			}
			if took := time.Since(began); took > rest {
				t.Errorf("nine calls took %s", took)
			}
			if err := c.mend(r); err != nil {
				t.Fatal(err)
			}
			eventually(t, "Redis counts again", func() bool {
				_ = l.User(t.Context(), time.Now().UnixNano())
				return l.Breaker() == gobreaker.StateClosed
			})
		})
	}
}

func TestACallerThatHasGoneDoesNotSpeakAgainstRedis(t *testing.T) {
	t.Parallel()
	l := limiter(t, Config{User: slow, RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString()}, patient)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.User(gone, 1); err != nil || l.Breaker() != gobreaker.StateClosed {
		t.Errorf("%v, breaker %v", err, l.Breaker())
	}
}

func TestAWrongURLIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	_, err := New(Config{RedisURL: "localhost:6379:secret"})
	if err == nil || !errors.Is(err, errURL) {
		t.Error(err)
	}
}

func TestRetryAfterIsInWholeSeconds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int{
		time.Microsecond: 1, time.Second: 1, 1001 * time.Millisecond: 2, time.Hour: 3600,
	} {
		r := &Refusal{"user", wait}
		if got := r.Seconds(); got != want {
			t.Errorf("%s: %d, want %d", wait, got, want)
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still not so after 20 s: %s", what)
		}
	}
}

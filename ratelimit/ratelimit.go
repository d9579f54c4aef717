// Package ratelimit says who calls too often: one shopper, one address or one token, each with a limit of its own.
//
// Where Redis serves, all processes of an installation count together, by the generic cell rate algorithm (GCRA). Without it,
// and while it doesn't answer in time, each process counts by itself, so that a limit is never a reason to stop. Door-close
// events are never limited: to refuse one is to lose a sale.
package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

// ErrTooMany is in every [Refusal].
var ErrTooMany = errors.New("too many requests")

// Refusal says that a call came too early.
type Refusal struct {
	Of         string // "user", "address" or "token"
	RetryAfter time.Duration
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%v of one %s: try again in %d s", ErrTooMany, r.Of, r.Seconds())
}

// Unwrap is [ErrTooMany].
func (r *Refusal) Unwrap() error { return ErrTooMany }

// Seconds is RetryAfter in whole seconds, rounded up, at least 1.
func (r *Refusal) Seconds() int { return max(1, int(math.Ceil(r.RetryAfter.Seconds()))) }

// Config holds what a [Limiter] needs.
type Config struct {
	User, Address, Token Limit
	RedisURL             string        // "": each process counts by itself
	RedisBudget          time.Duration // for one answer of Redis; 0: 20 ms
	Installation         string        // keeps two installations apart in one Redis
	Logger               *slog.Logger
	Metrics              prometheus.Registerer
}

// Limiter counts calls. A nil one limits nothing.
type Limiter struct {
	user, address, token *limited
	shared               *shared // nil without Redis
	refused              *prometheus.CounterVec
}

// limited is one kind of callers with their limit.
type limited struct {
	of    string
	limit Limit
	local *local
}

// New makes a limiter, without connecting to Redis. It fails on a URL that can't be read.
func New(c Config) (l *Limiter, err error) {
	l = &Limiter{refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "doortab_rate_limited_total", Help: "Requests refused because they came too often, by whose limit it was.",
	}, []string{"limit"})}
	l.user, l.address, l.token = l.limits("user", c.User), l.limits("address", c.Address), l.limits("token", c.Token)
	if c.Metrics != nil {
		c.Metrics.MustRegister(l.refused)
	}
	if c.RedisURL != "" {
		l.shared, err = newShared(c.RedisURL, c.Installation, cmp.Or(c.RedisBudget, budget), c.Logger)
	}
	return l, err
}

func (l *Limiter) limits(of string, limit Limit) *limited {
	l.refused.WithLabelValues(of)
	return &limited{of, limit, newLocal(limit, maxKeys)}
}

// User counts a call for a shopper or a member of staff, or returns a [Refusal].
func (l *Limiter) User(ctx context.Context, userID int64) error {
	if l == nil {
		return nil
	}
	return l.allow(ctx, l.user, strconv.FormatInt(userID, 10))
}

// Address counts a call from a client's address, or returns a [Refusal].
func (l *Limiter) Address(ctx context.Context, address string) error {
	if l == nil {
		return nil
	}
	return l.allow(ctx, l.address, address)
}

// Token counts a call with an API token, by its id, or returns a [Refusal].
func (l *Limiter) Token(ctx context.Context, tokenID string) error {
	if l == nil {
		return nil
	}
	return l.allow(ctx, l.token, tokenID)
}

func (l *Limiter) allow(ctx context.Context, k *limited, key string) error {
	if k.limit.off() {
		return nil
	}
	wait, err := l.wait(ctx, k, k.of+":"+key)
	if err != nil {
		wait = k.local.allow(key, time.Now())
	}
	if wait <= 0 {
		return nil
	}
	l.refused.WithLabelValues(k.of).Inc()
	return &Refusal{k.of, wait}
}

var errNoRedis = errors.New("there is no Redis")

func (l *Limiter) wait(ctx context.Context, k *limited, key string) (time.Duration, error) {
	if l.shared == nil {
		return 0, errNoRedis
	}
	return l.shared.allow(ctx, key, k.limit)
}

// Check asks Redis whether it answers, so that the first call doesn't wait for a connection.
func (l *Limiter) Check(ctx context.Context) {
	if l.shared != nil {
		l.shared.check(ctx)
	}
}

// Breaker is how Redis is seen; closed without one.
func (l *Limiter) Breaker() gobreaker.State {
	if l.shared == nil {
		return gobreaker.StateClosed
	}
	return l.shared.breaker.State()
}

// Close ends the connections.
func (l *Limiter) Close() error {
	if l.shared == nil {
		return nil
	}
	return l.shared.client.Close()
}

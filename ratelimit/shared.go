package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/sony/gobreaker/v2"
)

const (
	// budget is all the time that Redis gets for one answer; past it, it counts as down.
	budget = 20 * time.Millisecond
	// rest is how long a Redis that counts as down is left alone.
	rest = 2 * time.Second
)

var errURL = errors.New("Redis URL cannot be read: write it as redis://[:password@]host:port/0")

// shared counts in Redis, for all processes of an installation together.
type shared struct {
	client  *redis.Client
	limiter *redis_rate.Limiter
	breaker *gobreaker.CircuitBreaker[time.Duration]
	prefix  string
	budget  time.Duration
}

func newShared(url, installation string, budget time.Duration, log *slog.Logger) (*shared, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		// The cause may quote the URL, which may hold a password.
		return nil, errURL
	}
	options.MaxRetries = -1 // a call that is sent again would count twice
	options.ContextTimeoutEnabled = true
	options.DialTimeout = time.Second
	options.DialerRetries = 1
	options.ReadTimeout, options.WriteTimeout = budget, budget
	options.DisableIdentity = true
	logging.Disable() // what it logs of its own accord is also returned
	client := redis.NewClient(options)
	return &shared{
		client: client, limiter: redis_rate.NewLimiter(client), breaker: newBreaker(log),
		prefix: "doortab:" + installation + ":", budget: budget,
	}, nil
}

func newBreaker(log *slog.Logger) *gobreaker.CircuitBreaker[time.Duration] {
	return gobreaker.NewCircuitBreaker[time.Duration](gobreaker.Settings{
		Name:        "rate limits",
		Timeout:     rest,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 1 },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				log.Warn("Redis does not answer in time; each process limits rates on its own.")
			case to == gobreaker.StateClosed:
				log.Info("Redis answers again; rates are limited over all processes.")
			}
		},
	})
}

// allow is local.allow over all processes. An error says that Redis can't tell.
func (s *shared) allow(ctx context.Context, key string, limit Limit) (wait time.Duration, err error) {
	return s.within(ctx, func(ctx context.Context) (time.Duration, error) {
		result, err := s.limiter.Allow(ctx, s.prefix+key, redis_rate.Limit(limit))
		if err != nil {
			return 0, err
		}
		return max(0, result.RetryAfter), nil
	})
}

// within: a caller that has gone must not look like a Redis that is slow.
func (s *shared) within(ctx context.Context, ask func(context.Context) (time.Duration, error)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.budget)
	defer cancel()
	return s.breaker.Execute(func() (time.Duration, error) { return ask(ctx) })
}

func (s *shared) check(ctx context.Context) {
	_, _ = s.within(ctx, func(ctx context.Context) (time.Duration, error) { return 0, s.client.Ping(ctx).Err() })
}

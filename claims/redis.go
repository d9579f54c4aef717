package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/sony/gobreaker/v2"
)

const (
	// redisBudget is how long Redis may take for one pipeline before it counts as failing.
	redisBudget = 500 * time.Millisecond
	// redisRest is how long a Redis that counts as down is left alone.
	redisRest = 2 * time.Second
	// redisFailures is after how many failures in a row it counts as down: one lost answer is asked for again.
	redisFailures = 2
)

type pipeliner = redis.Pipeliner

var errRedisDown = errors.New("Redis doesn't answer")

// RedisConfig says which Redis holds the counters of promotions.
type RedisConfig struct {
	// URL is redis://[:password@]host:port/0, or of a cluster redis://[:password@]host:port?addr=host:port&addr=host:port.
	URL string
	// Installation keeps two databases that share a Redis from taking each other's units.
	Installation string
	// Budget is how long one round trip may take; 500 ms where it is 0.
	Budget time.Duration
	Logger *slog.Logger // nil: slog.Default
}

// Redis holds the counters of promotions that are sold the Redis way: one server or a cluster, behind a circuit breaker. A
// promotion goes the database way while it counts as down.
type Redis struct {
	client  redis.UniversalClient
	breaker *gobreaker.CircuitBreaker[struct{}]
	prefix  string // what each key begins with, up to the hash tag's promotion
	calls   chan *call
	ended   chan struct{} // closed by the service that it serves
}

// OpenRedis prepares a client without connecting.
func OpenRedis(c RedisConfig) (*Redis, error) {
	budget := cmp.Or(c.Budget, redisBudget)
	client, err := newClient(c.URL, budget)
	if err != nil {
		return nil, err
	}
	logging.Disable() // what it logs of its own accord is also returned
	r := &Redis{client: client, prefix: "doortab:{" + c.Installation + ":", calls: make(chan *call, maxCalls), ended: make(chan struct{})}
	r.breaker = r.newBreaker(cmp.Or(c.Logger, slog.Default()))
	return r, nil
}

// newClient leaves retries off: scripts bear a second run, but who runs one again must know it.
func newClient(address string, budget time.Duration) (redis.UniversalClient, error) {
	// The cause may quote the URL, which may hold a password.
	unreadable := errors.New("URL of the promotions' Redis cannot be read: write it as redis://[:password@]host:port/0, " +
		"or of a cluster as redis://[:password@]host:port?addr=host:port&addr=host:port")
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, unreadable
	}
	if parsed.Query().Has("addr") {
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, unreadable
		}
		o.MaxRetries, o.DialerRetries, o.DisableIdentity = -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = budget, budget, budget
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, unreadable
	}
	o.MaxRetries, o.DialerRetries, o.DisableIdentity = -1, 1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = budget, budget, budget
	return redis.NewClient(o), nil
}

func (r *Redis) newBreaker(log *slog.Logger) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        "promotions",
		Timeout:     redisRest,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= redisFailures },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				log.Warn("Redis does not answer in time and is left alone; claims are taken from the database.")
			case to == gobreaker.StateClosed:
				log.Info("Redis answers again; promotions get fresh counters in it.")
			}
		},
	})
}

// Close ends the connections.
func (r *Redis) Close() error { return r.client.Close() }

// Breaker is the state of the circuit breaker, closed where there is no Redis.
func (r *Redis) Breaker() gobreaker.State {
	if r == nil {
		return gobreaker.StateClosed
	}
	return r.breaker.State()
}

// isDown tells whether Redis is being left alone, or isn't there. One that may be tried is not down.
func (r *Redis) isDown() bool { return r == nil || r.breaker.State() == gobreaker.StateOpen }

// pipeline runs commands in one round trip, in which each must bear a second run, and not at all while Redis counts as down.
// It fails where one of them got no answer; what Redis answered otherwise is in each command. A caller that goes meanwhile must
// not look like a Redis that fails.
func (r *Redis) pipeline(ctx context.Context, add func(pipeliner)) ([]redis.Cmder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	var answers []redis.Cmder
	_, err := r.breaker.Execute(func() (struct{}, error) {
		answers, _ = r.client.Pipelined(ctx, func(p pipeliner) error {
			add(p)
			return nil
		})
		for _, answer := range answers {
			if err := answer.Err(); isFailure(err) {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return answers, fmt.Errorf("%w: %w", errRedisDown, err)
	}
	return answers, nil
}

// isFailure tells the errors that come of Redis, or of the way to it, from the answers that we reckon with. Who has written over
// the keys of one promotion must not take Redis from the others.
func isFailure(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	answer := func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) }
	return !slices.ContainsFunc([]string{"NOSCRIPT", "NOGROUP", "WRONGTYPE"}, answer)
}

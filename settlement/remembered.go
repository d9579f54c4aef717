package settlement

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/sony/gobreaker/v2"

	"doortab/cabinet"
	"doortab/database"
)

const (
	// redisBudget is all the time that Redis gets for one group; past it, it counts as down.
	redisBudget = 50 * time.Millisecond
	// redisRest is how long a Redis that counts as down is left alone.
	redisRest = 2 * time.Second
	// rememberFor outlives by far the time in which a cabinet resends what it was answered.
	rememberFor = 24 * time.Hour
)

// Remembered holds receipts in Redis, written only after COMMIT, to answer repeats without
// asking the database (R1). Redis changes speed and never an outcome: whatever it does not
// say, or says late, the database decides.
type Remembered struct {
	client  *redis.Client
	breaker *gobreaker.CircuitBreaker[[]redis.Cmder]
	prefix  string
	budget  time.Duration // for one group
}

// NewRemembered prepares a client for a Redis URL without connecting. The installation keeps
// two databases that share a Redis from answering for each other.
func NewRemembered(url, installation string, log *slog.Logger) (*Remembered, error) {
	return newRemembered(url, installation, redisBudget, log)
}

func newRemembered(url, installation string, budget time.Duration, log *slog.Logger) (*Remembered, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		// The cause may quote the URL, which may hold a password.
		return nil, errors.New("Redis URL cannot be read: write it as redis://[:password@]host:port/0")
	}
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	options.DialTimeout = time.Second
	options.DialerRetries = 1
	options.ReadTimeout = budget
	options.WriteTimeout = budget
	options.DisableIdentity = true
	logging.Disable() // what it logs of its own accord is also returned
	return &Remembered{
		client: redis.NewClient(options), breaker: newBreaker(log), prefix: "doortab:" + installation + ":receipt:", budget: budget,
	}, nil
}

// newBreaker leaves Redis alone for a while after the first call that fails.
func newBreaker(log *slog.Logger) *gobreaker.CircuitBreaker[[]redis.Cmder] {
	return gobreaker.NewCircuitBreaker[[]redis.Cmder](gobreaker.Settings{
		Name:        "redis",
		Timeout:     redisRest,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 1 },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				log.Warn("Redis does not answer in time and is left alone; repeats are answered from the database.")
			case to == gobreaker.StateClosed:
				log.Info("Redis answers again.")
			}
		},
	})
}

// Breaker is how Redis is seen; closed without one.
func (r *Remembered) Breaker() gobreaker.State {
	if r == nil {
		return gobreaker.StateClosed
	}
	return r.breaker.State()
}

// Close ends the connections.
func (r *Remembered) Close() error { return r.client.Close() }

// An entry holds the digest of an event and behind it the receipt of its first answer.
func entry(digest [32]byte, receipt []byte) []byte { return slices.Concat(digest[:], receipt) }

func (r *Remembered) key(k key) string {
	return r.prefix + "{" + strconv.FormatInt(k.deviceID, 10) + ":" + k.closeEventID + "}"
}

// Check asks Redis whether it answers; where it does not, the breaker says so in the log, and
// everything goes on without it.
func (r *Remembered) Check(ctx context.Context) {
	r.pipeline(ctx, func(p redis.Pipeliner) { p.Ping(ctx) })
}

// pipeline runs commands within the budget, or not at all while Redis counts as down.
func (r *Remembered) pipeline(ctx context.Context, commands func(redis.Pipeliner)) []redis.Cmder {
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	results, err := r.breaker.Execute(func() ([]redis.Cmder, error) {
		results, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			commands(p)
			return nil
		})
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return results, err
	})
	if err != nil {
		return nil
	}
	return results
}

// recall answers repeats that Redis knows and returns the rest. Only an equal digest counts:
// a conflict has to be kept, so the database must hear of it.
func (s *Service) recall(ctx context.Context, items []*item) []*item {
	if s.remembered == nil {
		return items
	}
	var asked, rest []*item
	for _, it := range items {
		if it.event == nil {
			rest = append(rest, it)
		} else {
			asked = append(asked, it)
		}
	}
	if len(asked) == 0 {
		return items
	}
	keys := make([]string, len(asked))
	for i, it := range asked {
		keys[i] = s.remembered.key(it.key)
	}
	results := s.remembered.pipeline(ctx, func(p redis.Pipeliner) { p.MGet(ctx, keys...) })
	if results == nil {
		s.metrics.recalled.WithLabelValues("unavailable").Inc()
		return items
	}
	for i, value := range results[0].(*redis.SliceCmd).Val() {
		if text, known := value.(string); !known || !asked[i].recall(text) {
			rest = append(rest, asked[i])
		}
	}
	return rest
}

func (it *item) recall(text string) bool {
	kept, same := bytes.CutPrefix([]byte(text), it.digest[:])
	receipt := new(cabinet.Receipt)
	if !same || json.Unmarshal(kept, receipt) != nil || receipt.Outcome == "" || (key{receipt.DeviceID, receipt.CloseEventID}) != it.key {
		return false
	}
	receipt.Duplicate = true
	it.answer, it.recalled = Answer{Receipt: receipt}, true
	return true
}

// remember writes outcomes to Redis. It must run after COMMIT only.
func (s *Service) remember(ctx context.Context, items []*item) {
	if s.remembered == nil {
		return
	}
	keep := map[key][]byte{}
	for _, it := range items {
		if it.event == nil || it.letter != nil || it.answer.Err != nil || it.answer.Receipt.Outcome == cabinet.Conflict {
			continue
		}
		receipt := *it.answer.Receipt
		receipt.Duplicate = false
		keep[it.key] = entry(it.digest, Answer{Receipt: &receipt, text: it.answer.text}.ReceiptJSON())
	}
	if len(keep) == 0 {
		return
	}
	s.remembered.pipeline(context.WithoutCancel(ctx), func(p redis.Pipeliner) {
		for k, e := range keep {
			p.Set(ctx, s.remembered.key(k), e, rememberFor)
		}
	})
}

// Installation reads the name of the installation that a database holds.
func Installation(ctx context.Context, db *database.DB) (string, error) {
	var name string
	if err := db.Read(ctx).Raw("SELECT installation_id FROM installation").Scan(&name).Error; err != nil {
		return "", fmt.Errorf("read the installation's name: %w", err)
	}
	return name, nil
}

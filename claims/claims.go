// Package claims is the service that takes claims of promotions: it verifies the order token, queues what comes for one
// promotion, and has promotion.Take decide it in groups, the natural batch of what came while the group before was written.
//
// Whatever the way, a claim is answered as held only once it is committed.
package claims

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/database"
	"doortab/promotion"
)

// Errors that callers act on; their texts are fit for a user.
var (
	// ErrBusy says that too many wait already. The token is unused.
	ErrBusy = errors.New("too many claims of this promotion are waiting: try again in a moment")
	// ErrClosed says that the process is ending. The token is good for the same claim elsewhere.
	ErrClosed = errors.New("this process is ending: try again in a moment")
	// ErrPending says that a claim is promised and not written yet, so that it can't be given back.
	ErrPending = errors.New("is still being written: try again in a moment")
)

// Config holds what a [Service] needs.
type Config struct {
	DB *database.DB
	// Redis holds the counters of promotions that are sold the Redis way, for this service alone; nil: the database decides all
	// claims. The caller closes it after the service.
	Redis *Redis
	// Buckets is how many parts the counters of a promotion have; 8 where it is 0.
	Buckets int
	Logger  *slog.Logger // nil: slog.Default
	Metrics prometheus.Registerer
}

// Service takes claims. It is safe for concurrent use.
type Service struct {
	db         *database.DB
	log        *slog.Logger
	tokens     *promotion.Tokens
	promotions *cache

	ctx    context.Context // of the work that outlives a request
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	queues map[int64]*queue // of promotions for which somebody waits
	closed bool

	answers *prometheus.CounterVec

	// The Redis way.
	redis    *Redis // nil: off
	buckets  int
	consumer string // names this process to the consumer groups
	finder   *finder
	metrics  *metrics
	counters map[int64]*counters // by promotion
	untold   untold
}

// New returns a service that works until [Service.Close].
func New(c Config) *Service {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		db: c.DB, log: cmp.Or(c.Logger, slog.Default()), tokens: promotion.NewTokens(c.DB), promotions: newCache(c.DB),
		ctx: ctx, cancel: cancel, queues: map[int64]*queue{}, answers: newAnswers(c.Metrics),
		redis: c.Redis, buckets: cmp.Or(c.Buckets, defaultBuckets), consumer: rand.Text(), finder: newFinder(),
		metrics: newMetrics(c.Metrics), counters: map[int64]*counters{},
	}
	if s.redis != nil {
		s.startRedis()
	}
	return s
}

func (s *Service) startRedis() {
	for range lanes {
		s.work.Go(s.redis.serve)
	}
	s.work.Go(func() { s.finder.run(s.ctx, s) })
	s.work.Go(func() { s.keepStreamsSwept(s.ctx) })
}

// start runs work until it returns or reports that the service is closed.
func (s *Service) start(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(work)
	}
	return !s.closed
}

// Close refuses what is waiting and returns when what is being written has ended.
func (s *Service) Close() {
	s.mu.Lock()
	if s.redis != nil && !s.closed {
		close(s.redis.ended)
	}
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}

// Issue gives a person an order token for a promotion that may still give units. It returns [promotion.ErrNotFound], a
// [promotion.Refusal] or an error of the database.
func (s *Service) Issue(ctx context.Context, p promotion.Purpose) (token string, expiresAt time.Time, err error) {
	now := database.Now()
	of, err := s.promotions.read(ctx, p.PromotionID)
	switch {
	case err != nil:
		return "", time.Time{}, err
	case !of.NeedsClaim:
		return "", time.Time{}, promotion.NoClaimNeeded
	case of.State == promotion.Ended || !now.Before(of.EndsAt):
		return "", time.Time{}, promotion.NotLive
	}
	return s.tokens.Issue(ctx, p, now)
}

// Request asks for units of a promotion.
type Request struct {
	promotion.Purpose // whose the token must be

	Token    string
	Quantity int64 // 1 to 1000
}

// Claim takes a claim, and returns it once it is committed. The same token again gets the same answer, whatever became of the
// claim meanwhile. It returns a [promotion.Refusal], [promotion.ErrNotFound], [promotion.ErrInvalid], [ErrBusy], [ErrClosed] or
// an error of the database; after these last three and when ctx has ended, the same request may be sent again.
func (s *Service) Claim(ctx context.Context, r Request) (promotion.Claim, error) {
	if r.Quantity < 1 || r.Quantity > promotion.MaxQuantity {
		return promotion.Claim{}, fmt.Errorf("quantity %w: give 1 to %d", promotion.ErrInvalid, promotion.MaxQuantity)
	}
	p, err := s.promotions.read(ctx, r.PromotionID)
	if err != nil {
		return promotion.Claim{}, err
	}
	if !p.NeedsClaim {
		return promotion.Claim{}, promotion.NoClaimNeeded
	}
	now := database.Now()
	id, err := s.tokens.Verify(ctx, r.Token, r.Purpose, now)
	if errors.Is(err, promotion.TokenExpired) {
		return s.madeBefore(ctx, r, id)
	}
	if err != nil {
		return promotion.Claim{}, err
	}
	c, err := s.take(ctx, p, promotion.Ask{UserID: r.UserID, TokenID: id, App: r.App, Quantity: r.Quantity, At: now})
	s.answers.WithLabelValues(string(p.Way), outcomeOf(c, err)).Inc()
	if err != nil {
		return promotion.Claim{}, err
	}
	return c, c.Refusal()
}

// take picks the way.
func (s *Service) take(ctx context.Context, p promotion.Promotion, a promotion.Ask) (promotion.Claim, error) {
	if p.Way == promotion.Redis {
		return s.takeFromRedis(ctx, p, a)
	}
	return s.takeFromDatabase(ctx, p.PromotionID, a)
}

// madeBefore is the answer to a token that is too old to make a claim: the one that it made.
func (s *Service) madeBefore(ctx context.Context, r Request, id promotion.TokenID) (promotion.Claim, error) {
	c, err := promotion.ReadByToken(s.db.Read(ctx), r.PromotionID, id)
	switch {
	case errors.Is(err, promotion.ErrNoClaim):
		return promotion.Claim{}, promotion.TokenExpired
	case err != nil:
		return promotion.Claim{}, err
	case c.Quantity != r.Quantity:
		return promotion.Claim{}, promotion.TokenUsed
	default:
		return c, c.Refusal()
	}
}

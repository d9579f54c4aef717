package claims

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"doortab/database"
	"doortab/promotion"
)

const (
	// epochsTried is how many epochs may end under an ask before the database decides it.
	epochsTried = 5
	// countersSought is how often an ask that the database can't serve looks for counters that have units, and countersAgain how
	// long it waits in between.
	countersSought, countersAgain = 20, 50 * time.Millisecond
	// writeWait is how long a shopper waits for a claim to be committed before hearing that it is pending.
	writeWait = 2 * time.Second
)

// counters is what this process knows of a promotion's counters in Redis, and the one place from which it leases units for
// them and writes what they sold.
type counters struct {
	service     *Service
	redis       *Redis
	promotionID int64
	claimTTL    time.Duration

	beginning turn       // an epoch
	ending    turn       // what is over
	writers   [2]*writer // each of the buckets that leave its rest

	mu       sync.Mutex
	current  *epoch // nil: none is known to be open
	over     int64  // no epoch up to this one gives units any more
	returned int64  // every epoch up to this one is known to have given its leases back
	retryAt  time.Time
	emptyAt  time.Time // when no lease had units
	warming  sighting
	sold     map[int64][]*sale // by claim id, those that somebody waits for
	wants    []*want
	leasing  bool
	usedAt   time.Time

	stop context.CancelFunc // of the writers
}

// countersOf returns those of a promotion, with writers that run where there is a Redis.
func (s *Service) countersOf(p promotion.Promotion) (*counters, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	c := s.counters[p.PromotionID]
	if c == nil {
		c = &counters{
			service: s, redis: s.redis, promotionID: p.PromotionID, claimTTL: p.ClaimTTL(),
			beginning: newTurn(), ending: newTurn(), sold: map[int64][]*sale{},
		}
		s.counters[p.PromotionID] = c
		if s.redis != nil {
			s.startWriters(c)
		}
	}
	c.use()
	return c, nil
}

func (s *Service) startWriters(c *counters) {
	ctx, stop := context.WithCancel(s.ctx)
	c.stop = stop
	c.writers = [2]*writer{newWriter(c), newWriter(c)}
	for _, w := range c.writers {
		s.work.Go(func() { w.run(ctx) })
	}
}

// takeFromRedis has an ask decided by the counters in Redis, or by the database where they can't. Nobody hears that a promotion
// is sold out while units lie in leases, whoever holds them: this process may have no Redis, or what it knows of the promotion
// may be a second old.
func (s *Service) takeFromRedis(ctx context.Context, p promotion.Promotion, a promotion.Ask) (promotion.Claim, error) {
	c, err := s.countersOf(p) //nolint:contextcheck // the writers outlive the request
	if err != nil {
		return promotion.Claim{}, err
	}
	for lost, looked := 0, 0; ; {
		claim, err := c.take(ctx, p, a)
		switch {
		case errors.Is(err, errLeased): // others may take the units first, but not for ever: each time there are fewer
			continue
		case errors.Is(err, errAgain) && lost < epochsTried:
			lost++
			continue
		case !errors.Is(err, errAgain) && !errors.Is(err, errNoCounters):
			return claim, err
		}
		claim, err = c.takeFromDatabase(ctx, a)
		if err != nil || claim.State != promotion.Refused || claim.Reason != promotion.SoldOut {
			return claim, err
		}
		leased, err := c.holdsLeases(ctx)
		if err != nil || !leased {
			return claim, err
		}
		if looked++; looked < countersSought && !c.redis.isDown() && pause(ctx, countersAgain) {
			if p, err = s.promotions.read(ctx, p.PromotionID); err != nil {
				return promotion.Claim{}, err
			}
			continue // the promotion has just begun, or another process is about to sell them
		}
		if err := c.endAny(ctx); err != nil {
			return promotion.Claim{}, err
		}
		return c.takeFromDatabase(ctx, a)
	}
}

func (c *counters) use() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usedAt = time.Now()
}

// takeFromDatabase decides without Redis. What is leased to counters that this process can't ask any more goes back first.
func (c *counters) takeFromDatabase(ctx context.Context, a promotion.Ask) (promotion.Claim, error) {
	if err := c.returnLeases(ctx); err != nil {
		return promotion.Claim{}, err
	}
	return c.service.takeFromDatabase(ctx, c.promotionID, a)
}

var (
	errLeased     = errors.New("the bucket has units again")
	errAgain      = errors.New("the epoch is over")
	errNoCounters = errors.New("there are no counters to ask")
)

// take asks the person's bucket. It returns errLeased or errAgain where the same ask may fare better now, and errNoCounters
// where the database has to decide.
func (c *counters) take(ctx context.Context, p promotion.Promotion, a promotion.Ask) (promotion.Claim, error) {
	if c.redis == nil || !p.LiveAt(a.At) {
		return promotion.Claim{}, errNoCounters
	}
	e, err := c.open(ctx)
	if err != nil {
		return promotion.Claim{}, err
	}
	a.ClaimID = database.NewID(a.At)
	bought := c.await(a, e)
	answer, err := c.ask(ctx, p, a, e)
	if err != nil {
		c.leave(bought)
		if errors.Is(err, errRedisDown) {
			c.lose(e)
			return promotion.Claim{}, errors.Join(errNoCounters, err)
		}
		return promotion.Claim{}, err
	}
	if answer == "ok" {
		c.ring(bought)
		return c.wait(ctx, bought)
	}
	c.leave(bought)
	return c.settle(ctx, a, e, answer)
}

func (c *counters) ask(ctx context.Context, p promotion.Promotion, a promotion.Ask, e *epoch) (string, error) {
	reply, err := c.redis.run(ctx, claimScript, e.keys[e.bucket(a.UserID)].all, a.TokenID[:], a.UserID, a.Quantity, p.PerUser, a.ClaimID,
		strconv.FormatInt(a.At.UnixMilli(), 10)+" "+a.App)
	if errors.Is(err, errRedisDown) {
		c.service.metrics.deducted(c.promotionID, "unavailable")
	}
	if err != nil {
		return "", err
	}
	answer, _ := reply.(string)
	if id, known := strings.CutPrefix(answer, "same "); known {
		if id == strconv.FormatInt(a.ClaimID, 10) {
			answer = "ok" // its first answer was lost
		} else {
			c.service.metrics.deducted(c.promotionID, "same")
			return answer, nil
		}
	}
	c.service.metrics.deducted(c.promotionID, answer)
	return answer, nil
}

// settle acts on an answer that took no units.
func (c *counters) settle(ctx context.Context, a promotion.Ask, e *epoch, answer string) (promotion.Claim, error) {
	switch answer {
	case "limit_reached", "token_used", "sold_out":
		return refusal(a, promotion.Refusal(answer)), nil
	case "dry":
		if sold, err := c.lease(ctx, e, a); err != nil || sold {
			return refusal(a, promotion.SoldOut), err
		}
		return promotion.Claim{}, errLeased
	case "no_epoch":
		c.forget(e)
		c.ringAll(e, false) // who waits for a sale of it hears whether its stream is gone too
		return promotion.Claim{}, errAgain
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(answer, "same "), 10, 64)
	if err != nil {
		return promotion.Claim{}, errNoCounters
	}
	a.ClaimID = id
	bought := c.await(a, e)
	c.service.finder.look(bought)
	return c.wait(ctx, bought)
}

func refusal(a promotion.Ask, reason promotion.Refusal) promotion.Claim {
	return promotion.Claim{UserID: a.UserID, TokenID: a.TokenID, App: a.App, Quantity: a.Quantity, State: promotion.Refused, Reason: reason}
}

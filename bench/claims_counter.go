package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"doortab/bench/usual"
	"doortab/claims"
	"doortab/database"
	"doortab/migrations"
	"doortab/promotion"
	"doortab/settlement"
)

const (
	pressers  = 200 // connections, or as many callers in process
	claimsApp = "bench"
)

// counter is where users claim units: Doortab, which does it both ways, and the usual design, each on a database of its own.
type counter struct {
	dsn, usualDSN string
	db            *database.DB
	redis         *claims.Redis
	service       *claims.Service
	tokens        *promotion.Tokens
	design        *usual.Design
	metrics       *prometheus.Registry // of the service
	crew          int                  // of the usual design
	users         atomic.Int64
	offers        int64 // of the usual design
}

func (l *Lab) newCounter(ctx context.Context) (c *counter, err error) {
	c = &counter{}
	if c.dsn, err = l.schema(ctx, "doortab"); err != nil {
		return nil, err
	}
	if c.usualDSN, err = l.schema(ctx, "usual"); err != nil {
		return nil, err
	}
	if c.db, err = database.Open(database.Config{DSN: c.dsn, Logger: l.log}); err != nil {
		return nil, err
	}
	if err = c.prepare(ctx, l); err != nil {
		return nil, errors.Join(err, c.db.Close())
	}
	return c, nil
}

func (c *counter) prepare(ctx context.Context, l *Lab) (err error) {
	if _, err := migrations.Up(ctx, c.db); err != nil {
		return err
	}
	if err := fillCatalogue(ctx, c.db); err != nil {
		return err
	}
	installation, err := settlement.Installation(ctx, c.db)
	if err != nil {
		return err
	}
	c.redis, err = claims.OpenRedis(claims.RedisConfig{URL: l.servers.Redis.URL(), Installation: installation, Logger: l.log})
	if err != nil {
		return err
	}
	c.metrics = prometheus.NewRegistry()
	c.service = claims.New(claims.Config{DB: c.db, Redis: c.redis, Logger: l.log, Metrics: c.metrics})
	c.tokens = promotion.NewTokens(c.db)
	c.design, err = usual.Open(c.usualDSN, l.servers.Redis.URL(), crews[len(crews)-1])
	return err
}

func (c *counter) close(ctx context.Context, l *Lab) error {
	c.service.Close()
	return errors.Join(c.redis.Close(), c.db.Close(), c.design.Close(), l.drop(ctx, c.dsn), l.drop(ctx, c.usualDSN))
}

// offer makes a promotion of so many units, one for each person, and lets it begin.
func (c *counter) offer(ctx context.Context, way promotion.Way, quota int64) (id int64, err error) {
	if way == theUsual {
		c.offers++
		return c.offers, c.design.Offer(ctx, c.offers, quota)
	}
	now := database.Now()
	err = c.db.InTx(ctx, func(tx *gorm.DB) error {
		p, err := promotion.Create(tx, promotion.Promotion{
			Name: "Cola for 1", ProductID: 1, PriceMinor: 100, Quota: quota, PerUser: 1, NeedsClaim: true,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour), Way: way,
		}, now)
		id = p.PromotionID
		return err
	})
	for _, to := range []promotion.State{promotion.Warming, promotion.Live} {
		if err == nil {
			err = c.db.InTx(ctx, func(tx *gorm.DB) error {
				_, err := promotion.Transition(tx, id, to, now)
				return err
			})
		}
	}
	return id, err
}

func (c *counter) nextUser() int64 { return c.users.Add(1) }

// press is one press of the button: a token and the claim with it. It tells whether the user got the unit; being refused is no error.
func (c *counter) press(ctx context.Context, way promotion.Way, id, user int64) (got bool, err error) {
	if way == theUsual {
		return whetherUsual(c.design.Claim(ctx, id, user))
	}
	claim, err := c.claim(ctx, id, user)
	var refused promotion.Refusal
	switch {
	case errors.As(err, &refused):
		return false, nil
	case err == nil && claim.State != promotion.Held:
		return false, fmt.Errorf("claim of user %d is %s after a press", user, claim.State)
	default:
		return err == nil, err
	}
}

// claim is a press in process, and may be answered as pending.
func (c *counter) claim(ctx context.Context, id, user int64) (promotion.Claim, error) {
	purpose := promotion.Purpose{PromotionID: id, UserID: user, App: claimsApp}
	token, _, err := c.tokens.Issue(ctx, purpose, time.Now())
	if err != nil {
		return promotion.Claim{}, err
	}
	return c.service.Claim(ctx, claims.Request{Purpose: purpose, Token: token, Quantity: 1})
}

func whetherUsual(err error) (got bool, failed error) {
	if errors.Is(err, usual.ErrSoldOut) || errors.Is(err, usual.ErrLimit) || errors.Is(err, usual.ErrPressed) {
		return false, nil
	}
	return err == nil, err
}

// workers is how many press at one time: as many as there are connections, in the usual design as many as serve it best.
func (c *counter) workers(way promotion.Way) int {
	if way == theUsual {
		return c.crew
	}
	return pressers
}

// crowd has users press who press for the first time, and returns how many a second were answered as they should.
func (c *counter) crowd(way promotion.Way, id int64, want bool) func(context.Context, time.Duration) (float64, error) {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		var answered atomic.Int64
		var failed atomic.Pointer[error]
		var crowd sync.WaitGroup
		started := time.Now()
		for range c.workers(way) {
			crowd.Go(func() {
				for time.Since(started) < d && ctx.Err() == nil && failed.Load() == nil {
					got, err := c.press(ctx, way, id, c.nextUser())
					if err == nil && got != want {
						err = fmt.Errorf("%s: a press was answered with %t instead of %t", way, got, want)
					}
					if err != nil {
						failed.Store(&err)
						return
					}
					answered.Add(1)
				}
			})
		}
		crowd.Wait()
		took := time.Since(started)
		if err := failed.Load(); err != nil && ctx.Err() == nil {
			return 0, *err
		}
		return float64(answered.Load()) / took.Seconds(), context.Cause(ctx)
	}
}

// chooseCrew finds the number of workers with which the usual design claims the most.
func (c *counter) chooseCrew(ctx context.Context, l *Lab) error {
	best, most := 0, 0.0
	id, err := c.offer(ctx, theUsual, endless)
	if err != nil {
		return err
	}
	for _, workers := range crews {
		if err := c.useCrew(workers); err != nil {
			return err
		}
		rate, err := c.crowd(theUsual, id, true)(ctx, l.search)
		if err != nil {
			return err
		}
		if rate > most {
			best, most = workers, rate
		}
	}
	l.say("usual design is at its best with %d workers: %.0f claims/s", best, most)
	return c.useCrew(best)
}

func (c *counter) useCrew(workers int) error {
	c.crew = workers
	return c.design.Workers(workers)
}

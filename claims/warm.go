package claims

import (
	"context"
	"errors"
	"time"

	"doortab/database"
	"doortab/promotion"
)

// warmAhead is how long before its window a live promotion gets its counters.
const warmAhead = time.Minute

// warmUp begins the counters of promotions that are about to give units, so that no shopper waits for that. Of all processes one
// loads them; who comes later finds them set.
func (s *Service) warmUp(ctx context.Context) error {
	if s.redis.isDown() {
		return nil
	}
	list, err := promotion.ToWarm(s.db.Read(ctx), database.Now(), warmAhead)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range list {
		c, err := s.countersOf(p) //nolint:contextcheck // the writers outlive the sweep
		if err == nil {
			_, err = c.open(ctx)
		}
		if err != nil && !errors.Is(err, errNoCounters) { // with these another process is at it, or the next round tries again
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

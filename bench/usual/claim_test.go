package usual_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"doortab/bench/usual"
	"doortab/services/servicestest"
)

func TestUsersWhoPressTogetherGetWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const quota, users, presses = 20, 60, 3
	if err := s.Offer(t.Context(), 7, quota); err != nil {
		t.Fatal(err)
	}
	var claimed, soldOut, refused atomic.Int64
	var crowd errgroup.Group
	crowd.SetLimit(workers)
	for n := range users * presses {
		crowd.Go(func() error {
			err := s.Claim(t.Context(), 7, int64(1+n%users))
			switch {
			case err == nil:
				claimed.Add(1)
			case errors.Is(err, usual.ErrSoldOut):
				soldOut.Add(1)
			case errors.Is(err, usual.ErrLimit), errors.Is(err, usual.ErrPressed):
				refused.Add(1)
			default:
				return err
			}
			return nil
		})
	}
	if err := crowd.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Claimed(t.Context(), 7); err != nil || n != quota || claimed.Load() != quota {
		t.Errorf("%d claims, %d said so, %v; there are %d units", n, claimed.Load(), err, quota)
	}
	if soldOut.Load() == 0 || claimed.Load()+soldOut.Load()+refused.Load() != users*presses {
		t.Errorf("%d sold out and %d refused of %d", soldOut.Load(), refused.Load(), users*presses)
	}
	s.wantRows("SELECT COUNT(DISTINCT user_id) FROM promotion_claims", "20")
	s.wantRows("SELECT quantity FROM promotion_goods", "0")
}

func TestAUserWithAClaimIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if err := s.Offer(t.Context(), 7, 5); err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(t.Context(), 7, 42); err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(t.Context(), 7, 42); !errors.Is(err, usual.ErrLimit) {
		t.Error(err)
	}
	s.wantRows("SELECT quantity FROM promotion_goods", "4")
}

func TestAClaimStandsWhereItsLockWasLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if err := s.Offer(t.Context(), 7, 5); err != nil {
		t.Fatal(err)
	}
	hold, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.ExecContext(t.Context(), "UPDATE promotion_goods SET quantity = 5 WHERE id = 7"); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error, 1)
	go func() { claimed <- s.Claim(context.WithoutCancel(t.Context()), 7, 42) }()
	s.loseLock(claimed)
	if err := errors.Join(hold.Rollback(), <-claimed); err != nil {
		t.Error(err)
	}
	s.wantRows("SELECT user_id FROM promotion_claims", "42")
}

// loseLock waits for the one lock of a user and deletes it, while the claim waits for its row.
func (s *shop) loseLock(claimed <-chan error) {
	s.t.Helper()
	options, err := redis.ParseURL(servicestest.Redis(s.t).URL())
	if err != nil {
		s.t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-claimed:
			s.t.Fatalf("the claim did not wait for its row: %v", err)
		case <-tick.C:
		}
		keys, err := client.Keys(s.t.Context(), "usual:"+s.schema+":claim:*").Result()
		if err != nil {
			s.t.Fatal(err)
		}
		if len(keys) == 1 {
			if n, err := client.Del(s.t.Context(), keys[0]).Result(); n != 1 || err != nil {
				s.t.Fatal(n, err)
			}
			return
		}
	}
}

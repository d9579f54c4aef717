package usual_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"doortab/bench/usual"
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

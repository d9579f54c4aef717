package claims_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"doortab/claims"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/promotion"
)

// The answer to COMMIT is lost, again and again: each claim is made once, and its person hears of it.
func TestALostAnswerToCommitMakesNoSecondClaim(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(20, 2)
	proxy, dsn := throughForgetful(t, s.dsn)
	service := serve(t, databasetest.Open(t, dsn))
	for user := range int64(5) {
		proxy.lose.Store(1)
		c, err := service.Claim(t.Context(), s.request(p, 1+user, 2))
		if err != nil || c.State != promotion.Held {
			t.Errorf("user %d: %+v, %v", 1+user, c, err)
		}
		proxy.lose.Store(1)
		back, err := service.GiveBack(t.Context(), c.ClaimID, func(promotion.Claim) bool { return true })
		if err != nil || back.State != promotion.Returned {
			t.Errorf("user %d gives back: %+v, %v", 1+user, back, err)
		}
	}
	if proxy.lost.Load() != 10 {
		t.Errorf("%d answers were lost", proxy.lost.Load())
	}
	if rows := s.number("SELECT COUNT(*) FROM claims"); rows != 5 {
		t.Errorf("%d claims of 5 persons", rows)
	}
	if lines := s.number("SELECT COUNT(*) FROM audit_log WHERE action = 'claim.returned'"); lines != 5 {
		t.Errorf("%d lines in the audit log", lines)
	}
	s.checkBooks(p)
	if taken := s.number("SELECT taken FROM promotion_quota"); taken != 0 {
		t.Errorf("%d units are taken after all came back", taken)
	}
}

// Two processes take claims of one person at one moment: the counter lets one through.
func TestOnePersonInTwoProcessesHasTheLimitOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(1000, 1)
	services := []*claims.Service{s.Service, serve(t, databasetest.Open(t, s.dsn))}
	for user := range int64(60) {
		got := newTally()
		var pressing sync.WaitGroup
		for n := range 4 {
			r := s.request(p, 1+user, 1)
			pressing.Go(func() { got.add(services[n%2].Claim(t.Context(), r)) })
		}
		pressing.Wait()
		if got.failed != nil || len(got.claims) != 1 || got.refused[promotion.LimitReached] != 3 {
			t.Fatalf("user %d: %d claims, %v, %v", 1+user, len(got.claims), got.refused, got.failed)
		}
	}
	s.checkBooks(p)
}

// Who has gone before the group is decided gets nothing, and who waits longer than that is not held up.
func TestWhoHasGoneTakesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(5, 5)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Claim(gone, s.request(p, 1, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if c, err := s.Claim(t.Context(), s.request(p, 2, 1)); err != nil || c.State != promotion.Held {
		t.Errorf("%+v, %v", c, err)
	}
	if rows := s.number("SELECT COUNT(*) FROM claims"); rows != 1 {
		t.Errorf("%d claims", rows)
	}
}

func TestAClosedServiceRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(5, 5)
	r := s.request(p, 1, 1)
	s.Close()
	_, err := s.Claim(t.Context(), r)
	refusedAs(t, err, claims.ErrClosed)
	c, err := serve(t, s.db).Claim(t.Context(), r)
	if err != nil || c.State != promotion.Held {
		t.Errorf("the same elsewhere: %+v, %v", c, err)
	}
}

// The sweep passes over what it can't expire and expires the rest.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	good, broken := s.live(900, 1), s.live(900, 1)
	var crowd sync.WaitGroup
	got := newTally()
	for user := range int64(700) {
		for _, p := range []promotion.Promotion{good, broken} {
			r := s.request(p, 1+user, 1)
			crowd.Go(func() { got.add(s.Claim(t.Context(), r)) })
		}
	}
	crowd.Wait()
	if got.failed != nil || len(got.claims) != 1400 {
		t.Fatalf("%d claims, %v", len(got.claims), got.failed)
	}
	if swept, err := s.Sweep(t.Context()); swept != 0 || err != nil {
		t.Errorf("%d were swept before their time, %v", swept, err)
	}
	s.exec("UPDATE claims SET expires_at = ? WHERE user_id <> 700", database.Now())
	s.exec("UPDATE promotion_quota SET taken = 0 WHERE promotion_id = ?", broken.PromotionID)
	if swept, err := s.Sweep(t.Context()); swept != 699 || err == nil {
		t.Errorf("%d were swept, %v", swept, err)
	}
	s.checkBooks(good)
	if held := s.number("SELECT COUNT(*) FROM claims WHERE promotion_id = ? AND state = 'held'", good.PromotionID); held != 1 {
		t.Errorf("%d are still held", held)
	}
	s.exec("UPDATE promotion_quota SET taken = 700 WHERE promotion_id = ?", broken.PromotionID)
	if swept, err := s.Sweep(t.Context()); swept != 699 || err != nil {
		t.Errorf("once the quota is right: %d were swept, %v", swept, err)
	}
	s.checkBooks(broken)
}

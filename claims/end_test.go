package claims_test

import (
	"testing"
	"time"
)

func TestAClaimEndsOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(5, 5)
	held, err := s.Claim(t.Context(), s.request(p, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if due, err := s.End(t.Context(), held.ClaimID); err != nil || !due.Equal(held.ExpiresAt) {
		t.Errorf("one that has time left: %s, %v; want %s", due, err, held.ExpiresAt)
	}
	if n := s.number("SELECT COUNT(*) FROM claims WHERE state = 'held'"); n != 1 {
		t.Error("it ended before its time")
	}
	s.exec("UPDATE claims SET expires_at = NOW(3) - INTERVAL 1 SECOND")
	for range 2 { // also a second time
		if due, err := s.End(t.Context(), held.ClaimID); err != nil || !due.Equal(time.Time{}) {
			t.Errorf("overdue: %s, %v", due, err)
		}
	}
	if n := s.number("SELECT COUNT(*) FROM claims WHERE state = 'expired'"); n != 1 {
		t.Error("it is not expired")
	}
	if due, err := s.End(t.Context(), 7); err != nil || !due.IsZero() {
		t.Errorf("unknown: %s, %v", due, err)
	}
	s.checkBooks(p)
}

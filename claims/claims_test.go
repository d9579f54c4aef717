package claims_test

import (
	"errors"
	"sync"
	"testing"

	"gorm.io/gorm"

	"doortab/claims"
	"doortab/database"
	"doortab/promotion"
)

func refusedAs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, not %v", err, want)
	}
}

// tally counts what came of many claims.
type tally struct {
	mu      sync.Mutex
	claims  map[int64]bool
	users   map[int64]bool
	refused map[error]int
	failed  error
}

func newTally() *tally {
	return &tally{claims: map[int64]bool{}, users: map[int64]bool{}, refused: map[error]int{}}
}

func (y *tally) add(c promotion.Claim, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	var refusal promotion.Refusal
	switch {
	case errors.As(err, &refusal):
		y.refused[refusal]++
	case err != nil:
		y.failed = err
	default:
		y.claims[c.ClaimID], y.users[c.UserID] = true, true
	}
}

// Each person presses three times, twice with one token and once with another, in two processes.
func TestManyPressOneButton(t *testing.T) {
	t.Parallel()
	const users, units = 2000, 50
	s := newShop(t)
	p := s.live(units, 1)
	other := serve(t, databaseOf(t, s))
	got := newTally()
	presses := make(chan claims.Request)
	var pressing sync.WaitGroup
	for i := range 200 {
		service := []*claims.Service{s.Service, other}[i%2]
		pressing.Go(func() {
			for r := range presses {
				got.add(service.Claim(t.Context(), r))
			}
		})
	}
	for user := range int64(users) {
		first := s.request(p, 1+user, 1)
		for _, r := range []claims.Request{first, s.request(p, 1+user, 1), first} {
			presses <- r
		}
	}
	close(presses)
	pressing.Wait()
	if got.failed != nil {
		t.Error(got.failed)
	}
	if len(got.claims) != units || len(got.users) != units {
		t.Errorf("%d claims of %d users", len(got.claims), len(got.users))
	}
	if left := s.number("SELECT quota - taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); left != 0 {
		t.Errorf("%d units left over", left)
	}
	if rows := s.number("SELECT COUNT(*) FROM claims WHERE promotion_id = ?", p.PromotionID); rows != units {
		t.Errorf("%d claims are kept", rows)
	}
	s.checkBooks(p)
}

func databaseOf(t *testing.T, s shop) *database.DB {
	t.Helper()
	db, err := database.Open(database.Config{DSN: s.dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p, free := s.live(3, 2), s.live(3, 2)
	s.exec("UPDATE promotions SET needs_claim = FALSE WHERE promotion_id = ?", free.PromotionID)
	unknown := s.request(promotion.Promotion{PromotionID: 99}, 1, 1)
	foreign := s.request(p, 1, 1)
	foreign.UserID = 2
	for _, c := range []struct {
		name string
		r    claims.Request
		want error
	}{
		{"a promotion that isn't there", unknown, promotion.ErrNotFound},
		{"the same within a moment", unknown, promotion.ErrNotFound},
		{"none needed", s.request(free, 1, 1), promotion.NoClaimNeeded},
		{"another person's token", foreign, promotion.TokenInvalid},
		{"quantity 0", s.request(p, 1, 0), promotion.ErrInvalid},
		{"quantity -3", s.request(p, 1, -3), promotion.ErrInvalid},
		{"quantity 10^9", s.request(p, 1, 1_000_000_000), promotion.ErrInvalid},
		{"beyond the limit", s.request(p, 1, 3), promotion.LimitReached},
		{"beyond the quota", s.request(p, 1, 4), promotion.SoldOut},
		{"two of three", s.request(p, 1, 2), nil},
		{"one more than the limit", s.request(p, 1, 1), promotion.LimitReached},
		{"the last", s.request(p, 2, 1), nil},
		{"sold out", s.request(p, 3, 1), promotion.SoldOut},
	} {
		_, err := s.Claim(t.Context(), c.r)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", c.name, err, c.want)
		}
	}
	s.checkBooks(p)
}

func TestAnOldTokenStillFindsItsClaim(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(5, 5)
	old := func() (r claims.Request, id promotion.TokenID) {
		r = s.request(p, 1, 1)
		token, _, err := s.tokens.Issue(t.Context(), r.Purpose, database.Now().Add(-promotion.TokenFor))
		if err != nil {
			t.Fatal(err)
		}
		r.Token = token
		id, err = s.tokens.Verify(t.Context(), token, r.Purpose, database.Now())
		refusedAs(t, err, promotion.TokenExpired)
		return r, id
	}
	used, id := old()
	var first promotion.Claim
	err := s.db.InTx(t.Context(), func(tx *gorm.DB) error {
		made, err := promotion.Take(tx, p.PromotionID,
			[]promotion.Ask{{UserID: 1, TokenID: id, App: used.App, Quantity: 1, At: database.Now()}}, database.Now())
		first = made[0]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Claim(t.Context(), used)
	if err != nil || again.ClaimID != first.ClaimID {
		t.Errorf("%+v, %v", again, err)
	}
	unused, _ := old()
	_, err = s.Claim(t.Context(), unused)
	refusedAs(t, err, promotion.TokenExpired)
	used.Quantity = 2
	_, err = s.Claim(t.Context(), used)
	refusedAs(t, err, promotion.TokenUsed)
}

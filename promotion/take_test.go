package promotion_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

// outcome is a claim in short.
func outcome(c promotion.Claim) string {
	if c.State == promotion.Refused {
		return string(c.Reason)
	}
	return string(c.State)
}

func outcomes(claims []promotion.Claim) []string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = outcome(c)
	}
	return list
}

func TestTakeDecidesEachAskOfAGroup(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, c := range []struct {
		name           string
		quota, perUser int64
		asks           []promotion.Ask
		want           []string
	}{
		{"all fit", 3, 1, []promotion.Ask{ask(1, 1, 1), ask(2, 1, 1), ask(3, 1, 1)}, []string{"held", "held", "held"}},
		{"the last is too late", 2, 1, []promotion.Ask{ask(1, 1, 1), ask(2, 1, 1), ask(3, 1, 1)}, []string{"held", "held", "sold_out"}},
		{
			"a large one is passed over while a small one is served", 3, 5,
			[]promotion.Ask{ask(1, 1, 2), ask(2, 1, 2), ask(3, 1, 1)}, []string{"held", "sold_out", "held"},
		},
		{"one person twice", 5, 1, []promotion.Ask{ask(1, 1, 1), ask(1, 2, 1)}, []string{"held", "limit_reached"}},
		{"more than the limit at once", 5, 2, []promotion.Ask{ask(1, 1, 3)}, []string{"limit_reached"}},
		{"one token twice", 5, 2, []promotion.Ask{ask(1, 1, 1), ask(1, 1, 1)}, []string{"held", "held"}},
		{"one token for two quantities", 5, 5, []promotion.Ask{ask(1, 1, 1), ask(1, 1, 2)}, []string{"held", "token_used"}},
		{"a refused ask leaves its token unused", 1, 5, []promotion.Ask{ask(1, 1, 2), ask(1, 1, 1)}, []string{"sold_out", "held"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := s.live(cola(c.quota, c.perUser))
			if got := outcomes(s.take(p, c.asks...)); !slices.Equal(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
			held := s.number("SELECT COUNT(*) FROM claims WHERE promotion_id = ?", p.PromotionID)
			if rows := s.number("SELECT COUNT(*) FROM claims WHERE promotion_id = ? AND state = 'held'", p.PromotionID); rows != held {
				t.Errorf("%d claims are kept, %d held", held, rows)
			}
		})
	}
}

func TestSameTokenIsSameAnswer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(cola(2, 2))
	first := s.take(p, ask(1, 1, 1))[0]
	s.become(p, promotion.Paused)
	again := s.take(p, ask(1, 1, 1))[0]
	if again.ClaimID != first.ClaimID || again.ClaimID == 0 || again.State != promotion.Held {
		t.Errorf("%+v, not %+v", again, first)
	}
	other := ask(2, 1, 1)
	other.TokenID = first.TokenID
	if got := outcome(s.take(p, other)[0]); got != "token_used" {
		t.Errorf("another person's ask with the token: %s", got)
	}
}

func TestQuantitiesOutOfRangeChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(cola(10, 1000))
	for _, quantity := range []int64{0, -3, 1001, 1_000_000_000} {
		t.Run(fmt.Sprint(quantity), func(t *testing.T) {
			_, err := s.tryTake(p, ask(1, 1, 1), ask(2, 1, quantity))
			refusedAs(t, err, promotion.ErrInvalid)
			s.checkBooks(p)
			if n := s.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); n != 0 {
				t.Errorf("%d taken", n)
			}
		})
	}
}

func TestGiveBackFreesUnitsOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.live(cola(1, 1))
	c := s.take(p, ask(1, 1, 1))[0]
	giveBack := func() error {
		return s.inTx(func(tx *gorm.DB) error {
			if _, err := promotion.GiveBack(tx, c, promotion.Returned, database.Now()); err != nil {
				return database.Final(err)
			}
			return nil
		})
	}
	if err := giveBack(); err != nil {
		t.Fatal(err)
	}
	s.checkBooks(p)
	s.take(p, ask(2, 1, 1))
	refusedAs(t, giveBack(), database.ErrConflict)
	s.checkBooks(p)
	if got := outcome(s.take(p, ask(3, 1, 1))[0]); got != "sold_out" {
		t.Errorf("after one unit came back twice: %s", got)
	}
}

func TestOrderTokens(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	tokens, now := promotion.NewTokens(s.db), database.Now()
	mine := promotion.Purpose{PromotionID: 5, UserID: 42, App: "shopper"}
	token, expiresAt, err := tokens.Issue(t.Context(), mine, now)
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Add(promotion.TokenFor); !expiresAt.Equal(want) {
		t.Errorf("expires at %s, not %s", expiresAt, want)
	}
	flipped := []byte(token)
	flipped[10] ^= 1
	for _, c := range []struct {
		name  string
		token string
		p     promotion.Purpose
		at    time.Time
		want  error
	}{
		{"mine", token, mine, now, nil},
		{"another person's", token, promotion.Purpose{PromotionID: 5, UserID: 43, App: "shopper"}, now, promotion.TokenInvalid},
		{"another promotion's", token, promotion.Purpose{PromotionID: 6, UserID: 42, App: "shopper"}, now, promotion.TokenInvalid},
		{"another app's", token, promotion.Purpose{PromotionID: 5, UserID: 42, App: "other"}, now, promotion.TokenInvalid},
		{"a bit changed", string(flipped), mine, now, promotion.TokenInvalid},
		{"cut", token[:len(token)-2], mine, now, promotion.TokenInvalid},
		{"empty", "", mine, now, promotion.TokenInvalid},
		{"at its last millisecond", token, mine, expiresAt.Add(-time.Millisecond), nil},
		{"too old", token, mine, expiresAt, promotion.TokenExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Another process verifies.
			_, err := promotion.NewTokens(s.db).Verify(t.Context(), c.token, c.p, c.at)
			refusedAs(t, err, c.want)
		})
	}
}

package promotion_test

import (
	"errors"
	"fmt"
	"testing"

	"doortab/promotion"
)

func refusedAs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, not %v", err, want)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	all := []promotion.State{promotion.Draft, promotion.Warming, promotion.Live, promotion.Paused, promotion.Ended}
	ways := map[promotion.State][]promotion.State{
		promotion.Draft: {}, promotion.Warming: {promotion.Warming}, promotion.Live: {promotion.Live},
		promotion.Paused: {promotion.Live, promotion.Paused}, promotion.Ended: {promotion.Ended},
	}
	allowed := map[string]bool{
		"draft warming": true, "draft live": true, "draft ended": true, "warming live": true, "warming ended": true,
		"live paused": true, "live ended": true, "paused live": true, "paused ended": true,
	}
	for _, from := range all {
		for _, to := range all {
			name := fmt.Sprint(from, " ", to)
			t.Run(name, func(t *testing.T) {
				p, err := s.create(cola(5, 1))
				if err != nil {
					t.Fatal(err)
				}
				for _, state := range ways[from] {
					s.become(p, state)
				}
				mark := s.number("SELECT version FROM marks WHERE name = 'promotions'")
				changed, err := s.transition(p, to)
				if !allowed[name] {
					refusedAs(t, err, promotion.ErrBadTransition)
					return
				}
				if err != nil || changed.State != to {
					t.Fatalf("%s, %v", changed.State, err)
				}
				if s.number("SELECT version FROM marks WHERE name = 'promotions'") != mark+1 {
					t.Error("the mark was not raised by one")
				}
			})
		}
	}
}

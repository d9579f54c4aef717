package settlement_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"doortab/settlement"
)

// Two processes that get events of the same cabinets hinder each other at first, and then take turns.
func TestTwoProcessesOfTheSameCabinetsTakeTurns(t *testing.T) {
	t.Parallel()
	const groups, size = 30, 20
	one := newShop(t)
	for device := int64(1001); device <= 1003; device++ {
		one.cabinet(device, 7, 10_000, 8, 10_000)
	}
	shops := []*shop{one, one.another(nil)}
	var both errgroup.Group
	for p, s := range shops {
		both.Go(func() error {
			for g := range groups {
				var group []settlement.Delivery
				for n := range size {
					device := int64(1001 + n%3)
					group = append(group, deliveriesOf(device, sale(device, fmt.Sprint(p, "-", g, "-", n), 7, 1, 8, 2))...)
				}
				turn := s.Turn(context.Background(), []int64{1001, 1002, 1003})
				answers := s.Settle(context.Background(), group)
				turn.Leave()
				for _, a := range answers {
					if a.Err != nil || a.Receipt.Duplicate {
						return fmt.Errorf("%+v", a)
					}
				}
			}
			return nil
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	again := 0.0
	for _, s := range shops {
		for _, n := range s.attempts()[1:] {
			again += n
		}
	}
	if again > groups/2 {
		t.Errorf("%v of %d groups had to run again", again, len(shops)*groups)
	}
	if n := one.count("settlements", "1"); n != len(shops)*groups*size {
		t.Errorf("%d settlements", n)
	}
	one.audited()
}

package settlement_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/settlement"
)

func TestARepeatGetsTheStoredReceipt(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i, members := range [][]string{
		{`"userId":42`, items(7, 2)},         // settled
		{items()},                            // empty
		{items(7, 2)},                        // review
		{`"userId":42`, items(99, 2)},        // review without an order
		{`"kind":"restock"`, items(7, 2)},    // restocked
		{`"userId":42`, items(7, 100, 8, 1)}, // shortfall
	} {
		device := int64(2000 + i)
		s.cabinet(device, 7, 10)
		payload := event(device, "e", members...)
		first := s.receipts(device, payload, payload, payload)
		later := s.receipts(device, payload)
		want := first[0]
		if want.Duplicate {
			t.Errorf("%v: the first is called a duplicate", members)
		}
		want.Duplicate = true
		for _, repeat := range []cabinet.Receipt{first[1], first[2], later[0]} {
			if diff := cmp.Diff(want, repeat); diff != "" {
				t.Errorf("%v: %s", members, diff)
			}
		}
		if n := s.count("stock_movements", "device_id = ? AND ref = 'e'", device); n > 2 {
			t.Errorf("%v: %d movements", members, n)
		}
	}
	if n := s.count("settlements", "1"); n != 6 {
		t.Errorf("%d settlements, want 6", n)
	}
	s.audited()
}

func TestOtherContentUnderAKnownIDIsAConflict(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	original, changed, third := sale(1001, "e", 7, 2), sale(1001, "e", 7, 3), sale(1001, "e", 8, 1)

	inOneGroup := s.receipts(1001, original, changed, original, changed)
	later := s.receipts(1001, changed, third, original)

	conflict := inOneGroup[1]
	if conflict.Outcome != cabinet.Conflict || conflict.Duplicate || len(conflict.Lines) > 0 || conflict.OrderID != "" ||
		!cmp.Equal(conflict.Reasons, []cabinet.Reason{cabinet.ReasonConflict}) {
		t.Errorf("conflict receipt %+v", conflict)
	}
	for _, again := range []cabinet.Receipt{inOneGroup[3], later[0]} {
		if diff := cmp.Diff(conflict, again); diff != "" {
			t.Errorf("the same conflict again: %s", diff)
		}
	}
	if later[1].Outcome != cabinet.Conflict {
		t.Errorf("third content: %+v", later[1])
	}
	for _, repeat := range []cabinet.Receipt{inOneGroup[2], later[2]} {
		if repeat.Outcome != cabinet.Settled || !repeat.Duplicate || repeat.TotalMinor != 1000 {
			t.Errorf("the first content again: %+v", repeat)
		}
	}
	got := s.kept(1001, settlement.Answer{Receipt: &inOneGroup[0]})
	want := kept{
		Receipt: "settled [] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		Lines: []string{"1|settlement|7|2|500|1000"}, Movements: []string{"7|2|sale|-2|-2|8|e"}, Stock: []string{"7|8|2"},
		Reviews: []string{`["conflict"]|[]`, `["conflict"]|[]`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := s.count("settlement_conflicts", "1"); n != 2 {
		t.Errorf("%d conflicts kept, want each of the two once", n)
	}
	if n := s.metric("doortab_settlements_total", "conflict"); n != 2 {
		t.Errorf("%v conflicts counted, want 2", n)
	}
	s.audited()
}

func TestWhatIsNotMeantToDifferIsNoConflict(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10, 8, 10)
	first := s.receipts(1001, event(1001, "e", `"userId":42`, `"bootId":"a"`, items(7, 1, 8, 1, 7, 1)))[0]
	again := s.receipts(1001, event(1001, "e", items(8, 1, 7, 2), `"bootId":"b"`, `"more":[1]`, `"userId":42`))[0]
	first.Duplicate = true
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
}

// Two processes get the same 200 events from four connections each, in groups of any size
// and order.
func TestManyWritersOfTheSameEvents(t *testing.T) {
	t.Parallel()
	const cabinets, events, writers = 5, 200, 8
	s := newShop(t)
	second := s.another(nil)
	var all []settlement.Delivery
	for device := int64(1); device <= cabinets; device++ {
		s.cabinet(device, 7, 10, 8, 1000)
	}
	for n := range events {
		device := int64(1 + n%cabinets)
		taken := []int64{8, int64(1 + n%3), 7, 1}
		if n%2 == 0 {
			taken = []int64{7, 1, 8, int64(1 + n%3)}
		}
		all = append(all, deliveriesOf(device, sale(device, fmt.Sprint("e", n), taken...))...)
	}
	answers := make([]map[string]cabinet.Receipt, writers)
	var running sync.WaitGroup
	for w := range writers {
		service := []*shop{s, second}[w%2]
		running.Go(func() { answers[w] = deliverShuffled(t, service, all, uint64(w)) })
	}
	running.Wait()

	if orders := s.count("orders", "1"); orders != events {
		t.Errorf("%d orders, want %d", orders, events)
	}
	firsts := map[string]int{}
	for _, receipts := range answers {
		for id, receipt := range receipts {
			if !receipt.Duplicate {
				firsts[id]++
			}
			receipt.Duplicate = answers[0][id].Duplicate
			if diff := cmp.Diff(answers[0][id], receipt); diff != "" {
				t.Errorf("%s: %s", id, diff)
			}
		}
	}
	for n := range events {
		if id := fmt.Sprint("e", n); firsts[id] != 1 {
			t.Errorf("%s: %d receipts that are no duplicate", id, firsts[id])
		}
	}
	s.audited()
}

func deliverShuffled(t *testing.T, s *shop, all []settlement.Delivery, seed uint64) map[string]cabinet.Receipt {
	random := rand.New(rand.NewPCG(seed, 1))
	receipts := map[string]cabinet.Receipt{}
	for order := random.Perm(len(all)); len(order) > 0; {
		size := min(len(order), 1+random.IntN(40))
		var group []settlement.Delivery
		for _, n := range order[:size] {
			group = append(group, all[n])
		}
		order = order[size:]
		for _, answer := range s.Settle(context.Background(), group) {
			if answer.Err != nil {
				t.Error(answer.Err)
				continue
			}
			receipts[answer.Receipt.CloseEventID] = *answer.Receipt
		}
	}
	return receipts
}

func TestOpposedBasketsAndRestocks(t *testing.T) {
	t.Parallel()
	const writers, rounds = 8, 25
	s := newShop(t)
	s.cabinet(1001, 7, 1000, 8, 1000)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for n := range rounds {
				taken := []int64{7, 1, 8, 2}
				if w%2 == 0 {
					taken = []int64{8, 2, 7, 1}
				}
				payload := sale(1001, fmt.Sprintf("e%d-%d", w, n), taken...)
				if a := s.Settle(context.Background(), deliveriesOf(1001, payload))[0]; a.Err != nil {
					t.Error(a.Err)
				}
			}
		})
	}
	restocks := 0
	running.Go(func() {
		for range rounds {
			if err := s.tryRestock(1001, 8, 1, 7, 3); err != nil {
				t.Error(err)
				continue
			}
			restocks++
		}
	})
	running.Wait()
	want := []string{
		fmt.Sprint("7|", 1000+3*restocks-writers*rounds), fmt.Sprint("8|", 1000+restocks-2*writers*rounds),
	}
	if got := s.rows("SELECT product_id, stock FROM device_stock ORDER BY product_id"); !cmp.Equal(got, want) {
		t.Errorf("stock %v, want %v", got, want)
	}
	s.audited()
}

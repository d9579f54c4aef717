package archive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/archive"
	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
	"doortab/settlement"
)

// keeper is one cabinet's traffic: doors, resends, contradictions, restocks, counts and corrections in any order.
type keeper struct {
	*shop
	*rand.Rand
	device   int64
	seq      int64
	events   []said
	receipts []cabinet.Receipt
}

func (k *keeper) happen() {
	switch n := k.IntN(14); {
	case n < 5 || len(k.events) == 0:
		k.closeDoors(1 + k.IntN(4))
	case n < 8:
		k.resend(k.IntN(len(k.events)))
	case n < 9:
		k.settle(event(k.device, k.events[k.IntN(len(k.events))].id, `"userId":7`, items(7, 1+k.Int64N(900))))
	case n < 10:
		k.restock(k.device, 1+k.Int64N(5))
	case n < 11:
		asOf := k.seq - k.Int64N(min(k.seq, 6))
		if _, err := k.stocktake(k.device, &asOf, k.Int64N(60)); err != nil && !errors.Is(err, inventory.ErrCountedLater) {
			k.t.Error(err)
		}
	default:
		k.correct(k.events[k.IntN(len(k.events))].id)
	}
}

func (k *keeper) closeDoors(doors int) {
	var group []said
	for range doors {
		k.seq++
		id, seq := fmt.Sprintf("%d-e%d", k.device, k.seq), fmt.Sprintf(`"seq":%d`, k.seq)
		switch k.IntN(5) {
		case 0:
			group = append(group, doubtful(k.device, id, seq))
		case 1:
			group = append(group, event(k.device, id, `"kind":"restock"`, items(7, 1+k.Int64N(5)), seq))
		case 2:
			group = append(group, event(k.device, id, `"items":[]`, seq))
		default:
			group = append(group, event(k.device, id, items(7+k.Int64N(2), 1+k.Int64N(4)), seq))
		}
	}
	k.events, k.receipts = append(k.events, group...), append(k.receipts, k.settle(group...)...)
}

func (k *keeper) resend(n int) {
	got, want := k.settle(k.events[n])[0], k.receipts[n]
	want.Duplicate = true
	if diff := cmp.Diff(want, got); diff != "" {
		k.t.Errorf("%s resent (- first, + now):\n%s", k.events[n].id, diff)
	}
}

// correct decides an open review of the event, or reopens its order.
func (k *keeper) correct(id string) {
	x := k.read(k.device, id)
	for _, r := range x.Reviews {
		if r.Status == "open" {
			if err := k.amend(r.ReviewID, k.Int64N(4)); err != nil {
				k.t.Error(err)
			}
			return
		}
	}
	if x.OrderID == nil {
		return
	}
	if _, err := k.reopen(*x.OrderID); err != nil {
		k.t.Error(err)
	}
}

// archiver archives up to any moment of the test's own time, and ends anywhere, again and again.
func (s *shop) archiver(random *rand.Rand, from time.Time, done *atomic.Bool) {
	for !done.Load() {
		ctx, cancel := context.WithCancel(context.Background())
		steps := random.IntN(20)
		_, err := archive.Run(ctx, s.db, archive.Options{
			Before: from.Add(time.Duration(random.Int64N(int64(time.Since(from)) + 1))), Batch: 1 + random.IntN(12),
			Progress: func(archive.Progress) {
				if steps--; steps < 0 {
					cancel()
				}
			},
		})
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			s.t.Error(err)
			return
		}
	}
}

func (s *shop) auditor(done *atomic.Bool) {
	for !done.Load() {
		s.audited()
	}
}

// everything is all that is shown of a cabinet's events and of the ledger behind them.
func (k *keeper) everything() (settlements []settlement.Settlement, orders []settlement.Order, movements []inventory.Movement) {
	k.t.Helper()
	for _, e := range k.events {
		x := k.read(k.device, e.id)
		settlements = append(settlements, x)
		if x.OrderID != nil {
			o := k.order(k.device, e.id)
			o.Archived = false
			orders = append(orders, o)
		}
	}
	movements, err := inventory.ListMovements(context.Background(), k.db, k.device, 7, nil, 1<<20)
	if err != nil {
		k.t.Fatal(err)
	}
	return settlements, orders, movements
}

// TestArchivingBesideTraffic: whatever happens meanwhile and wherever it is stopped, the books are sound at every moment,
// resends get their first receipts, and all that is shown of an event and of the ledger is the same archived and live.
func TestArchivingBesideTraffic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			keepers := make([]*keeper, 3)
			var traffic, background sync.WaitGroup
			var done atomic.Bool
			from := database.Now()
			for i := range keepers {
				keepers[i] = &keeper{shop: s, Rand: rand.New(rand.NewPCG(seed, uint64(i))), device: int64(1001 + i)}
				traffic.Go(func() {
					for range 60 {
						keepers[i].happen()
					}
				})
			}
			background.Go(func() { s.archiver(rand.New(rand.NewPCG(seed, 99)), from, &done) })
			background.Go(func() { s.auditor(&done) })
			traffic.Wait()
			done.Store(true)
			background.Wait()
			s.settled(keepers)
		})
	}
}

// settled archives all that there is, and compares.
func (s *shop) settled(keepers []*keeper) {
	s.t.Helper()
	type books struct {
		Settlements []settlement.Settlement
		Orders      []settlement.Order
		Movements   []inventory.Movement
	}
	look := func(k *keeper) (b books) {
		b.Settlements, b.Orders, b.Movements = k.everything()
		return b
	}
	before := map[int64]books{}
	for _, k := range keepers {
		before[k.device] = look(k)
	}
	s.archive(moment(), 7)
	s.audited()
	if live, old := s.count("stock_movements"), s.count("stock_movements_archive"); live != 6 || old < 100 {
		s.t.Errorf("%d movements are live, %d archived; want one for each stock row", live, old)
	}
	for _, k := range keepers {
		if diff := cmp.Diff(before[k.device], look(k)); diff != "" {
			s.t.Errorf("cabinet %d (- live, + archived):\n%s", k.device, diff)
		}
		for n := range k.events {
			k.resend(n)
		}
	}
	s.audited()
}

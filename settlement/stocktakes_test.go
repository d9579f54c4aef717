package settlement_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/inventory"
)

// shelf is what really lies in a cabinet, of products 7 and 8.
type shelf [2]int64

// doors are events that follow each other, with the shelf as each left it; the first is how it was before.
func doors(random *rand.Rand, before shelf) (payloads []string, after []shelf) {
	after = []shelf{before}
	for seq := 1; seq <= 80; seq++ {
		taken, kind, sign := shelf{random.Int64N(3), random.Int64N(4)}, "sale", int64(-1)
		if random.IntN(10) == 0 {
			kind, sign = "restock", 1
		}
		var list []int64
		for i, units := range taken {
			before[i] += sign * units
			if units > 0 {
				list = append(list, int64(7+i), units)
			}
		}
		after = append(after, before)
		payloads = append(payloads, event(1001, fmt.Sprint("e", seq), `"userId":42`, fmt.Sprintf(`"kind":%q,"seq":%d`, kind, seq), items(list...)))
	}
	return payloads, after
}

// shuffled lets no event overtake more than a few others.
func shuffled(random *rand.Rand, payloads []string) []string {
	type sent struct {
		at      int
		payload string
	}
	list := make([]sent, len(payloads))
	for i, payload := range payloads {
		list[i] = sent{i + random.IntN(9), payload}
	}
	slices.SortStableFunc(list, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	for i := range list {
		payloads[i] = list[i].payload
	}
	return payloads
}

// TestACountIsRightWhateverIsInFlight: books that were wrong are right after a count that says what the shelf was at some
// event, although that event, those before it and those after it are settled in any order at the same moment.
func TestACountIsRightWhateverIsInFlight(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 13))
			s := newShop(t)
			s.cabinet(1001, 7, 1000, 8, 1000)
			payloads, after := doors(random, shelf{990, 1003})
			events := make(chan string, len(payloads))
			for _, payload := range shuffled(random, payloads) {
				events <- payload
			}
			close(events)
			var workers sync.WaitGroup
			for range 4 {
				workers.Go(func() {
					for payload := range events {
						for _, a := range s.Settle(context.Background(), deliveriesOf(1001, payload, payload)) {
							if a.Err != nil {
								t.Error(a.Err)
							}
						}
					}
				})
			}
			settled := make(chan struct{})
			go func() { defer close(settled); workers.Wait() }()
			if counts := s.countUntil(settled, random, after); counts == 0 {
				t.Error("nothing was counted while events were settled")
			}
			end := after[len(after)-1]
			want := []string{fmt.Sprintf("7|%d", end[0]), fmt.Sprintf("8|%d", end[1])}
			if diff := gocmp.Diff(want, s.rows("SELECT product_id, stock FROM device_stock ORDER BY product_id")); diff != "" {
				t.Errorf("stock (- the shelf, + the books): %s", diff)
			}
			s.audited()
		})
	}
}

// countUntil takes stock of both products as of one of the last events, again and again.
func (s *shop) countUntil(settled <-chan struct{}, random *rand.Rand, after []shelf) (counts int) {
	s.t.Helper()
	for {
		select {
		case <-settled:
			return counts
		default:
		}
		var last int64
		for _, row := range s.rows("SELECT COALESCE(last_seq, 0) FROM cabinet_sequences") {
			_, _ = fmt.Sscan(row, &last)
		}
		asOf := max(0, last-random.Int64N(6))
		_, err := s.tryStocktake(1001, &asOf, 7, after[asOf][0], 8, after[asOf][1])
		switch {
		case err == nil:
			counts++
		case errors.Is(err, inventory.ErrCountedLater), last == 0 && errors.Is(err, inventory.ErrBeyondSequence):
		default:
			s.t.Error(err)
		}
	}
}

// none is the seq of what has none.
const none = -1

// place is the model's idea of a place in a cabinet's sequence.
type place struct {
	epoch int
	seq   int64
}

// covers: a count has seen what a controller reported that was replaced before it, and its own controller's events up to it.
func (p place) covers(at place) bool {
	return at.seq != none && (at.epoch < p.epoch || at.epoch == p.epoch && p.counts(at.seq))
}

func (p place) counts(seq int64) bool { return p.seq != none && seq <= p.seq }

func (p place) refuses(later place) bool {
	return p.seq != none && p.epoch == later.epoch && later.seq != none && later.seq < p.seq
}

// placed is what an event that has a place did to a product.
type placed struct {
	at              place
	quantity, delta int64
}

// sequence is one cabinet's.
type sequence struct {
	epoch  int
	last   int64 // as Doortab knows it
	issued int64 // as the controller counts
}

func (s *sequence) issue(step int64) int64 {
	s.issued += step
	return s.issued
}

func (s *sequence) adopt(seq int64) (epoch int) {
	s.last = max(s.last, seq)
	return s.epoch
}

func (d *desk) writeOffSome() {
	device, product, units := int64(1001+d.IntN(2)), 7+d.Int64N(3), 1+d.Int64N(9)
	d.writeOff(device, product, units)
	d.books.move(device, product, -units)
}

func (d *desk) replace(device int64) {
	d.replaceController(device)
	if s := d.sequences[device]; s.epoch == 0 || s.last != none {
		*s = sequence{epoch: s.epoch + 1, last: none}
	}
}

// takeStock counts some products, more or less as many as the books have, up to the last event, or to one before it.
func (d *desk) takeStock() {
	device := int64(1001 + d.IntN(2))
	s := d.sequences[device]
	at, asked := place{s.epoch, s.last}, (*int64)(nil)
	if s.last != none && d.IntN(3) > 0 {
		at.seq = max(0, s.last-d.Int64N(4))
		asked = &at.seq
	}
	var lines []int64
	refused := false
	for product := int64(7); product <= 9; product++ {
		if k := [2]int64{device, product}; d.IntN(3) > 0 {
			lines = append(lines, product, max(0, d.books.stock[k]+d.Int64N(6)-3))
			refused = refused || d.countedUpTo(k).refuses(at)
		}
	}
	if len(lines) == 0 {
		return
	}
	_, err := d.tryStocktake(device, asked, lines...)
	if refused != errors.Is(err, inventory.ErrCountedLater) || !refused && err != nil {
		d.t.Errorf("a count as of %v, refused %v: %v", at, refused, err)
	}
	if refused {
		return
	}
	for i := 0; i < len(lines); i += 2 {
		d.counts([2]int64{device, lines[i]}, lines[i+1], at)
	}
}

func (d *desk) countedUpTo(k [2]int64) place {
	if at, ever := d.counted[k]; ever {
		return at
	}
	return place{seq: none}
}

func (d *desk) counts(k [2]int64, counted int64, at place) {
	booked, now := d.books.stock[k], counted
	for _, p := range d.placed[k] {
		if at.seq != none && p.at.epoch == at.epoch && p.at.seq > at.seq {
			booked -= p.delta
			now += p.quantity
		}
	}
	d.different[k] += counted - booked
	d.books.stock[k], d.counted[k] = max(0, now), at
	d.books.version[k]++
	for _, p := range d.events {
		if counted > booked && p.device == k[0] && p.at.seq != none {
			delete(p.short, k[1])
		}
	}
}

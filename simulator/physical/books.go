package physical

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"doortab/cabinet"
)

// books are what the operator knows of one cabinet, beside the shelf as it is.
type books struct {
	*measuring
	shelf  *shelf
	known  cabinet.Shelf
	stock  []int64
	report Report
}

func newBooks(m *measuring, index int) *books {
	random := rand.New(rand.NewPCG(m.config.Seed, uint64(index))) //nolint:gosec // a simulation is repeatable
	b := &books{measuring: m, shelf: newShelf(m.config, random)}
	b.known = cabinet.Shelf{
		Lanes: map[int]int64{}, Products: map[int64]cabinet.Product{}, ByGTIN: map[string]int64{},
		Tags: map[string]cabinet.TagPlace{}, Threshold: 0.8,
	}
	for i, p := range b.shelf.products {
		b.known.Lanes[i+1] = p.ProductID
		b.known.Products[p.ProductID] = p.Product
		b.known.ByGTIN[p.GTIN14] = p.ProductID
		b.stock = append(b.stock, b.shelf.forSale(i))
	}
	for _, tag := range b.shelf.tags() {
		b.known.Tags[tag] = cabinet.TagHere
	}
	return b
}

// door is that of a shopper, or of staff where the shelf has become empty.
func (b *books) door() {
	s := b.shelf
	s.pass(time.Duration(s.random.ExpFloat64() * float64(betweenDoors)))
	kind := cabinet.KindSale
	if s.low() {
		kind = cabinet.KindRestock
		b.compare()
	}
	before := s.read()
	s.pass(time.Duration(s.random.Float64() * float64(longestDoor)))
	var truth []int64
	if kind == cabinet.KindSale {
		truth = s.shop()
	} else {
		truth = s.restock()
	}
	event := s.event(kind, before, s.read(), truth)
	b.settle(event, truth)
}

// compare takes stock the way an auditor would, without correcting anything.
func (b *books) compare() {
	for i := range b.shelf.products {
		there := b.shelf.forSale(i)
		b.report.StockRows++
		b.report.UnitsOnAll += there
		if off := b.stock[i] - there; off != 0 {
			b.report.StockOff++
			b.report.UnitsOff += max(off, -off)
		}
	}
}

// settle lets the evidence judge the event, compares that with the truth, and books it. Who decides a review finds out the
// truth; restocks of cabinets that only count what is taken out are typed in by whoever brought the goods.
func (b *books) settle(event *cabinet.Event, truth []int64) {
	verdict := cabinet.Judge(event, b.known)
	booked, just := map[int64]int64{}, map[int64]int64{}
	for _, line := range verdict.Lines {
		booked[line.ProductID] = line.Quantity
	}
	for i, n := range truth {
		if n != 0 {
			just[int64(i+1)] = n
		}
	}
	review := slices.ContainsFunc(verdict.Findings, func(f cabinet.Finding) bool { return !f.Reason.Informs() })
	if event.Kind == cabinet.KindRestock && event.HasItems {
		booked, review = b.typed(just), false
	}
	b.count(event, verdict, booked, just, review)
	if review {
		booked = just
	}
	sign := int64(-1)
	if event.Kind == cabinet.KindRestock {
		sign = 1
	}
	for id, n := range booked {
		b.stock[id-1] = max(b.stock[id-1]+sign*n, 0)
	}
	b.note(event, verdict, review)
}

func (b *books) count(event *cabinet.Event, verdict cabinet.Verdict, booked, just map[int64]int64, review bool) {
	r, right := &b.report, maps.Equal(booked, just)
	r.Doors++
	if event.Kind == cabinet.KindSale {
		r.Sales++
	}
	switch {
	case review:
		r.Reviews++
		b.tell(func() { b.reviewed(verdict) })
	case event.Kind == cabinet.KindRestock:
		r.Restocks++
		if !right {
			r.RestocksWrong++
		}
	case len(booked) == 0:
		r.Empty++
		if !right {
			r.Missed++
		}
	default:
		r.Settled++
		if !right {
			r.Wrong++
			b.tell(func() { b.mistake(event, just, verdict) })
		}
	}
}

func (b *books) tell(what func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	what()
}

func (b *books) reviewed(v cabinet.Verdict) {
	if b.config.Review == nil {
		return
	}
	var reasons []string
	for _, f := range v.Findings {
		if !f.Reason.Informs() {
			reasons = append(reasons, string(f.Reason)+"/"+string(f.Evidence.Rule))
		}
	}
	slices.Sort(reasons)
	b.config.Review(slices.Compact(reasons))
}

func (b *books) mistake(e *cabinet.Event, just map[int64]int64, v cabinet.Verdict) {
	if b.config.Wrong != nil {
		b.config.Wrong(Mistake{Event: e, Shelf: b.known, Truth: just, Verdict: v})
	}
}

// typed is what a restocker enters of what came: one unit off at times.
func (b *books) typed(just map[int64]int64) map[int64]int64 {
	typed := Miscounted(just, b.config.Noise.Miscount, b.shelf.random)
	maps.DeleteFunc(typed, func(_, n int64) bool { return n == 0 })
	return typed
}

// note keeps what the verdict says of tags and of things that lie wrong. Whoever decides a review sets the tags right too.
func (b *books) note(event *cabinet.Event, verdict cabinet.Verdict, review bool) {
	b.known.Strays = verdict.Strays
	for _, move := range verdict.Tags {
		b.known.Tags[move.EPC] = move.Place
	}
	if !review {
		return
	}
	present := map[string]bool{}
	for _, tag := range b.shelf.tags() {
		present[tag] = true
		b.known.Tags[tag] = cabinet.TagHere
	}
	for _, tag := range event.RFID.Before {
		if !present[tag] {
			b.known.Tags[tag] = cabinet.TagSold
		}
	}
}

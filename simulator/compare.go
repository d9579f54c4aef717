package simulator

import (
	"fmt"
	"maps"
	"slices"

	"doortab/cabinet"
)

// maxDifferences is how many sentences a Result keeps.
const maxDifferences = 25

// expected is the simulator's side of the comparison.
type expected struct {
	runID   string
	entries []entry
	strange []string
	stock   map[stockKey]int64 // physical
	// more is what the books may have beyond the physical stock: goods of pending events, and deliveries that nobody dared to
	// put in because their answer never came.
	more map[stockKey]int64
}

// expected is the fleet's side once it has stopped. behind makes what is in outboxes pending; else it is lost.
func (s *Simulator) expected(behind bool) expected {
	entries, strange := s.books.all()
	want := expected{
		runID: s.runID, entries: entries, strange: strange,
		stock: make(map[stockKey]int64), more: make(map[stockKey]int64),
	}
	waiting := make(map[eventKey]bool)
	for _, d := range s.fleet {
		for productID, units := range d.shelf.content() {
			want.stock[stockKey{d.id, productID}] = units
		}
		for _, id := range d.unanswered() {
			waiting[eventKey{d.id, id}] = behind
		}
	}
	for i := range want.entries {
		want.entries[i].pending = waiting[want.entries[i].key]
	}
	for _, delivery := range s.staff.unanswered() {
		want.strange = append(want.strange, delivery.String())
		want.mayHave(delivery.deviceID, delivery.list)
	}
	return want
}

func (e expected) mayHave(deviceID int64, list []quantity) {
	for _, q := range list {
		e.more[stockKey{deviceID, q.ProductID}] += q.Quantity
	}
}

// findings is what a comparison found.
type findings struct {
	lost, doubled, drift, pending int64
	sentences                     []string
}

func (f *findings) say(format string, args ...any) {
	f.sentences = append(f.sentences, fmt.Sprintf(format, args...))
}

// compare finds every event that is lost or doubled, everything that no event explains, and every stock row that drifted.
func compare(want expected, got *theirs) findings {
	var f findings
	known := make(map[eventKey]bool, len(want.entries))
	for i := range want.entries {
		e := &want.entries[i]
		known[e.key] = true
		v := judge(e, got)
		f.sentences = append(f.sentences, v.sentences...)
		if v.lost {
			f.lost++
		}
		if v.doubled {
			f.doubled++
		}
		if e.pending {
			f.pending++
		}
		if e.pending && !e.answered {
			want.mayHave(e.key.deviceID, e.taken)
		}
	}
	f.unexplained(known, got)
	f.drifted(want.stock, want.more, got.stock)
	for _, sentence := range want.strange {
		f.say("%s", sentence)
	}
	return f
}

// unexplained counts each thing once that Doortab has and no event of the fleet caused.
func (f *findings) unexplained(known map[eventKey]bool, got *theirs) {
	seen := maps.Clone(known)
	note := func(key eventKey, what string) {
		if !seen[key] {
			seen[key] = true
			f.doubled++
			f.say("%s: no door reported it, and yet there is %s", key, what)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(got.settlements), compareKeys) {
		note(key, "a settlement")
	}
	for _, key := range slices.SortedFunc(maps.Keys(got.orders), compareKeys) {
		note(key, "an order")
	}
	for _, key := range slices.SortedFunc(maps.Keys(got.sold), compareKeys) {
		note(key, "a sale in the stock ledger")
	}
}

func (f *findings) drifted(physical, more, booked map[stockKey]int64) {
	keys := maps.Clone(physical)
	maps.Copy(keys, booked)
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareStockKeys) {
		if booked[key] < physical[key] || booked[key] > physical[key]+more[key] {
			f.drift++
			f.say("cabinet %d, product %d: %d on the books, %d in the cabinet", key.deviceID, key.productID, booked[key], physical[key])
		}
	}
}

func compareStockKeys(a, b stockKey) int {
	return slices.Compare([]int64{a.deviceID, a.productID}, []int64{b.deviceID, b.productID})
}

// verdict is what became of one event.
type verdict struct {
	key           eventKey
	lost, doubled bool
	sentences     []string
}

func (v *verdict) lose(format string, args ...any) {
	v.lost = true
	v.say(format, args...)
}

func (v *verdict) double(format string, args ...any) {
	v.doubled = true
	v.say(format, args...)
}

func (v *verdict) say(format string, args ...any) {
	v.sentences = append(v.sentences, v.key.String()+": "+fmt.Sprintf(format, args...))
}

func judge(e *entry, got *theirs) verdict {
	v := verdict{key: e.key}
	v.receipts(e)
	switch settled, ok := got.settlements[e.key]; {
	case ok:
		v.settlement(e, settled)
	case e.answered || !e.pending:
		v.lose("it has no settlement")
	}
	v.orders(e, got.orders[e.key])
	v.deductions(e, got.sold[e.key])
	return v
}

// receipts checks what the cabinet was told.
func (v *verdict) receipts(e *entry) {
	switch {
	case !e.answered && e.pending:
		return
	case !e.answered:
		v.lose("its receipt never came")
		return
	case e.outcome == cabinet.Conflict || e.outcome == cabinet.Rejected:
		v.lose("its receipt said %s, want %s", e.outcome, e.want)
	default:
		v.lines("its receipt", e.taken, e.charged)
	}
	if e.contradict != "" {
		v.double("another receipt said %s", e.contradict)
	}
	if e.changed && !e.conflicted && !e.pending {
		v.lose("the other content under its id was never answered as a conflict")
	}
}

func (v *verdict) settlement(e *entry, s settlementRow) {
	if s.Outcome != e.want {
		v.say("its outcome is %s, want %s", s.Outcome, e.want)
	}
	if e.answered && (e.outcome != s.Outcome || e.orderID != s.OrderID) {
		v.double("its receipt said %s with order %q, its settlement is %s with order %q", e.outcome, e.orderID, s.Outcome, s.OrderID)
	}
	if e.conflicted && len(s.Conflicts) == 0 {
		v.lose("the other content under its id wasn't kept")
	}
}

func (v *verdict) orders(e *entry, orders []orderRow) {
	switch {
	case len(orders) > 1:
		v.double("it has %d orders, %s and %s among them", len(orders), orders[0].OrderID, orders[1].OrderID)
		return
	case len(orders) == 0 && e.pending && !e.answered:
		return
	case len(orders) == 0 && len(e.taken) > 0:
		v.lose("it has no order for what was taken")
		return
	case len(orders) == 0:
		return
	case len(e.taken) == 0:
		v.double("nothing was taken, and yet it has order %s", orders[0].OrderID)
		return
	}
	order := orders[0]
	v.lines("order "+order.OrderID, e.taken, byProduct(order.Lines))
	if order.UserID != e.userID {
		v.lose("order %s is user %d's, user %d took the goods", order.OrderID, order.UserID, e.userID)
	}
	if e.answered && e.orderID != order.OrderID {
		v.double("its receipt named order %q, its order is %s", e.orderID, order.OrderID)
	}
}

// lines compares what was taken with what is charged; both are sorted.
func (v *verdict) lines(where string, taken, charged []quantity) {
	rest := make(map[int64]int64)
	for _, q := range charged {
		rest[q.ProductID] += q.Quantity
	}
	for _, q := range taken {
		rest[q.ProductID] -= q.Quantity
	}
	for _, q := range fromMap(rest) {
		if q.Quantity < 0 {
			v.lose("%s lacks %d of product %d", where, -q.Quantity, q.ProductID)
		} else {
			v.double("%s has %d of product %d too many", where, q.Quantity, q.ProductID)
		}
	}
}

// deductions looks for a second deduction. One that is missing or too small shows as drift.
func (v *verdict) deductions(e *entry, sold []quantity) {
	movements, units := make(map[int64]int), make(map[int64]int64)
	for _, q := range sold {
		movements[q.ProductID]++
		units[q.ProductID] += q.Quantity
	}
	for _, q := range e.taken {
		units[q.ProductID] -= q.Quantity
	}
	for _, productID := range slices.Sorted(maps.Keys(movements)) {
		if movements[productID] > 1 || units[productID] > 0 {
			v.double("product %d was taken off the books %d times, %d units more than were taken",
				productID, movements[productID], units[productID])
		}
	}
}

func (s *Simulator) result(f findings) Result {
	c := s.books.sofar()
	r := Result{
		Published: c.published, Settled: c.settled, Review: c.review, Duplicates: c.duplicates,
		Lost: f.lost, Doubled: f.doubled, Drift: f.drift, Pending: f.pending,
		Restocks: s.staff.restocks.Load(), Sessions: s.sessions.Load(), Faults: s.faults.all(), Differences: f.sentences,
	}
	for _, d := range s.fleet {
		r.Resends += d.resends()
	}
	if more := len(f.sentences) - maxDifferences; more > 0 {
		r.Differences = append(slices.Clip(f.sentences[:maxDifferences]), fmt.Sprintf("and %d more", more))
	}
	return r
}

package simulator

import (
	"fmt"
	"maps"
	"slices"
)

// maxDifferences is how many sentences a Result keeps.
const maxDifferences = 25

// expected is the simulator's side of the comparison.
type expected struct {
	runID   string
	entries []entry
	strange []string
	papers  []paper              // what staff handed in by REST
	opening map[stockKey]balance // book stock when the run began
	// unsettled are the cabinets that have pending events: what is read of them at two moments may differ.
	unsettled map[int64]bool
}

// expected is the fleet's side once it has stopped. behind makes what is in outboxes pending; else it is lost.
func (s *Simulator) expected(behind bool) expected {
	entries, strange := s.books.all()
	want := expected{
		runID: s.runID, entries: entries, strange: strange, papers: s.staff.handedIn(),
		opening: make(map[stockKey]balance), unsettled: make(map[int64]bool),
	}
	waiting := make(map[eventKey]bool)
	for _, d := range s.fleet {
		for productID, opening := range d.opening {
			want.opening[stockKey{d.id, productID}] = opening
		}
		for _, id := range d.unanswered() {
			waiting[eventKey{d.id, id}] = behind
			want.unsettled[d.id] = behind
		}
	}
	for i := range want.entries {
		want.entries[i].pending = waiting[want.entries[i].key]
	}
	for _, p := range want.papers {
		if !p.answered {
			want.strange = append(want.strange, p.String())
		}
	}
	return want
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
	ledger := newReplay(&want, got)
	wrong := ledger.walk()
	for i := range want.entries {
		e := &want.entries[i]
		known[e.key] = true
		v := judge(e, got, ledger.booked[e.key])
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
	}
	f.unexplained(known, got)
	f.drifted(wrong)
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
	for _, key := range slices.SortedFunc(maps.Keys(got.movements), compareStockKeys) {
		for _, m := range got.movements[key] {
			if m.Kind == "sale" {
				note(eventKey{key.deviceID, m.Ref}, "a sale in the stock ledger")
			}
		}
	}
}

func (f *findings) drifted(rows map[stockKey]error) {
	for _, key := range slices.SortedFunc(maps.Keys(rows), compareStockKeys) {
		f.drift++
		f.say("cabinet %d, product %d: %v", key.deviceID, key.productID, rows[key])
	}
}

func compareStockKeys(a, b stockKey) int {
	return slices.Compare([]int64{a.deviceID, a.productID}, []int64{b.deviceID, b.productID})
}

func (s *Simulator) result(f findings, figures []Figures) Result {
	c := s.books.sofar()
	r := Result{
		Published: c.published, Settled: c.settled, Review: c.review, Duplicates: c.duplicates,
		Lost: f.lost, Doubled: f.doubled, Drift: f.drift, Pending: f.pending,
		Restocks: s.staff.restocks.Load(), Stocktakes: s.staff.stocktakes.Load(), Decisions: s.operator.decided.Load(),
		Figures: figures, Sessions: s.sessions.Load(), Faults: s.faults.all(), Differences: f.sentences,
	}
	for _, d := range s.fleet {
		r.Resends += d.resends()
	}
	if more := len(f.sentences) - maxDifferences; more > 0 {
		r.Differences = append(slices.Clip(f.sentences[:maxDifferences]), fmt.Sprintf("and %d more", more))
	}
	return r
}

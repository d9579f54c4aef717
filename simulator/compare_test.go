package simulator

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

// twoEvents is a run of two events of a cabinet that counts, one settled and one empty, and what an honest Doortab says of it.
func twoEvents() (expected, *theirs) {
	sale, empty := eventKey{1001, "run-1"}, eventKey{1001, "run-2"}
	want := expected{
		entries: []entry{
			{key: sale, seq: 1, userID: 5, counted: true, sure: []quantity{{7, 2}, {8, 1}}, want: cabinet.Settled,
				answered: true, outcome: cabinet.Settled, orderID: "77", charged: []quantity{{7, 2}, {8, 1}}},
			{key: empty, seq: 2, userID: 6, counted: true, want: cabinet.Empty, answered: true, outcome: cabinet.Empty},
		},
		opening:   map[stockKey]balance{{1001, 7}: {5, 1}, {1001, 8}: {5, 3}, {1001, 9}: {0, 2}},
		unsettled: map[int64]bool{},
	}
	got := &theirs{
		settlements: map[eventKey]settlementRow{
			sale:  {DeviceID: 1001, CloseEventID: "run-1", Outcome: cabinet.Settled, OrderID: "77"},
			empty: {DeviceID: 1001, CloseEventID: "run-2", Outcome: cabinet.Empty},
		},
		orders: map[eventKey][]orderRow{
			sale: {{OrderID: "77", DeviceID: 1001, CloseEventID: "run-1", UserID: 5, Lines: []quantity{{8, 1}, {7, 2}}}},
		},
		movements: map[stockKey][]movementRow{
			{1001, 7}: {{7, 2, "sale", -2, 3, "run-1"}},
			{1001, 8}: {{8, 4, "sale", -1, 4, "run-1"}},
		},
		stock: map[stockKey]balance{{1001, 7}: {3, 2}, {1001, 8}: {4, 4}, {1001, 9}: {0, 2}},
	}
	return want, got
}

// judged makes the sale one that Doortab had to judge by its sensors.
func judgedSale(want *expected, got *theirs) *entry {
	e := &want.entries[0]
	e.counted, e.sure, e.want = false, nil, ""
	row := got.settlements[e.key]
	row.Receipt.Lines = slices.Clone(e.charged)
	got.settlements[e.key] = row
	return e
}

func TestComparison(t *testing.T) {
	t.Parallel()
	sale, empty := eventKey{1001, "run-1"}, eventKey{1001, "run-2"}
	tests := map[string]struct {
		plant                func(want *expected, got *theirs)
		lost, doubled, drift int64
		says                 string
	}{
		"clean":         {plant: func(*expected, *theirs) {}},
		"no settlement": {func(_ *expected, got *theirs) { delete(got.settlements, sale) }, 1, 0, 0, "run-1: it has no settlement"},
		"no receipt":    {func(w *expected, _ *theirs) { w.entries[1].answered = false }, 1, 0, 0, "never came"},
		"rejected": {func(w *expected, got *theirs) {
			w.entries[1].outcome = cabinet.Rejected
			delete(got.settlements, empty)
		}, 1, 0, 0, "said rejected"},
		"no order":                   {func(_ *expected, got *theirs) { delete(got.orders, sale) }, 1, 0, 0, "no order"},
		"a line short":               {func(_ *expected, got *theirs) { got.orders[sale][0].Lines = []quantity{{7, 2}} }, 1, 0, 0, "lacks 1 of product 8"},
		"somebody else's order":      {func(_ *expected, got *theirs) { got.orders[sale][0].UserID = 6 }, 1, 0, 0, "user 6's"},
		"other content not answered": {func(w *expected, _ *theirs) { w.entries[0].changed = true }, 1, 0, 0, "never answered as a conflict"},
		"other content not kept": {func(w *expected, _ *theirs) {
			w.entries[0].changed, w.entries[0].conflicted = true, true
		}, 1, 0, 0, "wasn't kept"},
		"other content kept": {plant: func(w *expected, got *theirs) {
			w.entries[0].changed, w.entries[0].conflicted = true, true
			row := got.settlements[sale]
			row.Conflicts = []json.RawMessage{[]byte("{}")}
			got.settlements[sale] = row
		}},
		"two orders": {func(_ *expected, got *theirs) {
			got.orders[sale] = append(got.orders[sale], orderRow{OrderID: "78"})
		}, 0, 1, 0, "2 orders"},
		"a line too many": {func(_ *expected, got *theirs) {
			got.orders[sale][0].Lines = []quantity{{7, 2}, {8, 1}, {8, 1}}
		}, 0, 1, 0, "has 1 of product 8 too many"},
		"deducted twice": {func(_ *expected, got *theirs) {
			got.movements[stockKey{1001, 7}] = append(got.movements[stockKey{1001, 7}], movementRow{7, 3, "sale", -2, 1, "run-1"})
			got.stock[stockKey{1001, 7}] = balance{1, 3}
		}, 0, 1, 1, "2 times"},
		"two receipts":             {func(w *expected, _ *theirs) { w.entries[0].contradict = "x" }, 0, 1, 0, "another receipt"},
		"receipt of another order": {func(w *expected, _ *theirs) { w.entries[0].orderID = "9" }, 0, 1, 0, `said settled with order "9"`},
		"order of an empty event":  {func(_ *expected, got *theirs) { got.orders[empty] = []orderRow{{OrderID: "79"}} }, 0, 1, 0, "nothing was taken"},
		"order of no event": {func(_ *expected, got *theirs) {
			got.orders[eventKey{1001, "other"}] = []orderRow{{OrderID: "80"}}
			got.movements[stockKey{1001, 9}] = []movementRow{{9, 3, "sale", 0, 0, "other"}}
			got.stock[stockKey{1001, 9}] = balance{0, 3}
		}, 0, 1, 1, "1001/other"},
		"settled garbage": {func(_ *expected, got *theirs) {
			got.settlements[eventKey{1002, "run-2-garbage"}] = settlementRow{Outcome: cabinet.Settled}
		}, 0, 1, 0, "run-2-garbage"},
		"one short and one too many": {func(_ *expected, got *theirs) {
			got.orders[sale][0].Lines = []quantity{{7, 3}}
		}, 1, 1, 0, "lacks 1 of product 8"},
		"books changed": {func(_ *expected, got *theirs) {
			got.stock[stockKey{1001, 7}] = balance{1003, 3}
		}, 0, 0, 1, "1003 on the books after 3 movements, 3 by 2"},
		"row appeared": {func(_ *expected, got *theirs) { got.stock[stockKey{1001, 10}] = balance{1, 1} }, 0, 0, 1, "product 10"},
		"row gone":     {func(_ *expected, got *theirs) { delete(got.stock, stockKey{1001, 9}) }, 0, 0, 1, "product 9"},
		"not deducted": {func(_ *expected, got *theirs) {
			delete(got.movements, stockKey{1001, 8})
			got.stock[stockKey{1001, 8}] = balance{5, 3}
		}, 0, 0, 1, "what event 1001/run-1 took isn't off the books"},
		"judged by its receipt": {plant: func(w *expected, got *theirs) { judgedSale(w, got).truth = []quantity{{7, 3}} }},
		"judged, a line short of its receipt": {func(w *expected, got *theirs) {
			judgedSale(w, got)
			got.orders[sale][0].Lines = []quantity{{7, 2}}
		}, 1, 0, 0, "lacks 1 of product 8"},
		"judged, another receipt stored": {func(w *expected, got *theirs) {
			e := judgedSale(w, got)
			got.settlements[e.key].Receipt.Lines[0].Quantity = 4
		}, 0, 1, 0, "its stored receipt has 2 of product 7 too many"},
		"a sale that was restocked": {func(w *expected, got *theirs) {
			judgedSale(w, got).outcome = cabinet.Restocked
			row := got.settlements[sale]
			row.Outcome = cabinet.Restocked
			got.settlements[sale] = row
		}, 1, 0, 0, "no outcome of it"},
		"goods brought, none booked": {func(w *expected, got *theirs) {
			e := &w.entries[1]
			e.counted, e.restock, e.truth, e.outcome = false, true, []quantity{{7, 6}, {8, 6}}, cabinet.Restocked
			got.settlements[empty] = settlementRow{Outcome: cabinet.Restocked}
		}, 1, 0, 0, "12 units were brought"},
		"other outcome": {func(w *expected, _ *theirs) { w.entries[0].want = cabinet.Review }, 0, 0, 0, "its outcome is settled, want review"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := twoEvents()
			tt.plant(&want, got)
			f := compare(want, got)
			if f.lost != tt.lost || f.doubled != tt.doubled || f.drift != tt.drift {
				t.Errorf("lost %d doubled %d drift %d, want %d %d %d", f.lost, f.doubled, f.drift, tt.lost, tt.doubled, tt.drift)
			}
			all := strings.Join(f.sentences, "\n")
			if !strings.Contains(all, tt.says) || tt.says == "" && all != "" {
				t.Errorf("says %q, want %q in it", all, tt.says)
			}
		})
	}
}

// What an operator decided is what the order must come to.
func TestComparisonAfterReviews(t *testing.T) {
	t.Parallel()
	sale, empty := eventKey{1001, "run-1"}, eventKey{1001, "run-2"}
	onlySeven := decision{reviewID: "r", amend: true, lines: []quantity{{7, 2}}}
	tests := map[string]struct {
		plant         func(want *expected, got *theirs)
		lost, doubled int64
	}{
		"taken off the order": {plant: func(w *expected, got *theirs) {
			w.entries[0].decisions = []decision{onlySeven}
			got.orders[sale][0].Lines = []quantity{{8, 1}, {7, 2}, {8, -1}}
		}},
		"left on the order": {func(w *expected, _ *theirs) { w.entries[0].decisions = []decision{onlySeven} }, 0, 1},
		"left, and nobody knows whether it was decided": {plant: func(w *expected, _ *theirs) {
			onlySeven := onlySeven
			onlySeven.unsure = true
			w.entries[0].decisions = []decision{onlySeven}
		}},
		"everything off, the order stays": {plant: func(w *expected, got *theirs) {
			w.entries[0].decisions = []decision{{reviewID: "r", amend: true}}
			got.orders[sale][0].Lines = []quantity{{8, 1}, {7, 2}, {8, -1}, {7, -2}}
		}},
		"an order made by a decision": {plant: func(w *expected, got *theirs) {
			decideEmpty(w, got, empty)
			got.orders[empty] = []orderRow{{OrderID: "79", UserID: 6, Lines: []quantity{{9, 1}}}}
		}},
		"an order that a decision didn't make": {func(w *expected, got *theirs) { decideEmpty(w, got, empty) }, 1, 0},
		"two decisions, the second one of what the first made": {plant: func(w *expected, got *theirs) {
			w.entries[0].decisions = []decision{{reviewID: "q", lines: []quantity{{8, 1}}}, onlySeven}
			got.orders[sale][0].Lines = []quantity{{8, 1}, {7, 2}, {8, 1}, {8, -2}}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := twoEvents()
			tt.plant(&want, got)
			if f := compare(want, got); f.lost != tt.lost || f.doubled != tt.doubled {
				t.Errorf("lost %d doubled %d, want %d %d: %q", f.lost, f.doubled, tt.lost, tt.doubled, f.sentences)
			}
		})
	}
}

// decideEmpty lets an operator find that one unit was taken after all.
func decideEmpty(want *expected, got *theirs, key eventKey) {
	want.entries[1].decisions = []decision{{reviewID: "r", amend: true, lines: []quantity{{9, 1}}}}
	got.settlements[key] = settlementRow{Outcome: cabinet.Empty, OrderID: "79"}
}

// What is still in an outbox may be settled, or not, or half read: none of that is a loss or a drift; what is too much still is.
func TestComparisonOfPendingEvents(t *testing.T) {
	t.Parallel()
	sale := eventKey{1001, "run-1"}
	unsettled := func(got *theirs) {
		delete(got.settlements, sale)
		delete(got.orders, sale)
		clear(got.movements)
		got.stock[stockKey{1001, 7}], got.stock[stockKey{1001, 8}] = balance{5, 1}, balance{5, 3}
	}
	tests := map[string]struct {
		plant                func(want *expected, got *theirs)
		lost, doubled, drift int64
	}{
		"not settled":     {plant: func(_ *expected, got *theirs) { unsettled(got) }},
		"settled already": {plant: func(*expected, *theirs) {}},
		"settled between two reads": {plant: func(_ *expected, got *theirs) {
			delete(got.settlements, sale)
			got.stock[stockKey{1001, 7}] = balance{5, 1}
		}},
		"judged, settled between two reads": {plant: func(w *expected, got *theirs) {
			judgedSale(w, got)
			delete(got.settlements, sale)
		}},
		"books changed": {func(_ *expected, got *theirs) { got.stock[stockKey{1001, 7}] = balance{2, 2} }, 0, 0, 1},
		"fewer booked than it charges": {func(_ *expected, got *theirs) {
			got.movements[stockKey{1001, 7}] = []movementRow{{7, 2, "sale", -1, 4, "run-1"}}
			got.stock[stockKey{1001, 7}] = balance{4, 2}
		}, 0, 0, 1},
		"two orders": {func(_ *expected, got *theirs) {
			got.orders[sale] = append(got.orders[sale], orderRow{OrderID: "78"})
		}, 0, 1, 0},
		"a line short": {func(_ *expected, got *theirs) { got.orders[sale][0].Lines = []quantity{{7, 2}} }, 1, 0, 0},
		"another one is lost": {func(_ *expected, got *theirs) {
			unsettled(got)
			delete(got.settlements, eventKey{1001, "run-2"})
		}, 1, 0, 0},
		"answered, its other content not yet": {func(w *expected, _ *theirs) {
			w.entries[0].answered, w.entries[0].changed = true, true
		}, 0, 0, 0},
		"answered and lost, its other content waits": {func(w *expected, got *theirs) {
			w.entries[0].answered, w.entries[0].changed = true, true
			delete(got.settlements, sale)
		}, 1, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := twoEvents()
			want.entries[0].answered, want.entries[0].pending = false, true
			want.unsettled[1001] = true
			tt.plant(&want, got)
			f := compare(want, got)
			if f.lost != tt.lost || f.doubled != tt.doubled || f.drift != tt.drift || f.pending != 1 {
				t.Errorf("lost %d doubled %d drift %d pending %d, want %d %d %d 1: %q",
					f.lost, f.doubled, f.drift, f.pending, tt.lost, tt.doubled, tt.drift, f.sentences)
			}
		})
	}
}

func TestPendingEventsAreToldBeforeTheLastLine(t *testing.T) {
	t.Parallel()
	r := Result{Published: 9, Settled: 7, Pending: 2}
	var b strings.Builder
	if err := r.WriteVerdict(&b); err != nil {
		t.Fatal(err)
	}
	want := "2 events still unanswered in outboxes: not lost, but not settled in time\n" +
		"published 9 settled 7 duplicates 0 review 0 lost 0 doubled 0 drift 0\n"
	if b.String() != want || r.Clean() {
		t.Errorf("it says %q, clean %t; want %q and not clean", b.String(), r.Clean(), want)
	}
}

func TestSummaryEndsWithItsLine(t *testing.T) {
	t.Parallel()
	r := Result{Published: 9, Settled: 7, Duplicates: 3, Review: 1, Lost: 1, Differences: []string{"event 1001/a: it has no settlement"},
		Figures: []Figures{{
			Kind: physical.KindWeight, Cabinets: 3, Doors: 200, Settled: 150, Wrong: 3, Reviews: 4, Rows: 36, RowsOff: 2, UnitsOff: 2,
			UnitsThere: 100,
		}},
	}
	var b strings.Builder
	if err := r.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if got, want := lines[len(lines)-1], "published 9 settled 7 duplicates 3 review 1 lost 1 doubled 0 drift 0"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	if got, want := strings.Join(strings.Fields(lines[len(lines)-2]), " "), "weight 3 200 150 3 (2.00%) 0 4 2.00% 0 2 of 36 2.00%"; got != want {
		t.Errorf("line before the last %q, want %q", got, want)
	}
	for _, f := range Kinds() {
		if !strings.Contains(b.String(), "fault "+string(f)+" ") {
			t.Errorf("the summary doesn't list %q", f)
		}
	}
	if r.Clean() {
		t.Error("one lost event isn't clean")
	}
}

package simulator

import (
	"encoding/json"
	"strings"
	"testing"

	"doortab/cabinet"
)

// twoEvents is a run of two events, one settled and one empty, and what an honest Doortab says of it.
func twoEvents() (expected, *theirs) {
	sale, empty := eventKey{1001, "run-1"}, eventKey{1001, "run-2"}
	want := expected{
		entries: []entry{
			{key: sale, userID: 5, taken: []quantity{{7, 2}, {8, 1}}, want: cabinet.Settled,
				answered: true, outcome: cabinet.Settled, orderID: "77", charged: []quantity{{7, 2}, {8, 1}}},
			{key: empty, userID: 6, want: cabinet.Empty, answered: true, outcome: cabinet.Empty},
		},
		stock: map[stockKey]int64{{1001, 7}: 3, {1001, 8}: 4, {1001, 9}: 0}, more: map[stockKey]int64{},
	}
	got := &theirs{
		settlements: map[eventKey]settlementRow{
			sale:  {DeviceID: 1001, CloseEventID: "run-1", Outcome: cabinet.Settled, OrderID: "77"},
			empty: {DeviceID: 1001, CloseEventID: "run-2", Outcome: cabinet.Empty},
		},
		orders: map[eventKey][]orderRow{
			sale: {{OrderID: "77", DeviceID: 1001, CloseEventID: "run-1", UserID: 5, Lines: []quantity{{8, 1}, {7, 2}}}},
		},
		sold:  map[eventKey][]quantity{sale: {{7, 2}, {8, 1}}},
		stock: map[stockKey]int64{{1001, 7}: 3, {1001, 8}: 4},
	}
	return want, got
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
			got.sold[sale] = append(got.sold[sale], quantity{7, 2})
			got.stock[stockKey{1001, 7}] -= 2
		}, 0, 1, 1, "2 times"},
		"two receipts":             {func(w *expected, _ *theirs) { w.entries[0].contradict = "x" }, 0, 1, 0, "another receipt"},
		"receipt of another order": {func(w *expected, _ *theirs) { w.entries[0].orderID = "9" }, 0, 1, 0, `said settled with order "9"`},
		"order of an empty event":  {func(_ *expected, got *theirs) { got.orders[empty] = []orderRow{{OrderID: "79"}} }, 0, 1, 0, "nothing was taken"},
		"order of no event": {func(_ *expected, got *theirs) {
			got.orders[eventKey{1001, "other"}] = []orderRow{{OrderID: "80"}}
			got.sold[eventKey{1001, "other"}] = []quantity{{7, 1}}
		}, 0, 1, 0, "1001/other"},
		"settled garbage": {func(_ *expected, got *theirs) {
			got.settlements[eventKey{1002, "run-2-garbage"}] = settlementRow{Outcome: cabinet.Settled}
		}, 0, 1, 0, "run-2-garbage"},
		"one short and one too many": {func(_ *expected, got *theirs) {
			got.orders[sale][0].Lines = []quantity{{7, 3}}
		}, 1, 1, 0, "lacks 1 of product 8"},
		"books too low":  {func(_ *expected, got *theirs) { got.stock[stockKey{1001, 7}] = 2 }, 0, 0, 1, "2 on the books, 3 in the cabinet"},
		"books too high": {func(_ *expected, got *theirs) { got.stock[stockKey{1001, 9}] = 1 }, 0, 0, 1, "product 9"},
		"row gone":       {func(_ *expected, got *theirs) { delete(got.stock, stockKey{1001, 8}) }, 0, 0, 1, "product 8"},
		"other outcome":  {func(w *expected, _ *theirs) { w.entries[0].want = cabinet.Review }, 0, 0, 0, "its outcome is settled, want review"},
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

// What is still in an outbox may be settled, or not, or half read: none of that is a loss or a drift; what is too much still is.
func TestComparisonOfPendingEvents(t *testing.T) {
	t.Parallel()
	sale := eventKey{1001, "run-1"}
	unsettled := func(got *theirs) {
		delete(got.settlements, sale)
		delete(got.orders, sale)
		delete(got.sold, sale)
		got.stock[stockKey{1001, 7}], got.stock[stockKey{1001, 8}] = 5, 5
	}
	tests := map[string]struct {
		plant                func(want *expected, got *theirs)
		lost, doubled, drift int64
	}{
		"not settled":     {plant: func(_ *expected, got *theirs) { unsettled(got) }},
		"settled already": {plant: func(*expected, *theirs) {}},
		"settled between two reads": {plant: func(_ *expected, got *theirs) {
			delete(got.settlements, sale)
			got.stock[stockKey{1001, 7}] = 5
		}},
		"fewer booked than its goods explain": {func(_ *expected, got *theirs) { got.stock[stockKey{1001, 7}] = 2 }, 0, 0, 1},
		"more booked than its goods explain":  {func(_ *expected, got *theirs) { got.stock[stockKey{1001, 7}] = 6 }, 0, 0, 1},
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
			tt.plant(&want, got)
			f := compare(want, got)
			if f.lost != tt.lost || f.doubled != tt.doubled || f.drift != tt.drift || f.pending != 1 {
				t.Errorf("lost %d doubled %d drift %d pending %d, want %d %d %d 1: %q",
					f.lost, f.doubled, f.drift, f.pending, tt.lost, tt.doubled, tt.drift, f.sentences)
			}
		})
	}
}

func TestADeliveryWithoutAnswerIsNoDrift(t *testing.T) {
	t.Parallel()
	want, got := twoEvents()
	want.mayHave(1001, []quantity{{7, 10}})
	got.stock[stockKey{1001, 7}] += 10
	if f := compare(want, got); f.drift != 0 {
		t.Errorf("drift %d: %q", f.drift, f.sentences)
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
	r := Result{Published: 9, Settled: 7, Duplicates: 3, Review: 1, Lost: 1, Differences: []string{"event 1001/a: it has no settlement"}}
	var b strings.Builder
	if err := r.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if got, want := lines[len(lines)-1], "published 9 settled 7 duplicates 3 review 1 lost 1 doubled 0 drift 0"; got != want {
		t.Errorf("last line %q, want %q", got, want)
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

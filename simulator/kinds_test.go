package simulator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

func TestMix(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, says string
		want       Mix
	}{
		"all":      {"items=4,weight=3,rfid=1,both=2", "", DefaultMix()},
		"one":      {"weight", "", Mix{physical.KindWeight: 1}},
		"spaces":   {"rfid=2, both", "", Mix{physical.KindRFID: 2, physical.KindBoth: 1}},
		"no part":  {"items=0", "no kind", nil},
		"nothing":  {"", "items, weight, rfid and both", nil},
		"unknown":  {"camera=1", "items, weight, rfid and both", nil},
		"twice":    {"items=1,items=2", "twice", nil},
		"negative": {"items=-1", "0 to", nil},
		"absurd":   {"items=1000001", "0 to", nil},
		"a word":   {"items=many", "0 to", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m Mix
			err := m.UnmarshalText([]byte(tt.text))
			if diff := cmp.Diff(tt.want, m); diff != "" || (err == nil) != (tt.says == "") {
				t.Errorf("%v; (-want +got):\n%s", err, diff)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q doesn't say %q", err, tt.says)
			}
		})
	}
}

// Few cabinets are as mixed as many.
func TestKindsAreDealtEvenly(t *testing.T) {
	t.Parallel()
	mix := DefaultMix()
	counts := map[physical.Kind]int{}
	for i, kind := range mix.deal(1000) {
		counts[kind]++
		for _, k := range physical.Kinds {
			due := float64((i+1)*mix[k]) / float64(mix.parts())
			if off := float64(counts[k]) - due; off > 1 || off < -1 {
				t.Fatalf("%d of the first %d cabinets are of kind %s, want about %.1f", counts[k], i+1, k, due)
			}
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	s := fleetOf(t, 4, 60)
	two, none := []quantity{{1, 2}}, []quantity{}
	door := func(outcome string, truth, charged []quantity) entry {
		return entry{kind: physical.KindWeight, answered: true, outcome: cabinet.Outcome(outcome), truth: truth, charged: charged}
	}
	nobody := door("review", two, two)
	nobody.unattributed = true
	want := expected{unsettled: map[int64]bool{}, entries: []entry{
		door("settled", two, two), door("settled", two, []quantity{{1, 1}}), door("settled", two, []quantity{{2, 2}}),
		door("empty", nil, none), door("empty", two, none), door("review", two, none), nobody, {kind: physical.KindWeight},
	}}
	got := &theirs{stock: map[stockKey]balance{}}
	for _, d := range s.fleet {
		for _, p := range s.products {
			got.stock[stockKey{d.id, p.ProductID}] = balance{perLane, 1}
		}
	}
	weighs := s.fleet[1].id
	got.stock[stockKey{weighs, 1}], got.stock[stockKey{weighs, 2}] = balance{perLane + 2, 1}, balance{perLane - 1, 1}
	list := s.figures(want, got)
	if len(list) != len(physical.Kinds) {
		t.Fatalf("%d kinds: %+v", len(list), list)
	}
	expect := Figures{
		Kind: physical.KindWeight, Cabinets: 1, Doors: 7, Settled: 3, Wrong: 2, Missed: 1, Reviews: 1, Unattributed: 1,
		Rows: 12, RowsOff: 2, UnitsOff: 3, UnitsThere: 12 * perLane,
	}
	if diff := cmp.Diff(expect, list[1]); diff != "" {
		t.Errorf("weight (-want +got):\n%s", diff)
	}
	want.unsettled[weighs] = true
	if f := s.figures(want, got)[1]; f.Rows != 0 {
		t.Errorf("rows of a cabinet with pending events count: %+v", f)
	}
}

package simulator

import (
	"strings"
	"testing"

	"doortab/cabinet"
)

// ledgerOf is a cabinet with one product, 7, of which 5 units were booked by movement 1, and what happened since.
func ledgerOf(entries []entry, papers []paper, movements ...movementRow) (expected, *theirs) {
	key := stockKey{1001, 7}
	want := expected{entries: entries, papers: papers, opening: map[stockKey]balance{key: {5, 1}}, unsettled: map[int64]bool{}}
	got := &theirs{
		settlements: map[eventKey]settlementRow{}, orders: map[eventKey][]orderRow{},
		movements: map[stockKey][]movementRow{key: movements}, stock: map[stockKey]balance{key: {5, 1}},
	}
	for _, m := range movements {
		if m.Version > got.stock[key].version {
			got.stock[key] = balance{m.Balance, m.Version}
		}
	}
	return want, got
}

func sold(id string, seq, units int64) entry {
	return entry{
		key: eventKey{1001, id}, seq: seq, answered: true, outcome: cabinet.Settled, charged: []quantity{{7, units}},
	}
}

func brought(id string, seq int64) entry {
	return entry{key: eventKey{1001, id}, seq: seq, restock: true, answered: true, outcome: cabinet.Restocked}
}

func decided(e entry, decisions ...decision) entry {
	e.decisions = decisions
	return e
}

func counted(asOfSeq, units int64, versions ...int64) paper {
	p := paper{deviceID: 1001, what: "stocktake", asOfSeq: asOfSeq, lines: []quantity{{7, units}}, answered: len(versions) > 0}
	for _, v := range versions {
		p.Movements = append(p.Movements, movementRow{ProductID: 7, Version: v})
	}
	return p
}

func delivered(units int64, versions ...int64) paper {
	p := counted(0, units, versions...)
	p.what = "restock"
	return p
}

func TestWhatEachMovementMustDo(t *testing.T) {
	t.Parallel()
	amended := func(units int64) decision { return decision{reviewID: "r", amend: true, lines: []quantity{{7, units}}} }
	tests := map[string]struct {
		entries   []entry
		papers    []paper
		movements []movementRow
		says      string // "" where nothing is wrong
	}{
		"a sale": {[]entry{sold("a", 1, 2)}, nil, []movementRow{{7, 2, "sale", -2, 3, "a"}}, ""},
		"two sales, listed by clocks that differ": {[]entry{sold("a", 1, 2), sold("b", 2, 1)}, nil,
			[]movementRow{{7, 3, "sale", -1, 2, "b"}, {7, 2, "sale", -2, 3, "a"}}, ""},
		"more sold than is on the books":   {[]entry{sold("a", 1, 8)}, nil, []movementRow{{7, 2, "sale", -5, 0, "a"}}, ""},
		"the shortfall taken all the same": {[]entry{sold("a", 1, 8)}, nil, []movementRow{{7, 2, "sale", -8, -3, "a"}}, "movement 2"},
		"less deducted than charged":       {[]entry{sold("a", 1, 2)}, nil, []movementRow{{7, 2, "sale", -1, 4, "a"}}, "movement 2"},
		"a balance that isn't the sum":     {[]entry{sold("a", 1, 2)}, nil, []movementRow{{7, 2, "sale", -2, 4, "a"}}, "movement 2"},
		"a gap":                            {[]entry{sold("a", 1, 2)}, nil, []movementRow{{7, 3, "sale", -2, 3, "a"}}, "want movement 2"},
		"not charged":                      {[]entry{sold("a", 1, 0)}, nil, []movementRow{{7, 2, "sale", -1, 4, "a"}}, "none of it was charged"},
		"a restock by somebody":            {nil, nil, []movementRow{{7, 2, "restock", 4, 9, "x"}}, "nobody did that"},
		"a delivery":                       {nil, []paper{delivered(4, 2)}, []movementRow{{7, 2, "restock", 4, 9, "x"}}, ""},
		"a delivery booked twice": {nil, []paper{delivered(4, 2)},
			[]movementRow{{7, 2, "restock", 4, 9, "x"}, {7, 3, "restock", 4, 13, "x"}}, "nobody did that"},
		"an answered delivery that is missing":     {nil, []paper{delivered(4, 2)}, nil, "isn't on the books"},
		"an unanswered delivery, booked":           {nil, []paper{delivered(4)}, []movementRow{{7, 2, "restock", 4, 9, "x"}}, ""},
		"an unanswered delivery, not booked":       {nil, []paper{delivered(4)}, nil, ""},
		"an unanswered delivery, otherwise booked": {nil, []paper{delivered(4)}, []movementRow{{7, 2, "restock", 5, 10, "x"}}, "nobody did that"},
		"a restock door":                           {[]entry{brought("a", 1)}, nil, []movementRow{{7, 2, "restock", 4, 9, "a"}}, ""},
		"a restock door that takes away":           {[]entry{brought("a", 1)}, nil, []movementRow{{7, 2, "restock", -4, 1, "a"}}, "brought nothing"},
		"a restock door that sells":                {[]entry{brought("a", 1)}, nil, []movementRow{{7, 2, "sale", -1, 4, "a"}}, "nobody did that"},
		"a count":                                  {nil, []paper{counted(3, 9, 2)}, []movementRow{{7, 2, "stocktake", 4, 9, "x"}}, ""},
		"a count that isn't what was counted":      {nil, []paper{counted(3, 9, 2)}, []movementRow{{7, 2, "stocktake", 3, 8, "x"}}, "movement 2"},
		"a sale after the count, settled before it": {[]entry{sold("a", 4, 2)}, []paper{counted(3, 9, 3)},
			[]movementRow{{7, 2, "sale", -2, 3, "a"}, {7, 3, "stocktake", 4, 7, "x"}}, ""},
		"a sale that the count has seen": {[]entry{sold("a", 3, 2)}, []paper{counted(3, 9, 2)},
			[]movementRow{{7, 2, "stocktake", 4, 9, "x"}, {7, 3, "sale", 0, 9, "a"}}, ""},
		"a sale that the count has seen, deducted": {[]entry{sold("a", 3, 2)}, []paper{counted(3, 9, 2)},
			[]movementRow{{7, 2, "stocktake", 4, 9, "x"}, {7, 3, "sale", -2, 7, "a"}}, "movement 3"},
		"a restock door that the count has seen": {[]entry{brought("a", 3)}, []paper{counted(3, 9, 2)},
			[]movementRow{{7, 2, "stocktake", 4, 9, "x"}, {7, 3, "restock", 0, 9, "a"}}, ""},
		"a sale amended": {[]entry{decided(sold("a", 1, 2), amended(3))}, nil,
			[]movementRow{{7, 2, "sale", -2, 3, "a"}, {7, 3, "review", -1, 2, "r"}}, ""},
		"a sale amended, given back twice": {[]entry{decided(sold("a", 1, 2), amended(1))}, nil,
			[]movementRow{{7, 2, "sale", -2, 3, "a"}, {7, 3, "review", 1, 4, "r"}, {7, 4, "review", 1, 5, "r"}}, "second one"},
		"a sale amended, not booked": {[]entry{decided(sold("a", 1, 2), amended(3))}, nil,
			[]movementRow{{7, 2, "sale", -2, 3, "a"}}, "review r of event 1001/a"},
		"a decision without an answer": {[]entry{decided(sold("a", 1, 2), decision{reviewID: "r", amend: true, unsure: true})}, nil,
			[]movementRow{{7, 2, "sale", -2, 3, "a"}}, ""},
		"a proposal accepted": {[]entry{decided(sold("a", 1, 2), decision{reviewID: "r", lines: []quantity{{7, 1}}})}, nil,
			[]movementRow{{7, 2, "sale", -2, 3, "a"}, {7, 3, "review", -1, 2, "r"}}, ""},
		"a decision of somebody else": {[]entry{sold("a", 1, 2)}, nil,
			[]movementRow{{7, 2, "sale", -2, 3, "a"}, {7, 3, "review", -1, 2, "r"}}, "didn't decide it"},
		"a restock door amended": {[]entry{decided(brought("a", 1), amended(6))}, nil,
			[]movementRow{{7, 2, "restock", 4, 9, "a"}, {7, 3, "review", 2, 11, "r"}}, ""},
		"a restock door amended, not booked": {[]entry{decided(brought("a", 1), amended(6))}, nil,
			[]movementRow{{7, 2, "restock", 4, 9, "a"}}, "off by -2 on the books"},
		"a sale amended that took more than the books had": {[]entry{decided(sold("a", 1, 8), amended(6))}, nil,
			[]movementRow{{7, 2, "sale", -5, 0, "a"}, {7, 3, "review", 0, 0, "r"}}, ""},
		"a sale amended, given back what the books never gave": {[]entry{decided(sold("a", 1, 8), amended(6))}, nil,
			[]movementRow{{7, 2, "sale", -5, 0, "a"}, {7, 3, "review", 2, 2, "r"}}, "movement 3"},
		"a sale amended to less than the books had": {[]entry{decided(sold("a", 1, 8), amended(1))}, nil,
			[]movementRow{{7, 2, "sale", -5, 0, "a"}, {7, 3, "review", 4, 4, "r"}}, ""},
		"a sale amended after another's shortfall": {[]entry{decided(sold("a", 1, 5), amended(1)), sold("b", 2, 3)}, nil,
			[]movementRow{{7, 2, "sale", -5, 0, "a"}, {7, 3, "sale", 0, 0, "b"}, {7, 4, "review", 4, 4, "r"}}, ""},
		"a sale amended after a count that was right": {[]entry{decided(sold("a", 4, 8), amended(6))}, []paper{counted(3, 5, 3)},
			[]movementRow{{7, 2, "sale", -5, 0, "a"}, {7, 3, "stocktake", 0, 0, "x"}, {7, 4, "review", 0, 0, "r"}}, ""},
		"a sale amended after a count that found more": {[]entry{decided(sold("a", 4, 8), amended(6))}, []paper{counted(3, 9, 3)},
			[]movementRow{{7, 2, "sale", -5, 0, "a"}, {7, 3, "stocktake", 1, 1, "x"}, {7, 4, "review", 2, 3, "r"}}, ""},
		"a sale amended that the count has seen": {[]entry{decided(sold("a", 3, 2), amended(1))}, []paper{counted(3, 9, 3)},
			[]movementRow{{7, 2, "sale", -2, 3, "a"}, {7, 3, "stocktake", 6, 9, "x"}, {7, 4, "review", 0, 9, "r"}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := ledgerOf(tt.entries, tt.papers, tt.movements...)
			said := ""
			for _, err := range newReplay(&want, got).walk() {
				said = err.Error()
			}
			if (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
				t.Errorf("says %q, want %q", said, tt.says)
			}
		})
	}
}

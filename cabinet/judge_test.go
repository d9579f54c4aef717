package cabinet_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"doortab/cabinet"
)

// testShelf is the planogram of all tables: lanes 1 to 5 hold products 1 to 5, lane 8 more of product 2, lane 6 a product
// without a unit weight, lane 7 one that the catalogue doesn't have; lane 9 is in no planogram, product 10 in no lane.
// Products 2 and 4
// are nearly of one weight, and six of product 3 weigh as much as one of product 11 in lane 10.
func testShelf() cabinet.Shelf {
	s := cabinet.Shelf{
		Lanes:    map[int]int64{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 2, 10: 11},
		Products: map[int64]cabinet.Product{}, ByGTIN: map[string]int64{}, Overrides: map[string]int64{rawTag("A"): 2},
		Tags: map[string]cabinet.TagPlace{}, Later: map[string]bool{}, Threshold: 0.8,
	}
	weights := map[int64][2]int64{1: {500, 10}, 2: {345, 6}, 3: {120, 0}, 4: {350, 8}, 5: {1000, 0}, 6: {0, 0}, 10: {200, 4}, 11: {720, 10}}
	for id, w := range weights {
		gtin := withCheckDigit(fmt.Sprintf("04012345%05d", id)[:13])
		s.Products[id] = cabinet.Product{ProductID: id, GTIN14: gtin, UnitWeightGrams: w[0], WeightToleranceGrams: w[1]}
		s.ByGTIN[gtin] = id
	}
	return s
}

// rawTag is a tag that no standard explains.
func rawTag(name string) string { return strings.Repeat("E", 23) + name }

// testTag reads "2.17": product 2, serial 17; "Xn": a tag of no standard. A letter behind it is its place: s sold,
// e elsewhere, l lost, u unknown; none is here. A capital, or H for here, says that a later door put it there.
func testTag(s *cabinet.Shelf, text string) string {
	place, later := cabinet.TagHere, false
	places := map[byte]cabinet.TagPlace{
		'h': cabinet.TagHere, 's': cabinet.TagSold, 'e': cabinet.TagElsewhere, 'l': cabinet.TagLost, 'u': cabinet.TagUnknown,
	}
	if last := text[len(text)-1]; last >= 'D' {
		place, later, text = places[last|' '], last < 'a', text[:len(text)-1]
	}
	epc := rawTag(strings.TrimPrefix(text, "X"))
	if product, serial, ok := strings.Cut(text, "."); ok {
		epc = encodeSGTIN(1, 5, 4012345, number(product), number(serial))
	}
	s.Tags[epc], s.Later[epc] = place, later
	return epc
}

// testEvent reads the notation of the tables: weights "2:3450>2760", tags "2.1 2.2 > 2.2", items "2x1@0.9".
func testEvent(t *testing.T, s *cabinet.Shelf, kind cabinet.Kind, weights, tags, items string) *cabinet.Event {
	t.Helper()
	e := &cabinet.Event{CloseEventID: "e", DeviceID: 1, Kind: kind, HasWeights: weights != "", HasRFID: tags != "", HasItems: items != ""}
	for _, w := range strings.Fields(weights) {
		var lane int
		var before, after int64
		if w == "none" {
			break
		}
		if _, err := fmt.Sscanf(w, "%d:%d>%d", &lane, &before, &after); err != nil {
			t.Fatalf("weight %q: %v", w, err)
		}
		e.Weights = append(e.Weights, cabinet.Weight{Lane: lane, BeforeGrams: before, AfterGrams: after})
	}
	before, after, _ := strings.Cut(tags, ">")
	for _, tag := range strings.Fields(before) {
		e.RFID.Before = append(e.RFID.Before, testTag(s, tag))
	}
	for _, tag := range strings.Fields(after) {
		e.RFID.After = append(e.RFID.After, testTag(s, tag))
	}
	slices.Sort(e.RFID.Before)
	slices.Sort(e.RFID.After)
	for _, item := range strings.Fields(items) {
		if item == "none" {
			break
		}
		count, confidence, ok := strings.Cut(item, "@")
		product, quantity, _ := strings.Cut(count, "x")
		i := cabinet.Item{ProductID: number(product), Quantity: number(quantity), Confidence: 1}
		if ok {
			i.Confidence, _ = strconv.ParseFloat(confidence, 64)
		}
		e.Items = append(e.Items, i)
	}
	return e
}

// show writes a verdict shortly: lines "2x1 rule", proposals "?2x1", findings
// "!reason/rule", each kind once, strays "~lane.product.grams".
func show(v cabinet.Verdict) string {
	var parts []string
	for _, l := range v.Lines {
		parts = append(parts, fmt.Sprintf("%dx%d %s", l.ProductID, l.Quantity, l.Evidence.Rule))
	}
	for _, p := range v.Proposed {
		parts = append(parts, fmt.Sprintf("?%dx%d", p.ProductID, p.Quantity))
	}
	findings := slices.Clone(v.Findings)
	slices.SortStableFunc(findings, func(a, b cabinet.Finding) int { return cmp.Compare(a.Reason, b.Reason) })
	count := map[string]int{}
	for _, f := range findings {
		text := fmt.Sprintf("!%s/%s", f.Reason, f.Evidence.Rule)
		if count[text]++; count[text] == 1 {
			parts = append(parts, text)
		}
	}
	for _, s := range v.Strays {
		possible := ""
		if s.Possible {
			possible = "?"
		}
		parts = append(parts, fmt.Sprintf("~%d.%d.%d%s", s.Lane, s.ProductID, s.Grams, possible))
	}
	return strings.Join(parts, ", ")
}

type judgeCase struct {
	weights, tags, items string
	strays               []cabinet.Stray
	want                 string
}

func runJudge(t *testing.T, kind cabinet.Kind, cases map[string]judgeCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testShelf()
			s.Strays = c.strays
			e := testEvent(t, &s, kind, c.weights, c.tags, c.items)
			if got := show(cabinet.Judge(e, s)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

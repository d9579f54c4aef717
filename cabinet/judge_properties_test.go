package cabinet_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"doortab/cabinet"
)

func TestAVerdictKeepsTheNumbersThatDecidedIt(t *testing.T) {
	t.Parallel()
	s := testShelf()
	e := testEvent(t, &s, cabinet.KindSale, "2:690>348 3:1200>1170", "2.1 2.2 > 2.2", "2x1@0.9")
	text, err := json.MarshalIndent(cabinet.Judge(e, s), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "Lines": [
  {
   "productId": 2,
   "quantity": 1,
   "evidence": {
    "source": "items+rfid+weight",
    "rule": "tags_and_scale",
    "quantity": 1,
    "confidence": 0.9999,
    "lanes": [
     {
      "lane": 2,
      "productId": 2,
      "beforeGrams": 690,
      "afterGrams": 348,
      "unitWeightGrams": 345,
      "toleranceGrams": 6,
      "count": 1
     }
    ],
    "epcs": [
     "3034F4E4E400008000000001"
    ]
   }
  }
 ],
 "Proposed": [
  {
   "productId": 3,
   "quantity": 1
  }
 ],
 "Findings": [
  {
   "reason": "unexplained_weight",
   "where": "weights lane 3",
   "evidence": {
    "source": "weight",
    "rule": "no_whole_units",
    "quantity": 1,
    "lanes": [
     {
      "lane": 3,
      "productId": 3,
      "beforeGrams": 1200,
      "afterGrams": 1170,
      "unitWeightGrams": 120,
      "toleranceGrams": 5,
      "count": 0
     }
    ]
   }
  }
 ],
 "Tags": [
  {
   "epc": "3034F4E4E400008000000001",
   "productId": 2,
   "place": "sold"
  }
 ],
 "Strays": null
}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

func TestTagsChangePlaceOnlyWhereItIsSure(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		kind          cabinet.Kind
		weights, tags string
		want          []string
	}{
		"sold":                             {cabinet.KindSale, "", "2.1 2.2 > 2.2", []string{"2.1 sold"}},
		"sold, as the scale says":          {cabinet.KindSale, "2:690>345", "2.1 2.2 > 2.2", []string{"2.1 sold"}},
		"one of two, nobody knows which":   {cabinet.KindSale, "2:690>345", "2.1 2.2 > ", nil},
		"doubtful":                         {cabinet.KindSale, "", "2.1u > ", nil},
		"back after its sale":              {cabinet.KindSale, "", "> 2.1s", []string{"2.1 here"}},
		"booked in":                        {cabinet.KindRestock, "", "> 2.1u 2.2l", []string{"2.1 here", "2.2 here"}},
		"missed before a sale, seen after": {cabinet.KindSale, "", "2.2 > 2.1 2.2", []string{"2.1 here"}},
		"missed before a restock":          {cabinet.KindRestock, "", "> 2.1", []string{"2.1 here"}},
		"carried out by staff":             {cabinet.KindRestock, "", "2.1 2.2 > 2.2", []string{"2.1 lost"}},
		"not here, and carried out":        {cabinet.KindRestock, "", "2.1s 2.2e 2.3u 2.4l > ", nil},
		"lost before, gone at a sale":      {cabinet.KindSale, "", "2.1l > ", nil},
		"late: sold and lost since":        {cabinet.KindRestock, "", "> 2.1S 2.2L 2.3u", []string{"2.3 here"}},
		"late: carried out, seen since":    {cabinet.KindRestock, "", "2.1H > ", nil},
		"late: booked by a later door":     {cabinet.KindRestock, "", "> 2.1H", nil},
		"late: still there, sold since":    {cabinet.KindSale, "", "2.1S 2.2 > 2.1S", []string{"2.2 sold"}},
		"late: came, sold and lost since":  {cabinet.KindSale, "", "> 2.1S 2.2L 2.3H", nil},
		"late: gone, seen since":           {cabinet.KindSale, "", "2.1H > ", nil},
		"booked in though the scale erred": {cabinet.KindRestock, "2:0>345", "> 2.1u 2.2u", []string{"2.1 here", "2.2 here"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testShelf()
			var got []string
			for _, m := range cabinet.Judge(testEvent(t, &s, c.kind, c.weights, c.tags, ""), s).Tags {
				tag, _ := cabinet.DecodeSGTIN(m.EPC)
				got = append(got, fmt.Sprintf("%d.%d %s", m.ProductID, tag.Serial, m.Place))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMissingListOfTagsSaysNothing(t *testing.T) {
	t.Parallel()
	payload := `{"closeEventId":"e1","deviceId":1,"closedAt":"2026-11-30T10:00:21Z",` +
		`"rfid":{"before":["` + encodeSGTIN(1, 5, 4012345, 2, 1) + `"]},"weights":[{"lane":2,"beforeGrams":690,"afterGrams":345}]}`
	v := cabinet.Judge(decode(t, payload), testShelf())
	if got, want := show(v), "2x1 unit_weights, !unknown_epc/malformed_entry"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Random doors of every kind: what holds of every verdict, whatever the evidence says.
func TestPropertiesOfEveryVerdict(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 800 {
		s := testShelf()
		e := randomDoor(random, &s)
		v := cabinet.Judge(e, s)
		checkVerdict(t, e, s, v)
		checkOrder(t, random, e, s, v)
		checkStillLane(t, e, s, v)
	}
}

func randomDoor(random *rand.Rand, s *cabinet.Shelf) *cabinet.Event {
	e := &cabinet.Event{CloseEventID: "e", DeviceID: 1, Kind: cabinet.KindSale}
	if random.IntN(4) == 0 {
		e.Kind = cabinet.KindRestock
	}
	if e.HasWeights = random.IntN(3) > 0; e.HasWeights {
		for lane := 1; lane <= 9; lane++ {
			if random.IntN(3) == 0 {
				continue
			}
			unit := max(s.Products[s.Lanes[lane]].UnitWeightGrams, 100)
			other := s.Products[int64(1+random.IntN(5))].UnitWeightGrams
			loss := unit*int64(random.IntN(4)-1)*int64(random.IntN(2)) + other*int64(random.IntN(3)-1)*int64(random.IntN(2)) + int64(random.IntN(11)-5)
			e.Weights = append(e.Weights, cabinet.Weight{Lane: lane, BeforeGrams: 10 * unit, AfterGrams: 10*unit - loss})
		}
	}
	here := cabinet.TagHere
	places := []cabinet.TagPlace{here, here, here, cabinet.TagUnknown, cabinet.TagSold, cabinet.TagElsewhere, cabinet.TagLost}
	if e.HasRFID = random.IntN(3) > 0; e.HasRFID {
		for serial := range int64(random.IntN(12)) {
			epc := encodeSGTIN(1, 5, 4012345, []int64{1, 2, 3, 4, 10, 77}[random.IntN(6)], serial)
			s.Tags[epc] = places[random.IntN(len(places))]
			s.Later[epc] = s.Tags[epc] != cabinet.TagUnknown && random.IntN(6) == 0
			if random.IntN(4) > 0 {
				e.RFID.Before = append(e.RFID.Before, epc)
			}
			if random.IntN(3) > 0 {
				e.RFID.After = append(e.RFID.After, epc)
			}
		}
		slices.Sort(e.RFID.Before)
		slices.Sort(e.RFID.After)
	}
	if e.HasItems = random.IntN(3) == 0; e.HasItems {
		for _, id := range []int64{1, 2, 4, 7, 10} {
			if random.IntN(3) == 0 {
				e.Items = append(e.Items, cabinet.Item{ProductID: id, Quantity: int64(1 + random.IntN(2)), Confidence: 0.5 + random.Float64()/2})
			}
		}
	}
	for range random.IntN(3) {
		s.Strays = append(s.Strays, cabinet.Stray{
			Lane: 1 + random.IntN(9), ProductID: int64(random.IntN(6)), Grams: int64(1 + random.IntN(600)), Possible: random.IntN(2) == 0,
		})
	}
	return e
}

// checkVerdict: no line or proposal is negative, zero or of an unknown product, each product has one, confidences are
// shares, and no more units are charged than any of the witnesses supports.
func checkVerdict(t *testing.T, e *cabinet.Event, s cabinet.Shelf, v cabinet.Verdict) {
	t.Helper()
	last := int64(0)
	for _, l := range v.Lines {
		if _, ok := s.Products[l.ProductID]; !ok || l.Quantity < 1 || l.ProductID <= last || l.Quantity != l.Evidence.Quantity ||
			l.Evidence.Confidence <= 0 || l.Evidence.Confidence > 1 || l.Evidence.Source == "" || l.Evidence.Rule == "" {
			t.Fatalf("line %+v of %s\n%s", l, show(v), dump(e, s))
		}
		if most := supported(l.ProductID, e, s); float64(l.Quantity) > most {
			t.Fatalf("product %d: %d charged, %.2f supported: %s\n%s", l.ProductID, l.Quantity, most, show(v), dump(e, s))
		}
		last = l.ProductID
	}
	last = 0
	for _, p := range v.Proposed {
		if p.Quantity < 1 || p.ProductID <= last {
			t.Fatalf("proposal %+v of %s\n%s", p, show(v), dump(e, s))
		}
		last = p.ProductID
	}
	if len(v.Proposed) > 0 && !slices.ContainsFunc(v.Findings, func(f cabinet.Finding) bool { return !f.Reason.Informs() }) {
		t.Fatalf("proposals without a reason for a review: %s\n%s", show(v), dump(e, s))
	}
	for _, stray := range v.Strays {
		if stray.Grams < 1 || stray.Lane < 1 {
			t.Fatalf("stray %+v\n%s", stray, dump(e, s))
		}
	}
}

// supported is the most that tags, scales and counts, each by itself, let a product have: generously by what may lie wrong.
func supported(id int64, e *cabinet.Event, s cabinet.Shelf) float64 {
	way := int64(1)
	from, to := e.RFID.Before, e.RFID.After
	if e.Kind == cabinet.KindRestock {
		way, from, to = -1, to, from
	}
	most := 0.0
	for _, epc := range from {
		if tag, ok := cabinet.DecodeSGTIN(epc); ok && s.ByGTIN[tag.GTIN14] == id && !slices.Contains(to, epc) {
			most++
		}
	}
	if unit := s.Products[id].UnitWeightGrams; unit > 0 {
		grams := 0.0
		for _, w := range e.Weights {
			loss := float64(way * (w.BeforeGrams - w.AfterGrams))
			strays := slices.ContainsFunc(s.Strays, func(x cabinet.Stray) bool { return x.Lane == w.Lane && x.ProductID == id })
			if s.Lanes[w.Lane] == id || strays {
				grams += max(loss, 0) + 600 // what was put in its place, or lay wrong there
			} else {
				grams += max(-loss, 0)
			}
		}
		most = max(most, math.Floor(grams/float64(unit)+0.5))
	}
	for _, item := range e.Items {
		if item.ProductID == id {
			most = max(most, float64(item.Quantity))
		}
	}
	for _, x := range s.Strays {
		if x.ProductID == id {
			most++
		}
	}
	return most
}

// checkOrder: lanes, tags, items and strays in another order are the same evidence, and Judge changes none of them.
func checkOrder(t *testing.T, random *rand.Rand, e *cabinet.Event, s cabinet.Shelf, v cabinet.Verdict) {
	t.Helper()
	other, shuffled := *e, s
	other.Weights, other.Items = shuffle(random, e.Weights), shuffle(random, e.Items)
	other.RFID = cabinet.RFID{Before: shuffle(random, e.RFID.Before), After: shuffle(random, e.RFID.After)}
	shuffled.Strays = shuffle(random, s.Strays)
	kept := slices.Clone(other.Weights)
	if diff := cmp.Diff(v, cabinet.Judge(&other, shuffled), cmpopts.EquateEmpty(), sortFindings); diff != "" {
		t.Fatalf("another order, another verdict: %s\n%s", diff, dump(e, s))
	}
	if !slices.Equal(kept, other.Weights) {
		t.Fatal("Judge changed the event")
	}
}

// Which of the items' findings comes first isn't part of a verdict.
var sortFindings = cmpopts.SortSlices(func(a, b cabinet.Finding) bool {
	return fmt.Sprintf("%s %s %s", a.Reason, a.Where, a.Evidence.Rule) < fmt.Sprintf("%s %s %s", b.Reason, b.Where, b.Evidence.Rule)
})

func shuffle[T any](random *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// checkStillLane: a lane whose scale shows no change adds nothing, whether it holds a product or not.
func checkStillLane(t *testing.T, e *cabinet.Event, s cabinet.Shelf, v cabinet.Verdict) {
	t.Helper()
	if !e.HasWeights {
		return
	}
	other := *e
	other.Weights = append(slices.Clone(e.Weights), cabinet.Weight{Lane: 10, BeforeGrams: 7200, AfterGrams: 7200})
	other.Weights = append(other.Weights, cabinet.Weight{Lane: 40, BeforeGrams: 77, AfterGrams: 77})
	if got := show(cabinet.Judge(&other, s)); got != show(v) {
		t.Fatalf("a still lane changed the verdict: got %s, want %s\n%s", got, show(v), dump(e, s))
	}
}

func dump(e *cabinet.Event, s cabinet.Shelf) string {
	text, _ := json.Marshal(e)
	return fmt.Sprintf("event %s\nstrays %+v tags %v", text, s.Strays, slices.Sorted(maps.Values(s.Tags)))
}

// FuzzJudge: no event that Decode accepts panics, whatever the shelf, and every verdict keeps the properties.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(example), int64(345), int64(6), uint64(1))
	f.Add([]byte(example), int64(1), int64(1<<40), uint64(7))
	f.Fuzz(func(t *testing.T, payload []byte, unit, tolerance int64, seed uint64) {
		e, err := cabinet.Decode(payload)
		if err != nil {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		s := testShelf()
		for id, p := range s.Products {
			if random.IntN(2) == 0 {
				p.UnitWeightGrams, p.WeightToleranceGrams = unit, tolerance
				s.Products[id] = p
			}
		}
		for _, epc := range slices.Concat(e.RFID.Before, e.RFID.After) {
			s.Overrides[epc] = int64(1 + random.IntN(8))
			s.Tags[epc] = []cabinet.TagPlace{cabinet.TagHere, cabinet.TagSold, cabinet.TagUnknown}[random.IntN(3)]
			s.Later[epc] = random.IntN(4) == 0
		}
		v := cabinet.Judge(e, s)
		for _, l := range v.Lines {
			if _, ok := s.Products[l.ProductID]; !ok || l.Quantity < 1 || l.Quantity > cabinet.MaxItems*cabinet.MaxQuantity {
				t.Fatalf("line %+v", l)
			}
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	})
}

package settlement

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

// FuzzJudge: whatever an event says, no line takes nothing or gives goods back, money adds up
// and whoever must decide is asked.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(`"items":[{"productId":7,"quantity":2}],"userId":42`))
	f.Add([]byte(`"items":[{"productId":7,"quantity":1000},{"productId":7,"quantity":1000},{"productId":8,"quantity":-3}]`))
	f.Add([]byte(`"kind":"restock","items":[{"productId":9,"quantity":1,"confidence":0.1},[],{"productId":"x"}],"seq":-1`))
	f.Add([]byte(`"weights":[{"lane":1,"beforeGrams":3,"afterGrams":-5},null,{"lane":"<&>"}],"rfid":{"before":["AB"]},"userId":"é"`))
	f.Add([]byte(`"weights":[{"lane":1,"beforeGrams":5230,"afterGrams":4540}],"rfid":{"before":["3036142C8C008F8000053244"],"after":[]}`))
	received := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	prices := inventory.Prices{7: {{PriceMinor: 500}}, 8: {{PriceMinor: 0}}, 9: {{PriceMinor: inventory.MaxPriceMinor}}}
	shelf := cabinet.Shelf{
		Lanes: map[int]int64{1: 7, 2: 8},
		Products: map[int64]cabinet.Product{
			7: {ProductID: 7, UnitWeightGrams: 345, GTIN14: "08719139005740"}, 8: {ProductID: 8}, 9: {ProductID: 9},
		},
		ByGTIN: map[string]int64{"08719139005740": 7},
		Tags:   map[string]cabinet.TagPlace{"3036142C8C008F8000053244": cabinet.TagHere},
	}
	f.Fuzz(func(t *testing.T, members []byte) {
		payload := `{"closeEventId":"e","deviceId":1,"closedAt":"2026-11-30T10:00:00Z",` + string(members) + "}"
		event, err := cabinet.Decode([]byte(payload))
		if err != nil {
			return
		}
		v := rules{"CNY", DefaultThreshold}.judge(event, shelf, prices, received, received)
		marshal(v.evidence)
		total := int64(0)
		for _, l := range v.lines {
			if l.Quantity < 1 || l.UnitPriceMinor < 0 || l.AmountMinor/l.Quantity != l.UnitPriceMinor {
				t.Errorf("line %+v", l)
			}
			total += l.AmountMinor
		}
		if total < 0 || total != v.totalMinor() || total > math.MaxInt64/2 {
			t.Errorf("total %d", total)
		}
		if !slices.IsSortedFunc(v.lines, func(a, b line) int { return int(a.ProductID - b.ProductID) }) {
			t.Errorf("lines out of order: %+v", v.lines)
		}
		asks := slices.ContainsFunc(v.reasons, func(r cabinet.Reason) bool { return !r.Informs() })
		if asks != (v.outcome == cabinet.Review) {
			t.Errorf("outcome %s for %v", v.outcome, v.reasons)
		}
		if v.hasOrder(event.Kind) && event.Kind == cabinet.KindRestock {
			t.Error("an order of a restock door")
		}
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	if id := database.NewID(time.UnixMilli(1<<41 - 1)); id <= 0 {
		t.Errorf("the last id %d is not positive", id)
	}
	if earlier, later := database.NewID(now), database.NewID(now.Add(time.Millisecond)); earlier >= later {
		t.Errorf("%d is not before %d", earlier, later)
	}
	id := database.NewID(now)
	if back, ok := ParseID(FormatID(id)); !ok || back != id {
		t.Errorf("%d, %v", back, ok)
	}
	for _, text := range []string{"", "0", "-1", "+1", "01", "1.0", " 1", "x", fmt.Sprint(uint64(1) << 63)} {
		if _, ok := ParseID(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}

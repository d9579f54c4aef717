package physical_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

var goods = []cabinet.Product{
	{ProductID: 70, GTIN14: "02000000000015", UnitWeightGrams: 345, WeightToleranceGrams: 18},
	{ProductID: 80, GTIN14: "08719139005740", UnitWeightGrams: 520, WeightToleranceGrams: 24},
	{ProductID: 90, GTIN14: "12000000000012", UnitWeightGrams: 47, WeightToleranceGrams: 9},
}

func stocked(kind physical.Kind, noise physical.Noise) *physical.Cabinet {
	serial := int64(1<<38 - 200)
	return physical.NewCabinet(physical.Stocked{
		Kind: kind, Noise: noise, Products: goods, PerLane: 6, Serial: func(int) int64 { serial++; return serial - 1 },
	}, rand.New(rand.NewPCG(1, 2)))
}

// What the sensors see of a cabinet that makes no mistakes is, door by door, what its content changed by.
func TestACabinetSeesWhatChanges(t *testing.T) {
	t.Parallel()
	quiet := physical.Noise{TagReads: 1}
	for _, kind := range physical.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := stocked(kind, quiet)
			shelf := cabinet.Shelf{
				Lanes: map[int]int64{}, Products: map[int64]cabinet.Product{}, ByGTIN: map[string]int64{},
				Tags: map[string]cabinet.TagPlace{}, Threshold: 0.8,
			}
			for i, p := range goods {
				shelf.Lanes[i+1], shelf.Products[p.ProductID], shelf.ByGTIN[p.GTIN14] = p.ProductID, p, p.ProductID
			}
			if !c.Low() || c.Kind() != kind {
				t.Fatal("an empty cabinet isn't low")
			}
			for n := range 60 {
				before := c.Content()
				e, door := cabinet.Event{Kind: cabinet.KindSale}, physical.Door{}
				if c.Low() {
					e.Kind = cabinet.KindRestock
					door = c.Restock(c.Lacking())
				} else {
					door = c.Sale()
				}
				e.HasItems, e.HasWeights, e.HasRFID = door.Seen.HasItems, door.Seen.HasWeights, door.Seen.HasRFID
				e.Items, e.Weights, e.RFID = door.Seen.Items, door.Seen.Weights, door.Seen.RFID
				v := cabinet.Judge(&e, shelf)
				seen := map[int64]int64{}
				for _, l := range v.Lines {
					seen[l.ProductID] = l.Quantity
				}
				for _, move := range v.Tags {
					shelf.Tags[move.EPC] = move.Place
				}
				if len(v.Findings) > 0 || !maps.Equal(seen, door.Truth) {
					t.Fatalf("door %d: seen %v, true is %v; findings %+v", n, seen, door.Truth, v.Findings)
				}
				way := int64(-1)
				if e.Kind == cabinet.KindRestock {
					way = 1
				}
				for id, now := range c.Content() {
					if now != before[id]+way*door.Truth[id] {
						t.Fatalf("door %d: %d units of %d, want %d and %d", n, now, id, before[id], way*door.Truth[id])
					}
				}
			}
		})
	}
}

func TestMiscountedIsOffByOne(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	units := map[int64]int64{70: 5, 80: 0}
	if got := physical.Miscounted(units, 0, random); !maps.Equal(got, units) {
		t.Errorf("without mistakes %v, want %v", got, units)
	}
	wrong := 0
	for range 1000 {
		got := physical.Miscounted(units, 0.1, random)
		if off := got[70] - 5; off != 0 {
			wrong++
			if off != 1 && off != -1 {
				t.Fatalf("%d of 5 were counted", got[70])
			}
		}
		if got[80] < 0 {
			t.Fatalf("%d units were counted", got[80])
		}
	}
	if wrong < 60 || wrong > 140 {
		t.Errorf("%d of 1000 counts are wrong, want about 100", wrong)
	}
}

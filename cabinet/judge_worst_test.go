package cabinet_test

import (
	"testing"
	"time"

	"doortab/cabinet"
)

// The largest event in which every lane may have given to every other one must not hold up those behind it: it takes a
// fraction of a second, and with the race detector on a busy machine a few.
func TestTheWorstEventIsJudgedInTime(t *testing.T) {
	t.Parallel()
	s := cabinet.Shelf{Lanes: map[int]int64{}, Products: map[int64]cabinet.Product{}, Threshold: 0.8}
	e := &cabinet.Event{CloseEventID: "e", DeviceID: 1, Kind: cabinet.KindSale, HasWeights: true}
	for lane := 1; lane <= cabinet.MaxLanes; lane++ {
		id := int64(lane)
		s.Lanes[lane] = id
		s.Products[id] = cabinet.Product{ProductID: id, UnitWeightGrams: 300 + id%7, WeightToleranceGrams: 20}
		w := cabinet.Weight{Lane: lane, BeforeGrams: 6000, AfterGrams: 6000 - 3*(300+id%7)}
		if lane%30 == 0 {
			w.AfterGrams = 6000 + 300 + id%7
		}
		e.Weights = append(e.Weights, w)
		for i := range int64(4) {
			s.Strays = append(s.Strays, cabinet.Stray{Lane: lane, ProductID: 1 + (id+i)%200, Grams: 300 + i})
		}
	}
	for name, strays := range map[string][]cabinet.Stray{"clean": nil, "untidy": s.Strays} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			s.Strays = strays
			v := cabinet.Judge(e, s)
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if len(v.Findings) == 0 {
				t.Error("no person looks at it")
			}
		})
	}
}

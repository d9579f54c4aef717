package cabinet

import (
	"math"
	"slices"
)

// weighed is one lane whose scale reported, on its way to an explanation.
type weighed struct {
	Weight
	product Product // of the planogram; the zero Product where it has no entry for the lane
	known   bool    // the planogram has the lane
	loss    int64   // grams that went the way of the door
	tags    int64   // units that the tags account for
	strays  []int   // indices into Shelf.Strays
}

// rest is what the tags leave for the scale to explain.
func (w *weighed) rest() int64 { return w.loss - w.tags*w.product.UnitWeightGrams }

// blind: the lane's change can't be counted in units.
func (w *weighed) blind() bool { return w.product.UnitWeightGrams <= 0 }

// tolerance for the lane's own product where own units beyond the tags went.
func (w *weighed) tolerance(own int64) float64 {
	if w.blind() {
		return leastToleranceGrams
	}
	return w.product.Tolerance(abs(own + w.tags))
}

// nearest is the whole number of own units nearest to grams.
func (w *weighed) nearest(grams int64) int64 {
	if w.blind() {
		return 0
	}
	return int64(math.Round(float64(grams) / float64(w.product.UnitWeightGrams)))
}

// fit says how well grams are own units of the lane's product: 0 is exact, 1 at the edge of the tolerance, which is also
// never half a unit weight or more. ok is false beyond it, and for absurd numbers. slack is the tolerance of whatever else left with them.
func (w *weighed) fit(grams, own int64, slack float64) (score float64, ok bool) {
	off := abs(grams - own*w.product.UnitWeightGrams)
	if abs(own) > MaxQuantity || !w.blind() && 2*off >= w.product.UnitWeightGrams {
		return 0, false
	}
	share := float64(off) / math.Hypot(w.tolerance(own), slack)
	return share * share, share <= 1
}

func (w *weighed) evidence(own int64) LaneEvidence {
	return LaneEvidence{
		Lane: w.Lane, ProductID: w.product.ProductID, BeforeGrams: w.BeforeGrams, AfterGrams: w.AfterGrams,
		UnitWeightGrams: w.product.UnitWeightGrams, ToleranceGrams: w.limit(own), Count: own + w.tags,
	}
}

// limit is the tolerance as it applied, to a tenth of a gram.
func (w *weighed) limit(own int64) float64 {
	limit := w.tolerance(own)
	if half := float64(w.product.UnitWeightGrams) / 2; !w.blind() && limit > half {
		limit = half
	}
	return math.Round(limit*10) / 10
}

// readScales brings each lane together with its product, the tags that left it and what is known to lie wrong in it.
func (j *judging) readScales() {
	byProduct := map[int64][]*weighed{}
	for _, reading := range j.event.Weights {
		w := &weighed{Weight: reading, loss: j.way * (reading.BeforeGrams - reading.AfterGrams)}
		var id int64
		if id, w.known = j.shelf.Lanes[reading.Lane]; w.known {
			w.product = j.product(id)
			w.product.ProductID = id
		}
		for i, stray := range j.shelf.Strays {
			if stray.Lane == reading.Lane && stray.Grams > 0 {
				w.strays = append(w.strays, i)
			}
		}
		j.lanes = append(j.lanes, w)
		if !w.blind() {
			byProduct[id] = append(byProduct[id], w)
		}
	}
	defer func() { j.trembles = j.tremble() }()
	for id, lanes := range byProduct {
		if t := j.tallies[id]; t != nil {
			assign(t.net(), lanes)
		}
	}
}

// assign spreads the units that tags account for over the lanes of their product, each as many as its scale would count,
// and what is left to the first.
func assign(units int64, lanes []*weighed) {
	direction := int64(1)
	if units < 0 {
		direction = -1
	}
	for left := units * direction; left > 0; {
		taken := int64(0)
		for _, w := range lanes {
			n := min(max(direction*w.nearest(w.rest()), 0), left)
			w.tags += direction * n
			left -= n
			taken += n
		}
		if taken == 0 {
			lanes[0].tags += direction * left
			return
		}
	}
}

// How far a scale trembles is what the still lanes of the same event show, if there are enough of them.
const (
	fewestStill   = 4
	tremblingWide = 3.5  // standard deviations that are let pass
	medianShare   = 0.79 // the median of a normal distribution's size in standard deviations, without what rounds to 0
)

// tremble estimates the standard deviation of a lane's change where nothing happened: by the median, since one lane in
// which something did happen may be among them, and without lanes that show no change at all, which may be off or coarse.
// 0 where too few lanes tell. Never less than half of the least tolerance.
func (j *judging) tremble() float64 {
	var still []int64
	for _, w := range j.lanes {
		if w.rest() != 0 && w.tags == 0 && float64(abs(w.rest())) <= w.tolerance(0) {
			still = append(still, abs(w.rest()))
		}
	}
	if len(still) < fewestStill {
		return 0
	}
	slices.Sort(still)
	middle := (float64(still[(len(still)-1)/2]) + float64(still[len(still)/2])) / 2
	return max(middle/medianShare, leastToleranceGrams/2)
}

// trembling is how far the sum of the given number of lanes may be off by it.
func (j *judging) trembling(lanes float64) float64 {
	one := j.trembles
	if one == 0 {
		return math.Inf(1)
	}
	return max(leastToleranceGrams, tremblingWide*one) * math.Sqrt(lanes)
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

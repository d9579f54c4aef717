package cabinet

import (
	"maps"
	"math"
	"slices"
)

// likelier is by how much, as the logarithm of the ratio, a hidden exchange must explain a still lane better than still
// scales do before it counts as an explanation. It makes up for how rare it is that somebody takes one product and puts
// another of like weight in its place.
const likelier = 2.5

// hidden are explanations that no lane calls for by itself: a unit was taken from a lane and one of another product, of
// nearly the same weight, put in its place, so that the wrong one of the two seems to be gone. What gives it away is a
// lane that is still within its tolerance and yet off by more than the still ones tremble.
func (j *judging) hidden(found []explanation) []explanation {
	best := found[0]
	if j.way < 0 || len(found) > 1 || len(best.moves) > 0 {
		return nil
	}
	hidden := j.masked(best)
	for from, w := range j.lanes {
		if best.choices[from].own > 0 && j.untagged(w.product.ProductID) {
			hidden = append(hidden, j.exchanges(best, from)...)
		}
	}
	return hidden
}

// exchanges puts a unit of one lane in the place of one of each still lane.
func (j *judging) exchanges(best explanation, from int) []explanation {
	var hidden []explanation
	for to, w := range j.lanes {
		c := best.choices[to]
		if !w.blind() && c.own == 0 && !c.unexplained && len(c.strays) == 0 && w.tags == 0 &&
			j.exchanged(j.lanes[from], w) && j.untagged(w.product.ProductID) {
			hidden = append(hidden, j.exchange(best, from, to))
		}
	}
	return hidden
}

// many units of one product at one sale are rare, and their tolerance is so wide that most weights pass for some number.
const many = 6

// masked are explanations in which many small units are rather one unit of another product, that nobody knew to lie there.
func (j *judging) masked(best explanation) []explanation {
	var masked []explanation
	for i, w := range j.lanes {
		own := best.choices[i].own
		if own < many || w.tags != 0 || !j.untagged(w.product.ProductID) {
			continue
		}
		for _, other := range j.lanes {
			if _, _, ok := other.product.whole(w.rest(), 1); ok && other.product.ProductID != w.product.ProductID {
				e := best.copied()
				e.choices[i].own = 0
				e.beyond[w.product.ProductID] -= own
				e.beyond[other.product.ProductID]++
				masked = append(masked, e)
			}
		}
	}
	return masked
}

func (e explanation) copied() explanation {
	e.hidden = true
	e.choices, e.beyond = slices.Clone(e.choices), maps.Clone(e.beyond)
	return e
}

// exchanged compares two normal distributions of what the still lane shows.
func (j *judging) exchanged(from, to *weighed) bool {
	still := j.trembles
	if still == 0 {
		return false
	}
	spread := math.Hypot(from.product.Tolerance(1), to.product.Tolerance(1)) / tremblingWide
	off := float64(to.rest())
	exchange := off - float64(to.product.UnitWeightGrams-from.product.UnitWeightGrams)
	ratio := off*off/(2*still*still) - exchange*exchange/(2*spread*spread) - math.Log(spread/still)
	return from.product.ProductID != to.product.ProductID && ratio > likelier
}

func (j *judging) exchange(best explanation, from, to int) explanation {
	e := best.copied()
	e.choices[from].own--
	e.choices[to].own++
	e.moves = []move{{from, to, j.lanes[from].product.UnitWeightGrams}}
	e.beyond[j.lanes[from].product.ProductID]--
	e.beyond[j.lanes[to].product.ProductID]++
	return e
}

package cabinet

import (
	"math"
	"slices"
)

// pair tries to explain an open lane by something that went from it or to it.
func (s *search) pair(i, k int) {
	for other := range s.j.lanes {
		if other == i || s.moved[other] || slices.Contains(s.open[:k], other) {
			continue
		}
		s.tryMove(other, i, k)
		if slices.Contains(s.open, other) {
			s.tryMove(i, other, k)
		}
	}
}

// tryMove lets something go from one lane to another that is open itself: what a plain lane shows needs no move into it.
func (s *search) tryMove(from, to, k int) {
	j, w := s.j, s.j.lanes[from]
	most := int64(0)
	if !w.blind() {
		most = max(w.rest()/w.product.UnitWeightGrams, 0)
	}
	for own := max(most-maxMoved, 0); own <= most; own++ {
		grams := w.rest() - own*w.product.UnitWeightGrams
		source, spread, ok := j.sourceOf(from, to, own, grams)
		if !ok {
			continue
		}
		target, ok := j.target(w, j.lanes[to], own, grams, spread)
		if !ok {
			continue
		}
		before := [2]choice{s.current.choices[from], s.current.choices[to]}
		s.current.choices[from], s.current.choices[to] = source, target
		s.moved[from], s.moved[to] = true, true
		s.current.moves = append(s.current.moves, move{from, to, grams})
		s.step(k + 1)
		s.current.moves = s.current.moves[:len(s.current.moves)-1]
		s.moved[from], s.moved[to] = false, false
		s.current.choices[from], s.current.choices[to] = before[0], before[1]
	}
}

// sourceOf says whether grams can be something that changed its lane: units of the lane's product, something that lay
// wrong in either lane, or units of any product of the planogram that nobody knew to lie there. spread is the tolerance of
// what moved.
func (j *judging) sourceOf(from, to int, own, grams int64) (c choice, spread float64, ok bool) {
	w := j.lanes[from]
	if float64(grams) <= w.tolerance(-w.tags) {
		return choice{}, 0, false
	}
	if score, units, ok := w.product.whole(grams, maxMoved); ok {
		score += scorePerUnit * float64(units-1+min(own, 1)) // as if they had been taken: they were in a hand
		return choice{own: own, score: score}, w.product.Tolerance(units), true
	}
	for _, w := range []*weighed{w, j.lanes[to]} {
		if i := j.strayAt(w, grams); i >= 0 {
			return choice{own: own}, j.product(j.shelf.Strays[i].ProductID).Tolerance(1), true
		}
	}
	for _, other := range j.lanes {
		if score, units, ok := other.product.whole(grams, 1); ok {
			return choice{own: own, score: score}, other.product.Tolerance(units), true
		}
	}
	return choice{}, 0, false
}

// like: two readings of one thing.
func (j *judging) like(grams, other, productID int64) bool {
	return float64(abs(grams-other)) <= j.product(productID).Tolerance(1)
}

// target explains the lane that something went to: the rest of its change is own units too, or nothing. Where nothing else
// happened in either lane both scales weighed the same thing, and may differ by their trembling only; else the tolerances
// of what was taken add up as squares.
func (j *judging) target(from, to *weighed, own, grams int64, spread float64) (choice, bool) {
	units := to.nearest(to.rest() + grams)
	off := abs(to.rest() + grams - units*to.product.UnitWeightGrams)
	if units < 0 || units > maxTaken || 2*off >= grams || !to.blind() && 2*off >= to.product.UnitWeightGrams {
		return choice{}, false
	}
	a, b := spread, spread
	if own+from.tags != 0 {
		a = from.tolerance(own)
	}
	if units+to.tags != 0 {
		b = to.tolerance(units)
	}
	limit := math.Hypot(a, b)
	if own+from.tags == 0 && units+to.tags == 0 {
		limit = min(limit, j.trembling(2))
	}
	share := float64(off) / limit
	return choice{own: units, score: share * share}, share <= 1
}

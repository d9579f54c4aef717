package cabinet

import (
	"math"
	"slices"
)

// pair tries to explain an open lane by something that went from it or to it.
func (s *search) pair(i, k int) {
	for other := range s.j.lanes {
		switch {
		case other == i || slices.Contains(s.open[:k], other):
		case s.moved[other]:
			s.trySecond(other, i, k)
		default:
			s.tryMove(other, i, k)
			if slices.Contains(s.open, other) {
				s.tryMove(i, other, k)
			}
		}
	}
}

// tryMove lets something go from one lane to another that is open itself: what a plain lane shows needs no move into it.
func (s *search) tryMove(from, to, k int) {
	w := s.j.lanes[from]
	most := int64(0)
	if !w.blind() {
		most = max(w.rest()/w.product.UnitWeightGrams, 0)
	}
	for own := most; own >= 0; own-- {
		if own > 0 && own < most-maxMoved {
			own = 0 // all that the lane lost is one thing
		}
		grams := w.rest() - own*w.product.UnitWeightGrams
		if source, spread, ok := s.j.sourceOf(from, to, own, grams); ok {
			s.carry(move{from, to, grams}, source, spread, k)
		}
	}
}

// trySecond lets units of a lane that something went from already go to one more.
func (s *search) trySecond(from, to, k int) {
	isSource := slices.ContainsFunc(s.current.moves, func(m move) bool { return m.from == from })
	w, c := s.j.lanes[from], s.current.choices[from]
	if !isSource || w.blind() {
		return
	}
	for units := int64(1); units <= min(c.own, maxMoved); units++ {
		left := c
		left.own -= units
		s.carry(move{from, to, units * w.product.UnitWeightGrams}, left, w.product.Tolerance(units), k)
	}
}

// carry goes on with the search as if the move had happened, if the lane that it went to bears it out.
func (s *search) carry(m move, source choice, spread float64, k int) {
	j := s.j
	target, ok := j.target(j.lanes[m.from], j.lanes[m.to], source.own, m.grams, spread)
	if !ok {
		return
	}
	choices, moved := [2]choice{s.current.choices[m.from], s.current.choices[m.to]}, s.moved[m.from]
	s.current.choices[m.from], s.current.choices[m.to] = source, target
	s.moved[m.from], s.moved[m.to] = true, true
	s.current.moves = append(s.current.moves, m)
	s.step(k + 1)
	s.current.moves = s.current.moves[:len(s.current.moves)-1]
	s.moved[m.from], s.moved[m.to] = moved, false
	s.current.choices[m.from], s.current.choices[m.to] = choices[0], choices[1]
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

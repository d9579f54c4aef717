package cabinet

import (
	"cmp"
	"slices"
)

// place works out what lies in wrong lanes after the door. Where it isn't sure what moved, all that may have is noted, so
// that it can't be charged as something else later; but for an exchange that no lane calls for, which is unlikely.
// Staff tidy up: what lay wrong before a restock is forgotten.
func (j *judging) place(found []explanation, unsure bool) {
	var strays []Stray
	var misplaced []Moved
	switch {
	case j.way < 0:
	case unsure:
		strays = slices.Clone(j.shelf.Strays)
	default:
		strays, found = j.without(found[0]), found[:1]
	}
	for _, e := range found {
		for _, m := range e.moves {
			added, moved := j.moved(m)
			if len(added) == 0 || e.hidden {
				continue
			}
			misplaced = append(misplaced, moved)
			for _, s := range added {
				s.Possible = unsure
				if !unsure || !slices.Contains(strays, s) {
					strays = append(strays, s)
				}
			}
		}
	}
	for i, c := range found[0].choices {
		if w := j.lanes[i]; c.unexplained && w.rest() < 0 && j.way > 0 {
			strays = append(strays, Stray{Lane: w.Lane, Grams: -w.rest()})
		}
	}
	if len(misplaced) > 0 && !unsure {
		j.find(Finding{
			Reason: ReasonMisplacedReturn, Where: laneName(misplaced[0].ToLane),
			Evidence: Evidence{Source: SourceWeight, Rule: RuleNetted, Moves: misplaced},
		})
	}
	slices.SortFunc(strays, compareStrays)
	j.verdict.Strays = strays
}

func compareStrays(a, b Stray) int {
	possible := 0
	if a.Possible != b.Possible {
		if possible = -1; a.Possible {
			possible = 1
		}
	}
	return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.ProductID, b.ProductID), cmp.Compare(a.Grams, b.Grams), possible)
}

// without are the strays that the explanation doesn't let leave their lane.
func (j *judging) without(e explanation) []Stray {
	left := map[int]bool{}
	for _, c := range e.choices {
		for _, i := range c.strays {
			left[i] = true
		}
	}
	for _, m := range e.moves {
		from, _ := j.ends(m)
		_, _, ok := from.product.whole(m.grams, maxMoved)
		if i := j.strayAt(from, m.grams); i >= 0 && !ok {
			left[i] = true
		}
	}
	var kept []Stray
	for i, s := range j.shelf.Strays {
		if !left[i] {
			kept = append(kept, s)
		}
	}
	return kept
}

// ends are the lanes that something left and came to. At a restock what counts positive came.
func (j *judging) ends(m move) (from, to *weighed) {
	if j.way < 0 {
		return j.lanes[m.to], j.lanes[m.from]
	}
	return j.lanes[m.from], j.lanes[m.to]
}

func (j *judging) strayAt(w *weighed, grams int64) int {
	for _, i := range w.strays {
		if j.like(grams, j.shelf.Strays[i].Grams, j.shelf.Strays[i].ProductID) {
			return i
		}
	}
	return -1
}

// moved says what a move leaves lying wrong: nothing where it brought a unit home, or where the tags say that it left
// altogether and lay wrong before.
func (j *judging) moved(m move) ([]Stray, Moved) {
	from, to := j.ends(m)
	moved := Moved{FromLane: from.Lane, ToLane: to.Lane, Grams: m.grams}
	id, units := int64(0), int64(1)
	_, own, ok := from.product.whole(m.grams, maxMoved)
	if i := j.strayAt(from, m.grams); ok {
		id, units = from.product.ProductID, own
	} else if i >= 0 {
		id = j.shelf.Strays[i].ProductID
	}
	_, _, home := to.product.whole(m.grams, maxMoved)
	if id == to.product.ProductID && id != 0 || home && id == 0 || to.tags > 0 && abs(to.loss)*2 < m.grams {
		return nil, moved
	}
	var strays []Stray
	for range units {
		strays = append(strays, Stray{Lane: to.Lane, ProductID: id, Grams: max(m.grams/units, 1)})
	}
	return strays, moved
}

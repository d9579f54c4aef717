package cabinet

import (
	"math"
	"slices"
)

// What an explanation costs: the cheapest is believed, so that nobody is thought to have moved things where plain sales
// explain the scales, and nothing is left unexplained that a move explains.
const (
	costUnread      = 1  // units whose tags can't have been read
	costUntidy      = 1  // staff were there and left what lies wrong, or took away what may not have lain wrong
	costMove        = 2  // something changed its lane
	costDisagree    = 5  // tags and scales count differently
	costUnexplained = 10 // a lane whose change stays a riddle, or units taken from where something was put that no tag names
)

// Bounds of the search: what takes more is left unexplained and so to a person.
const (
	maxOpen    = 7    // lanes that need an explanation
	maxMoves   = 2    // things that changed their lane in one door
	maxMoved   = 3    // units that went the same way
	maxTaken   = 2    // units taken from a lane while something was put there
	maxVisited = 2000 // combinations
)

// Two explanations fit alike where their squared misfits, in tolerances, differ by less than this. With a tolerance of
// three and a half standard deviations, an explanation that fits worse by this much is twenty times less likely.
const clearlyBetter = 0.5

// scorePerUnit keeps many small units from passing for one large thing: each further unit of one product at one sale
// is several times less likely than the one before.
const scorePerUnit = 0.3

// choice explains one lane: own units beyond the tags, and things known to lie wrong that left.
type choice struct {
	own         int64
	strays      []int
	score       float64
	unexplained bool
}

// move is something that one lane has too much of the way of the door and another too little.
type move struct {
	from, to int // indices of lanes: at a sale things went from one to the other, at a restock the other way
	grams    int64
}

// explanation is one choice for every lane.
type explanation struct {
	cost    int
	score   float64
	choices []choice
	moves   []move
	beyond  map[int64]int64 // units beyond the tags, by product
	hidden  bool            // not what any lane calls for
}

// search looks for the cheapest explanations.
type search struct {
	j       *judging
	options [][]choice
	open    []int
	current explanation
	moved   []bool
	found   []explanation
	visited int
	spent   int // of the current choices, at least
}

// explain returns the cheapest explanations that fit alike; never none.
func (j *judging) explain() []explanation {
	s := &search{j: j, moved: make([]bool, len(j.lanes))}
	s.current.choices = make([]choice, len(j.lanes))
	for i, w := range j.lanes {
		options := j.options(w)
		s.options = append(s.options, options)
		if len(options) == 1 && s.plain(w, options[0]) {
			s.current.choices[i] = options[0]
		} else {
			s.open = append(s.open, i)
		}
	}
	if len(s.open) <= maxOpen {
		s.step(0)
	}
	if len(s.open) > maxOpen || s.visited > maxVisited {
		return []explanation{s.giveUp()}
	}
	return alike(s.found)
}

// giveUp leaves every lane that isn't plain to a person.
func (s *search) giveUp() explanation {
	for _, i := range s.open {
		s.current.choices[i] = choice{unexplained: true}
	}
	s.open, s.found = nil, nil
	s.evaluate()
	return s.found[0]
}

// plain: nothing happened in the lane but what the tags say, or units were sold that have none.
func (s *search) plain(w *weighed, c choice) bool {
	return len(c.strays) == 0 && (c.own == 0 || c.own > 0 && s.j.untagged(w.product.ProductID))
}

// options are the explanations of a lane by itself: its own units, with none, one, two or all of the things that lie wrong in it.
func (j *judging) options(w *weighed) []choice {
	var options []choice
	try := func(strays ...int) {
		grams, slack := w.rest(), 0.0
		for _, i := range strays {
			stray := j.shelf.Strays[i]
			grams -= j.way * stray.Grams
			slack = math.Hypot(slack, min(j.trembling(1), j.product(stray.ProductID).Tolerance(1)))
		}
		own := w.nearest(grams)
		if score, ok := w.fit(grams, own, slack); ok {
			options = append(options, choice{own: own, strays: strays, score: score})
		}
	}
	try()
	for k, first := range w.strays {
		try(first)
		for _, second := range w.strays[k+1:] {
			try(first, second)
		}
	}
	if len(w.strays) > 2 {
		try(w.strays...)
	}
	return options
}

func (s *search) step(k int) {
	if s.visited++; s.visited > maxVisited {
		return
	}
	if k == len(s.open) {
		s.evaluate()
		return
	}
	i := s.open[k]
	if s.moved[i] {
		s.step(k + 1)
		return
	}
	for _, option := range s.options[i] {
		s.current.choices[i] = option
		s.step(k + 1)
	}
	if len(s.current.moves) < maxMoves && s.affords(costMove) {
		s.spent += costMove
		s.pair(i, k)
		s.spent -= costMove
	}
	if s.affords(costUnexplained) {
		s.spent += costUnexplained
		s.current.choices[i] = choice{unexplained: true}
		s.step(k + 1)
		s.spent -= costUnexplained
	}
}

// affords reports whether what is found may still be as cheap as the best.
func (s *search) affords(cost int) bool { return len(s.found) == 0 || s.spent+cost <= s.found[0].cost }

// evaluate keeps the current choices if they are possible and not dearer than the best.
func (s *search) evaluate() {
	e := explanation{beyond: map[int64]int64{}}
	for _, m := range s.current.moves {
		e.cost += costMove
		if s.current.choices[m.to].own > 0 {
			e.cost += costUnexplained - costMove
		}
	}
	for i, c := range s.current.choices {
		e.score += c.score
		if s.j.way > 0 {
			e.score += scorePerUnit * float64(max(c.own-1, 0))
		}
		if c.unexplained {
			e.cost += costUnexplained
			continue
		}
		e.cost += s.j.untidy(s.j.lanes[i], c)
		if c.own != 0 {
			e.beyond[s.j.lanes[i].product.ProductID] += c.own
		}
		for _, stray := range c.strays {
			if id := s.j.shelf.Strays[stray].ProductID; id != 0 {
				e.beyond[id] += s.j.way
			}
		}
	}
	for id, units := range e.beyond {
		units = s.j.cameUnweighed(id, units)
		e.beyond[id] = units
		cost, ok := s.j.price(id, units)
		if !ok {
			return
		}
		e.cost += cost
	}
	if len(s.found) > 0 && e.cost > s.found[0].cost {
		return
	}
	if len(s.found) > 0 && e.cost < s.found[0].cost {
		s.found = s.found[:0]
	}
	e.choices, e.moves = slices.Clone(s.current.choices), slices.Clone(s.current.moves)
	s.found = append(s.found, e)
}

// cameUnweighed takes off the units beyond the tags those whose tags only went against the door: the scale then says that
// they didn't come, and not that others went.
func (j *judging) cameUnweighed(productID, beyond int64) int64 {
	t := j.tallies[productID]
	if t == nil || beyond <= 0 {
		return beyond
	}
	return max(beyond-t.back, 0)
}

// untidy is what it costs to think that staff left a thing that lies wrong, or took one that may not have been there.
func (j *judging) untidy(w *weighed, c choice) int {
	if j.way > 0 {
		return 0
	}
	cost := 0
	for _, i := range w.strays {
		if gone := slices.Contains(c.strays, i); gone == j.shelf.Strays[i].Possible {
			cost += costUntidy
		}
	}
	return cost
}

// price of units beyond the tags. Fewer than none can't have gone.
func (j *judging) price(productID, beyond int64) (cost int, ok bool) {
	named := int64(0)
	if t := j.tallies[productID]; t != nil {
		named = int64(len(t.tags)) + t.doubtful
	}
	switch {
	case beyond == 0:
		return 0, true
	case named+beyond < 0:
		return 0, false
	case beyond < 0:
		return costDisagree, true
	case j.untagged(productID):
		return 0, true
	case beyond <= j.unread(productID):
		return costUnread, true
	default:
		return costDisagree, true
	}
}

// alike keeps the explanations that fit about as well as the best. First comes the best of those that leave the fewest riddles.
func alike(found []explanation) []explanation {
	slices.SortStableFunc(found, func(a, b explanation) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	n := 1
	for n < len(found) && found[n].score-found[0].score < clearlyBetter {
		n++
	}
	found = found[:n]
	slices.SortStableFunc(found, func(a, b explanation) int { return a.riddles() - b.riddles() })
	return found
}

// riddles are the lanes that stay unexplained.
func (e explanation) riddles() int {
	n := 0
	for _, c := range e.choices {
		if c.unexplained {
			n++
		}
	}
	return n
}

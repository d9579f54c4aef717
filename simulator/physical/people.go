package physical

import "math"

// basket is how many units a shopper takes into the hand: many only look, most take one.
var basket = []float64{0.08, 0.57, 0.22, 0.09, 0.04}

// deed is what a shopper does with a unit in the hand.
type deed int

const (
	keep        deed = iota
	putBack          // where it was
	putWrong         // in another lane
	drinkHalf        // and put it back
	swapForLike      // keep it and leave something of like weight
)

// shop lets one shopper into the cabinet and returns how many units of each product are gone or opened: what a just order
// is made of.
func (s *shelf) shop() []int64 {
	taken := make([]int64, len(s.products))
	deeds := s.deeds()
	for _, d := range deeds {
		lane, at, ok := s.want()
		if !ok {
			break
		}
		u := s.remove(lane, at)
		if d == keep || d == drinkHalf || d == swapForLike {
			taken[u.product]++
		}
		switch d {
		case putBack:
			s.put(lane, u)
		case putWrong:
			s.put(s.wrongLane(lane), u)
		case drinkHalf:
			u.grams *= 1 - (0.3 + 0.4*s.random.Float64())
			u.opened = true
			s.put(lane, u)
		case swapForLike:
			s.put(lane, unit{product: -1, grams: u.grams * (1 + 0.02*(2*s.random.Float64()-1))})
		}
	}
	if s.happens(s.noise.Foreign) {
		s.put(s.random.IntN(len(s.lanes)), unit{product: -1, grams: 20 * math.Pow(40, s.random.Float64())})
	}
	return taken
}

// deeds of one door: most units are kept, and what else happens, happens to the first of those in the hand.
func (s *shelf) deeds() []deed {
	noise := s.noise
	var deeds []deed
	for _, c := range []struct {
		deed  deed
		share float64
	}{{putBack, noise.RightLane}, {putWrong, noise.WrongLane}, {drinkHalf, noise.HalfEmpty}, {swapForLike, noise.Swapped}} {
		if s.happens(c.share) {
			deeds = append(deeds, c.deed)
		}
	}
	kept := s.basketSize(len(deeds))
	if noise.OnTop {
		kept = s.basketSize(0)
	} else {
		kept -= len(deeds)
	}
	return append(deeds, make([]deed, kept)...)
}

func (s *shelf) happens(share float64) bool { return s.random.Float64() < share }

// basketSize draws how many units somebody takes, at least so many.
func (s *shelf) basketSize(least int) int {
	for range 1000 {
		x := s.random.Float64()
		for n, share := range basket {
			if x -= share; x < 0 && n >= least {
				return n
			}
		}
	}
	return least
}

// want picks a product by its popularity, and any sound unit of it wherever it lies.
func (s *shelf) want() (lane, at int, ok bool) {
	total := 0.0
	for i, p := range s.products {
		total += p.popularity * math.Min(1, float64(s.forSale(i)))
	}
	x := s.random.Float64() * total
	for i, p := range s.products {
		n := s.forSale(i)
		if x -= p.popularity * math.Min(1, float64(n)); x < 0 && n > 0 {
			return s.pick(i, s.random.IntN(int(n)))
		}
	}
	return 0, 0, false
}

func (s *shelf) pick(product, index int) (lane, at int, ok bool) {
	for lane := range s.lanes {
		for at, u := range s.lanes[lane] {
			if u.product == product && !u.opened {
				if index == 0 {
					return lane, at, true
				}
				index--
			}
		}
	}
	return 0, 0, false
}

// wrongLane is beside the right one mostly, and anywhere otherwise.
func (s *shelf) wrongLane(lane int) int {
	n := len(s.lanes)
	if s.happens(s.noise.Beside) {
		next := lane + 2*s.random.IntN(2) - 1
		if next < 0 || next >= n {
			next = 2*lane - next
		}
		return next
	}
	return (lane + 1 + s.random.IntN(n-1)) % n
}

// restock fills the lanes and returns how many units of each product came. Whoever does it also tidies up, mostly: what
// lies wrong goes home, what is no product and what is opened goes away.
func (s *shelf) restock() []int64 {
	s.tidyUp()
	return s.add(s.lacking())
}

func (s *shelf) tidyUp() {
	const tidy = 0.95
	for lane := range s.lanes {
		for at := len(s.lanes[lane]) - 1; at >= 0; at-- {
			u := s.lanes[lane][at]
			if u.product == lane && !u.opened || !s.happens(tidy) {
				continue
			}
			s.remove(lane, at)
			if u.product >= 0 && !u.opened {
				s.put(u.product, u)
			}
		}
	}
}

// lacking is how many units of each product fill its lane.
func (s *shelf) lacking() []int64 {
	list := make([]int64, len(s.lanes))
	for lane := range s.lanes {
		list[lane] = max(int64(s.perLane-len(s.lanes[lane])), 0)
	}
	return list
}

// add puts new units of each product into its lane, and returns their numbers.
func (s *shelf) add(units []int64) []int64 {
	for lane, n := range units {
		for range n {
			s.put(lane, s.newUnit(lane))
		}
	}
	return units
}

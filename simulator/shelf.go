package simulator

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// quantity is a number of units of one product.
type quantity struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
}

// byProduct adds up quantities and sorts them; nothing is left out but sums of 0.
func byProduct(list []quantity) []quantity {
	sums := make(map[int64]int64, len(list))
	for _, q := range list {
		sums[q.ProductID] += q.Quantity
	}
	return fromMap(sums)
}

func fromMap(sums map[int64]int64) []quantity {
	out := make([]quantity, 0, len(sums))
	for product, n := range sums {
		if n != 0 {
			out = append(out, quantity{product, n})
		}
	}
	slices.SortFunc(out, func(a, b quantity) int { return cmp.Compare(a.ProductID, b.ProductID) })
	return out
}

// shelf is what is physically in one cabinet.
type shelf struct {
	mu    sync.Mutex
	units map[int64]int64
}

func newShelf() *shelf { return &shelf{units: make(map[int64]int64)} }

func (s *shelf) add(list []quantity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range list {
		s.units[q.ProductID] += q.Quantity
	}
}

// take takes at most what is there, and returns what it took.
func (s *shelf) take(want []quantity) []quantity {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []quantity
	for _, q := range want {
		if n := min(q.Quantity, s.units[q.ProductID]); n > 0 {
			s.units[q.ProductID] -= n
			taken = append(taken, quantity{q.ProductID, n})
		}
	}
	return byProduct(taken)
}

// lacking says what fills the shelf up to capacity, where less than low is left of a product.
func (s *shelf) lacking(products []product, low, capacity int64) []quantity {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []quantity
	for _, p := range products {
		if n := s.units[p.ProductID]; n < low {
			list = append(list, quantity{p.ProductID, capacity - n})
		}
	}
	return list
}

func (s *shelf) content() map[int64]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.units)
}

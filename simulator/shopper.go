package simulator

import (
	"math/rand/v2"
	"time"
)

// Each part of a run has random numbers of its own, so that one doesn't disturb the other.
const (
	streamShoppers = 1
	streamFaults   = 2
	streamStaff    = 3
	streamDelivery = 4
	streamOperator = 5
	streamCabinets = 6
)

// shoppers is the crowd: who comes when, and to which cabinet.
type shoppers struct {
	rng      *rand.Rand
	products []product
}

func newShoppers(seed uint64, products []product) *shoppers {
	return &shoppers{
		rng:      rand.New(rand.NewPCG(seed, streamShoppers)), //nolint:gosec // not a secret
		products: products,
	}
}

// gap is the time until the next one comes: exponential, so that arrivals are a Poisson process of that many a second.
func (s *shoppers) gap(rate float64) time.Duration {
	return time.Duration(s.rng.ExpFloat64() / rate * float64(time.Second))
}

func (s *shoppers) cabinet(n int) int { return s.rng.IntN(n) }

// visit is who comes. What is taken is between the shopper and the shelf.
type visit struct {
	userID int64 // 0: the cabinet doesn't know who it was
	byApp  bool  // opens by the operator's app, where that works
	// imagined is a product that a camera thinks it saw leave, with little confidence; 0 for none.
	imagined int64
	took     time.Duration // from unlock to door-close
}

// next draws a visit: of a hundred, three stay unknown, and of three a camera isn't sure. One in ten of those who are known
// opens by the app.
func (s *shoppers) next() visit {
	v := visit{userID: 1 + s.rng.Int64N(5000), took: 4*time.Second + time.Duration(s.rng.Int64N(int64(30*time.Second)))}
	imagined := s.products[s.rng.IntN(len(s.products))].ProductID
	switch luck := s.rng.IntN(100); {
	case luck < 3:
		v.userID = 0
	case luck < 6:
		v.imagined = imagined
	}
	v.byApp = v.userID != 0 && s.rng.IntN(10) == 0
	return v
}

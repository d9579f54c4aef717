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
)

// shoppers is the crowd: who comes when, to which cabinet, and what they want.
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

// visit is what one shopper wants, and how well the cabinet saw it.
type visit struct {
	userID int64 // 0: the cabinet doesn't know who it was
	byApp  bool  // opens by the operator's app, where that works
	want   []quantity
	// doubtful is what the camera thought it saw leave, with little confidence. It was wrong: those units stayed.
	doubtful []quantity
	took     time.Duration // from unlock to door-close
}

// next draws a visit: mostly one to four products; of a hundred, eight take nothing, three stay unknown, and of three the
// camera isn't sure. One in ten of those who are known opens by the app.
func (s *shoppers) next() visit {
	v := visit{userID: 1 + s.rng.Int64N(5000), took: 4*time.Second + time.Duration(s.rng.Int64N(int64(30*time.Second)))}
	order, size := s.rng.Perm(len(s.products)), 1+s.rng.IntN(4)
	for _, i := range order[:min(size, len(order))] {
		v.want = append(v.want, quantity{s.products[i].ProductID, 1 + s.rng.Int64N(2)})
	}
	switch luck := s.rng.IntN(100); {
	case luck < 8:
		v.want = nil
	case luck < 11:
		v.userID = 0
	case luck < 14:
		v.doubtful = []quantity{{s.products[order[len(order)-1]].ProductID, 1}}
		if luck == 11 {
			v.want = nil
		}
	}
	v.byApp = v.userID != 0 && s.rng.IntN(10) == 0
	return v
}

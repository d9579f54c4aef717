package simulator

import (
	"math/rand/v2"
	"testing"
	"time"

	"doortab/services/servicestest"
	"doortab/simulator/physical"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

// eventually waits until the condition holds, and fails after ten seconds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s in vain for: %s", what)
		}
		<-tick.C
	}
}

// testCabinet is one of the kind whose sensors and people make no mistakes, filled up.
func testCabinet(kind physical.Kind) *physical.Cabinet {
	s := &Simulator{products: testProducts()}
	s.config.Noise = physical.Noise{TagReads: 1}
	goods := s.goods()
	goods.Kind = kind
	c := physical.NewCabinet(goods, rand.New(rand.NewPCG(1, 2)))
	c.Put(c.Lacking())
	return c
}

func testProducts() []product {
	list := catalogue()
	for i := range list {
		list[i].ProductID = int64(i + 1)
	}
	return list
}

package simulator

import (
	"testing"
	"time"

	"doortab/services/servicestest"
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

func testProducts() []product {
	list := catalogue()
	for i := range list {
		list[i].ProductID = int64(i + 1)
	}
	return list
}

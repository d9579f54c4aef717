package claims

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Beyond the hundred that have series of their own, one that lags isn't hidden by those that don't.
func TestPromotionsThatShareASeriesAddUp(t *testing.T) {
	t.Parallel()
	m := newMetrics(nil)
	for id := range int64(labelled) {
		m.waiting(id, 1, 1, time.Second)
	}
	m.waiting(1001, 1, 7, time.Minute)
	m.waiting(1001, 2, 2, time.Second)
	m.waiting(1002, 1, 0, 0)
	check := func(label string, entries, age float64) {
		t.Helper()
		if n, s := testutil.ToFloat64(m.pending.WithLabelValues(label)), testutil.ToFloat64(m.lag.WithLabelValues(label)); n != entries || s != age {
			t.Errorf("%s: %v waiting for %v s, want %v for %v", label, n, s, entries, age)
		}
	}
	check(others, 9, 60)
	check("0", 1, 1)
	m.writtenBack(1001, 1)
	check(others, 2, 1)
	m.forget(1001)
	check(others, 0, 0)
	m.forget(0)
	if n := testutil.CollectAndCount(m.pending); n != labelled {
		t.Errorf("%d series after one of %d promotions is forgotten", n, labelled+1)
	}
}

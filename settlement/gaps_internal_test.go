package settlement

import (
	"testing"
	"time"
)

// Gaps that can't be looked up wait on, although others have taken their room meanwhile.
func TestGapsThatArePutBackNeedNoRoom(t *testing.T) {
	t.Parallel()
	var g gaps
	noticed := time.Now()
	fill := func() (added int) {
		for g.add(gap{deviceID: 1001, first: int64(added), last: int64(added), noticedAt: noticed}) {
			added++
		}
		return added
	}
	count := func(due map[gap][]gap) (n int) {
		for _, list := range due {
			n += len(list)
		}
		return n
	}
	if n := fill(); n != maxGaps {
		t.Errorf("there is room for %d", n)
	}
	due := g.due(noticed.Add(time.Second))
	if n := fill(); n != maxGaps || count(due) != maxGaps {
		t.Errorf("%d are due and make room for %d", count(due), n)
	}
	for _, list := range due {
		g.putBack(list)
	}
	if n := fill(); n != 0 {
		t.Errorf("beyond that there is room for %d", n)
	}
	if n := count(g.due(noticed.Add(time.Second))); n != 2*maxGaps {
		t.Errorf("%d of %d are due again", n, 2*maxGaps)
	}
}

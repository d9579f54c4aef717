package settlement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"doortab/database"
)

const (
	// DefaultGapPatience is how long a missing event is waited for before anybody hears of it: a cabinet sends again after 10 s,
	// and once more 20 s later.
	DefaultGapPatience = time.Minute
	// maxGaps bounds what is waited for at one time.
	maxGaps = 1 << 16
	// gapLooksBack is how long before a gap was noticed its events may have been received: another process may have had them in
	// hand when the database was away.
	gapLooksBack = 10 * time.Minute
)

// gap is a run of events that a later one of their cabinet has overtaken: by another process, by a resend, or for ever.
type gap struct {
	deviceID    int64
	epoch       int
	first, last int64
	noticedAt   time.Time
}

// gaps are those that are waited for, in the order in which they were noticed.
type gaps struct {
	mu      sync.Mutex
	waiting []gap
}

// add tells whether there was room.
func (g *gaps) add(one gap) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) >= maxGaps {
		return false
	}
	g.waiting = append(g.waiting, one)
	return true
}

// putBack returns what due took out, also where others have filled its room meanwhile.
func (g *gaps) putBack(list []gap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, list...)
}

// due takes out what was noticed before a time, by cabinet and epoch.
func (g *gaps) due(before time.Time) map[gap][]gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	due := map[gap][]gap{}
	g.waiting = slices.DeleteFunc(g.waiting, func(w gap) bool {
		if !w.noticedAt.Before(before) {
			return false
		}
		of := gap{deviceID: w.deviceID, epoch: w.epoch}
		due[of] = append(due[of], w)
		return true
	})
	return due
}

// WatchGaps tells of events that are still missing when their time to come has passed, until ctx ends. What was noticed just
// before that is not told.
func (s *Service) WatchGaps(ctx context.Context) {
	ticker := time.NewTicker(s.gapPatience/4 + time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			s.tellGaps(ctx, now)
		}
	}
}

// tellGaps looks up what has waited for long enough. What can't be looked up now waits for the next time.
func (s *Service) tellGaps(ctx context.Context, now time.Time) {
	due := s.gaps.due(now.Add(-s.gapPatience))
	for _, of := range slices.SortedFunc(maps.Keys(due), func(a, b gap) int {
		return cmp.Or(cmp.Compare(a.deviceID, b.deviceID), cmp.Compare(a.epoch, b.epoch))
	}) {
		missing, err := stillMissing(ctx, s.db, due[of])
		if err != nil {
			s.log.Debug("Gaps can't be looked up; the next time tries again.", "device", of.deviceID, "error", err)
			s.gaps.putBack(due[of])
			continue
		}
		for _, m := range missing {
			s.tellGap(m)
		}
	}
}

func (s *Service) tellGap(g gap) {
	s.metrics.seqGaps.Inc()
	s.log.Warn("Events of a cabinet are missing.", "device", g.deviceID, "first", g.first, "last", g.last, "noticed", g.noticedAt)
}

// stillMissing lists, as runs, the events of some gaps of one cabinet that have not been settled.
func stillMissing(ctx context.Context, db *database.DB, list []gap) ([]gap, error) {
	list = joined(list)
	since := list[0].noticedAt
	for _, g := range list {
		if g.noticedAt.Before(since) {
			since = g.noticedAt
		}
	}
	var settled []int64
	err := db.Read(ctx).Raw(`SELECT seq FROM settlements WHERE device_id = ? AND received_at >= ? AND seq_epoch = ? AND seq BETWEEN ? AND ?`,
		list[0].deviceID, since.Add(-gapLooksBack), list[0].epoch, list[0].first, list[len(list)-1].last).Scan(&settled).Error
	if err != nil {
		return nil, fmt.Errorf("look for missing events of cabinet %d: %w", list[0].deviceID, err)
	}
	return without(list, settled), nil
}

// joined makes gaps that overlap one, in ascending order.
func joined(list []gap) (runs []gap) {
	for _, g := range slices.SortedFunc(slices.Values(list), func(a, b gap) int { return cmp.Compare(a.first, b.first) }) {
		if n := len(runs); n > 0 && g.first <= runs[n-1].last+1 {
			runs[n-1].last = max(runs[n-1].last, g.last)
			continue
		}
		runs = append(runs, g)
	}
	return runs
}

// without takes events that are there out of ascending gaps.
func without(list []gap, settled []int64) (left []gap) {
	slices.Sort(settled)
	for _, g := range list {
		at, _ := slices.BinarySearch(settled, g.first)
		for _, seq := range settled[at:] {
			if seq > g.last {
				break
			}
			if seq > g.first {
				before := g
				before.last = seq - 1
				left = append(left, before)
			}
			g.first = max(g.first, seq+1)
		}
		if g.first <= g.last {
			left = append(left, g)
		}
	}
	return left
}

package fleet

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	maxPending = 200_000
	boardBatch = 1000 // rows of one statement
)

// news is what a cabinet said at a time.
type news interface {
	from() (deviceID int64, at time.Time)
}

// latest holds the latest news of each cabinet until it is written.
type latest[T news] struct {
	mu      sync.Mutex
	pending map[int64]T
	dropped int
}

func newLatest[T news]() latest[T] { return latest[T]{pending: map[int64]T{}} }

func (l *latest[T]) offer(n T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(n)
}

func (l *latest[T]) keep(n T) {
	deviceID, at := n.from()
	old, waits := l.pending[deviceID]
	if waits {
		if _, was := old.from(); was.After(at) {
			return
		}
	} else if len(l.pending) >= maxPending {
		l.dropped++
		return
	}
	l.pending[deviceID] = n
}

// flush writes what waits, a batch to a statement, and keeps what could not be written.
func (l *latest[T]) flush(ctx context.Context, log *slog.Logger, write func(context.Context, []T) error) {
	waiting, dropped := l.take()
	if dropped > 0 {
		log.Warn("News of cabinets was dropped: too many devices at once.", "dropped", dropped)
	}
	for len(waiting) > 0 {
		n := min(len(waiting), boardBatch)
		if err := write(ctx, waiting[:n]); err != nil {
			log.Warn("News of cabinets can't be written; it is kept for the next try.", "waiting", len(waiting), "error", err)
			l.putBack(waiting)
			return
		}
		waiting = waiting[n:]
	}
}

// take returns what waits in ascending order, in which every process locks rows.
func (l *latest[T]) take() (waiting []T, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting = make([]T, 0, len(l.pending))
	for _, n := range l.pending {
		waiting = append(waiting, n)
	}
	dropped = l.dropped
	l.pending, l.dropped = map[int64]T{}, 0
	slices.SortFunc(waiting, func(x, y T) int {
		one, _ := x.from()
		other, _ := y.from()
		return cmp.Compare(one, other)
	})
	return waiting, dropped
}

// putBack keeps newer news that came meanwhile.
func (l *latest[T]) putBack(waiting []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range waiting {
		deviceID, _ := n.from()
		if _, newer := l.pending[deviceID]; !newer {
			l.keep(n)
		}
	}
}

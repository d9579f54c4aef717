package intake

import (
	"sync"
	"sync/atomic"
	"time"
)

// hand is what one worker has in hand, in Unix nanoseconds; 0: nothing.
type hand struct {
	begun    atomic.Int64 // when it took its group
	received atomic.Int64 // when the first message of the group came, which is its oldest
}

func (h *hand) take(group []Message) {
	h.received.Store(group[0].ReceivedAt.UnixNano())
	h.begun.Store(time.Now().UnixNano())
}

func (h *hand) finish() {
	h.begun.Store(0)
	h.received.Store(0)
}

// Stuck is how long the group that waits longest for the database has been waiting; 0 where
// none is.
func (i *Intake) Stuck() (longest time.Duration) {
	for n := range i.hands {
		longest = max(longest, age(i.hands[n].begun.Load()))
	}
	return longest
}

// Unsettled is how long ago the oldest message came that has no outcome yet; 0 where there is none.
func (i *Intake) Unsettled() (oldest time.Duration) {
	for n := range i.hands {
		oldest = max(oldest, age(i.hands[n].received.Load()))
	}
	return max(oldest, i.queues.oldest(), i.retries.arrived.oldest())
}

func age(since int64) time.Duration {
	if since == 0 {
		return 0
	}
	return max(0, time.Since(time.Unix(0, since)))
}

// arrivals are the times at which messages came, as many as are retried.
type arrivals struct {
	mu    sync.Mutex
	times map[int64]int // Unix nanoseconds, and how often
}

func (a *arrivals) add(at time.Time) (remove func()) {
	key := at.UnixNano()
	a.change(key, 1)
	return func() { a.change(key, -1) }
}

func (a *arrivals) change(key int64, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.times[key] += by; a.times[key] == 0 {
		delete(a.times, key)
	}
}

func (a *arrivals) oldest() (oldest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.times {
		oldest = max(oldest, age(key))
	}
	return oldest
}

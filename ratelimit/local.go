package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxKeys bounds the memory of a generation, of which there are two. Who is pushed out begins anew with a whole burst.
const maxKeys = 50_000

// local limits in this process alone. A key that was not used for as long as its burst takes to come back is as good as new,
// so whole generations of them are let go at once.
type local struct {
	limit Limit
	most  int

	mu       sync.Mutex
	begun    time.Time
	now, old map[string]*rate.Limiter
}

func newLocal(l Limit, most int) *local {
	return &local{limit: l, most: most, now: map[string]*rate.Limiter{}}
}

// allow counts a call, or tells how long it is too early.
func (l *local) allow(key string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := l.of(key, now).ReserveN(now, 1)
	if wait = call.DelayFrom(now); wait > 0 {
		call.CancelAt(now)
	}
	return wait
}

func (l *local) of(key string, now time.Time) *rate.Limiter {
	if len(l.now) >= l.most || now.Sub(l.begun) > l.limit.full() {
		l.now, l.old, l.begun = make(map[string]*rate.Limiter), l.now, now
	}
	limiter, known := l.now[key]
	if !known {
		limiter, known = l.old[key]
	}
	if !known {
		perSecond := float64(l.limit.Rate) / l.limit.Period.Seconds()
		limiter = rate.NewLimiter(rate.Limit(perSecond), l.limit.Burst)
	}
	l.now[key] = limiter
	return limiter
}

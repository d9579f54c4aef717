package intake

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queues holds the messages that wait, one queue for each worker by cabinet. A worker whose own is empty helps with another, but
// never with a cabinet that somebody has in hand: while there is little to do nobody waits for a worker, and while there is much
// each has large groups of cabinets of its own.
type queues struct {
	mu    sync.Mutex
	list  []queue
	room  int           // messages in one queue
	ready chan struct{} // one for each worker that should look again
}

type queue struct {
	waiting []Message // in order of arrival
	inHand  map[int64]struct{}
	chosen  bool // by a worker that is about to take a share of it
}

// share is what one worker has taken of a queue: messages of cabinets that are its alone until it gives them back.
type share struct {
	messages []Message
	of       *queue
}

func newQueues(workers, room int) *queues {
	q := &queues{list: make([]queue, workers), room: max(1, room/workers), ready: make(chan struct{}, workers)}
	for n := range q.list {
		q.list[n].inHand = map[int64]struct{}{}
	}
	return q
}

// put returns false where there is no room.
func (q *queues) put(m Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	in := &q.list[uint64(m.DeviceID)%uint64(len(q.list))] //nolint:gosec // any spread will do
	if len(in.waiting) >= q.room {
		return false
	}
	in.waiting = append(in.waiting, m)
	q.wake()
	return true
}

func (q *queues) wake() {
	select {
	case q.ready <- struct{}{}:
	default: // as many as there are workers will look already
	}
}

// choose waits for a queue with something to take, and keeps other workers from it until the caller takes its share, which has
// something for sure. The cabinets are those that it would get now. nil: ctx has ended.
func (q *queues) choose(ctx context.Context, worker, most int) (of *queue, cabinets []int64) {
	for ctx.Err() == nil {
		if of, cabinets = q.next(worker, most); of != nil {
			return of, cabinets
		}
		select {
		case <-ctx.Done():
		case <-q.ready:
		}
	}
	return nil, nil
}

func (q *queues) next(worker, most int) (of *queue, cabinets []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range q.list {
		of := &q.list[(worker+n)%len(q.list)]
		if of.chosen {
			continue
		}
		if count := of.ready(most, anyCabinet); count > 0 {
			of.chosen = true
			cabinets = make([]int64, count)
			for n := range cabinets {
				cabinets[n] = of.waiting[n].DeviceID
			}
			return of, cabinets
		}
	}
	return nil, nil
}

func anyCabinet(int64) bool { return true }

// take is the natural batch of a worker: what has queued up at the front of a queue that it has chosen, of cabinets that it may
// settle. It never waits for more.
func (q *queues) take(of *queue, most int, may func(deviceID int64) bool) share {
	q.mu.Lock()
	defer q.mu.Unlock()
	of.chosen = false
	s := share{of.cut(of.ready(most, may)), of}
	q.wakeFor(of)
	return s
}

// wakeFor has a worker look at what is left: who looked meanwhile found nothing to take.
func (q *queues) wakeFor(of *queue) {
	if len(of.waiting) > 0 {
		q.wake()
	}
}

// ready counts from the front until there is enough or a cabinet comes that is in somebody's hand.
func (q *queue) ready(most int, may func(deviceID int64) bool) int {
	count, size := 0, 0
	for ; count < min(most, len(q.waiting)) && size < maxGroupBytes; count++ {
		m := &q.waiting[count]
		if _, taken := q.inHand[m.DeviceID]; taken || !may(m.DeviceID) {
			break
		}
		size += len(m.Payload)
	}
	return count
}

func (q *queue) cut(count int) []Message {
	group := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	for n := range group {
		q.inHand[group[n].DeviceID] = struct{}{}
	}
	return group
}

// giveBack frees the cabinets of a share.
func (q *queues) giveBack(s share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range s.messages {
		delete(s.of.inHand, s.messages[n].DeviceID)
	}
	q.wakeFor(s.of)
}

// oldest is how long the message that waits longest has been waiting; 0 where none does.
func (q *queues) oldest() (oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range q.list {
		if waiting := q.list[n].waiting; len(waiting) > 0 {
			oldest = max(oldest, age(waiting[0].ReceivedAt.UnixNano()))
		}
	}
	return oldest
}

func (q *queues) depth() (waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range q.list {
		waiting += len(q.list[n].waiting)
	}
	return waiting
}

package intake

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"doortab/settlement"
)

func message(deviceID int64, name string) Message {
	return Message{Delivery: settlement.Delivery{DeviceID: deviceID, Topic: name, Payload: []byte("{}")}}
}

func names(s share) (list []string) {
	for n := range s.messages {
		list = append(list, s.messages[n].Topic)
	}
	return list
}

// Of two workers the first has the even cabinets and the second the odd ones.
func TestAnIdleWorkerHelpsWithCabinetsThatNobodyHasInHand(t *testing.T) {
	t.Parallel()
	q := newQueues(2, 100)
	expect := func(s share, want ...string) {
		t.Helper()
		if got := names(s); !slices.Equal(got, want) {
			t.Fatalf("took %v, want %v", got, want)
		}
	}
	q.put(message(2, "2a"))
	first := q.next(0, 10)
	expect(first, "2a")
	q.put(message(4, "4a"))
	q.put(message(2, "2b"))
	q.put(message(4, "4b"))
	second := q.next(1, 10)
	expect(second, "4a") // 2b would overtake 2a
	expect(q.next(1, 10))
	q.put(message(1, "1a"))
	q.giveBack(first)
	expect(q.next(0, 10), "2b") // its own before another's
	expect(q.next(1, 10), "1a")
	expect(q.next(0, 10))
	q.giveBack(second)
	expect(q.next(1, 10), "4b")
}

// Several workers on few cabinets: each message is taken once, those of a cabinet in order and never two at a time.
func TestManyWorkersShareFewCabinets(t *testing.T) {
	t.Parallel()
	const workers, cabinets, each = 8, 5, 400
	q := newQueues(workers, workers*cabinets*each)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	busy, taken, left := map[int64]bool{}, map[int64]int{}, cabinets*each
	note := func(s share) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range s.messages {
			if want := strconv.Itoa(taken[m.DeviceID]); m.Topic != want {
				t.Errorf("cabinet %d: %s came in the place of %s", m.DeviceID, m.Topic, want)
			}
			taken[m.DeviceID]++
			left--
		}
		for _, m := range slices.CompactFunc(s.messages, func(a, b Message) bool { return a.DeviceID == b.DeviceID }) {
			busy[m.DeviceID] = false
		}
		if left == 0 {
			cancel()
		}
	}
	seize := func(s share) {
		mu.Lock()
		defer mu.Unlock()
		mine := map[int64]bool{}
		for _, m := range s.messages {
			if busy[m.DeviceID] && !mine[m.DeviceID] {
				t.Errorf("two workers have cabinet %d in hand", m.DeviceID)
			}
			busy[m.DeviceID], mine[m.DeviceID] = true, true
		}
	}
	var crew sync.WaitGroup
	for worker := range workers {
		crew.Go(func() {
			for s := q.take(ctx, worker, 3); s.messages != nil; s = q.take(ctx, worker, 3) {
				seize(s)
				note(share{slices.Clone(s.messages), s.of})
				q.giveBack(s)
			}
		})
	}
	for n := range each {
		for cabinet := range int64(cabinets) {
			if !q.put(message(cabinet, fmt.Sprint(n))) {
				t.Error("no room")
			}
		}
	}
	crew.Wait()
	if left != 0 || q.depth() != 0 {
		t.Errorf("%d messages were not taken, %d wait", left, q.depth())
	}
}

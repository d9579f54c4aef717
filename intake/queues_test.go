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
	next := func(worker int) share {
		of, _ := q.next(worker, 10)
		if of == nil {
			return share{}
		}
		return q.take(of, 10, anyCabinet)
	}
	first := next(0)
	expect(first, "2a")
	q.put(message(4, "4a"))
	q.put(message(2, "2b"))
	q.put(message(4, "4b"))
	second := next(1)
	expect(second, "4a") // 2b would overtake 2a
	expect(next(1))
	q.put(message(1, "1a"))
	q.giveBack(first)
	expect(next(0), "2b") // its own before another's
	expect(next(1), "1a")
	expect(next(0))
	q.giveBack(second)
	expect(next(1), "4b")
}

// Who waits for its turn finds what came meanwhile, as far as the turn goes, and no other worker takes it away.
func TestAChosenQueueIsLeftToWhoChoseIt(t *testing.T) {
	t.Parallel()
	q := newQueues(2, 100)
	q.put(message(2, "2a"))
	of, cabinets := q.next(0, 10)
	if !slices.Equal(cabinets, []int64{2}) {
		t.Errorf("cabinets %v", cabinets)
	}
	for _, m := range []Message{message(2, "2b"), message(4, "4a"), message(2, "2c")} {
		q.put(m)
	}
	for len(q.ready) > 0 { // a helper is woken, and finds nothing
		<-q.ready
	}
	if other, _ := q.next(1, 10); other != nil {
		t.Error("two workers chose one queue")
	}
	if got := names(q.take(of, 10, func(id int64) bool { return id == 2 })); !slices.Equal(got, []string{"2a", "2b"}) {
		t.Errorf("took %v", got)
	}
	if len(q.ready) == 0 {
		t.Error("nobody is woken for what is left")
	}
	if other, cabinets := q.next(1, 10); other != of || !slices.Equal(cabinets, []int64{4}) {
		t.Errorf("a helper finds %v", cabinets)
	}
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
			for of, _ := q.choose(ctx, worker, 3); of != nil; of, _ = q.choose(ctx, worker, 3) {
				s := q.take(of, 3, anyCabinet)
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

package simulator

import (
	"maps"
	"math"
	"math/rand/v2"
	"sync"
)

// Fault is one kind of bad luck.
type Fault string

// The kinds of faults.
const (
	none             Fault = ""
	Duplicate        Fault = "duplicate"         // the same payload is sent again
	Simultaneous     Fault = "simultaneous"      // two connections send the same payload at one moment
	Reordered        Fault = "reordered"         // an event overtakes the one before it
	Delayed          Fault = "delayed"           // an event is sent seconds late
	Dropped          Fault = "dropped"           // the connection is cut while an event is on its way
	Garbage          Fault = "garbage"           // something that is no event of this cabinet is sent
	Changed          Fault = "changed"           // another content is sent under a settled event's id
	LateBurst        Fault = "late burst"        // several events are held back and then sent all at once
	Clock1970        Fault = "clock 1970"        // the cabinet believes that it is 1970
	Clock2099        Fault = "clock 2099"        // the cabinet believes that it is 2099
	RepeatedDelivery Fault = "repeated delivery" // staff send a restock again that was answered already
)

// Kinds lists all kinds of faults in the order in which the summary shows them.
func Kinds() []Fault { return append(doorFaults(), RepeatedDelivery) }

// doorFaults lists the kinds that befall door-close events.
func doorFaults() []Fault {
	return []Fault{
		Duplicate, Simultaneous, Reordered, Delayed, Dropped, Garbage, Changed, LateBurst, Clock1970, Clock2099,
	}
}

// weights say how often each kind comes, relative to the others.
func weight(f Fault) int {
	switch f {
	case Duplicate:
		return 30
	case Delayed, Garbage, Reordered:
		return 12
	case Simultaneous, Dropped, Changed:
		return 8
	default:
		return 4
	}
}

// plan decides which door-close event meets which fault.
type plan struct {
	chance float64 // that an event meets a fault at all
	rng    *rand.Rand
	kinds  []Fault
	n      int
}

// newPlan makes the plan of a level: one event of ten meets a fault at level 1, one of three at 2, four of five at 4.
func newPlan(level int, seed uint64) *plan {
	return &plan{
		chance: 1 - math.Pow(0.9, float64(level*level)),
		rng:    rand.New(rand.NewPCG(seed, streamFaults)), //nolint:gosec // bad luck, not a secret
		kinds:  doorFaults(),
	}
}

// next says what the next event meets. Every second event is given the next kind in turn that hasn't happened yet, until
// each has, so that a short run sees them all.
func (p *plan) next(happened func(Fault) bool) Fault {
	if p.chance == 0 {
		return none
	}
	drawn := p.draw()
	p.n++
	if turn := p.kinds[p.n/2%len(p.kinds)]; p.n%2 == 1 && !happened(turn) {
		return turn
	}
	return drawn
}

// draw uses the same number of random numbers whatever it draws.
func (p *plan) draw() Fault {
	luck, sum := p.rng.Float64(), 0
	for _, f := range p.kinds {
		sum += weight(f)
	}
	pick := p.rng.IntN(sum)
	if luck >= p.chance {
		return none
	}
	for _, f := range p.kinds {
		if pick -= weight(f); pick < 0 {
			return f
		}
	}
	return none
}

// tally counts the faults that really happened.
type tally struct {
	mu     sync.Mutex
	counts map[Fault]int64
}

func newTally() *tally {
	t := &tally{counts: make(map[Fault]int64)}
	for _, f := range Kinds() {
		t.counts[f] = 0
	}
	return t
}

func (t *tally) add(f Fault) {
	if f == none {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[f]++
}

func (t *tally) happened(f Fault) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[f] > 0
}

func (t *tally) all() map[Fault]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

func (t *tally) sum() (n int64) {
	for _, count := range t.all() {
		n += count
	}
	return n
}

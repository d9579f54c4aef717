package physical

import (
	"runtime"
	"sync"

	"doortab/cabinet"
)

// Report says how well the evidence served.
type Report struct {
	Kind    Kind
	Seed    uint64
	Doors   int // all of them
	Sales   int // doors of shoppers
	Settled int // orders that nobody looked at
	Wrong   int // settled orders that don't equal the truth
	Empty   int // doors that ended without an order and without a review
	Missed  int // of these, doors at which something was taken
	Reviews int // doors that a person must decide

	Restocks      int // doors of staff that were booked without a review
	RestocksWrong int // of these, ones that don't equal the truth

	StockRows  int   // products whose books were compared with the shelf, before each restock
	StockOff   int   // of these, ones that differ
	UnitsOff   int64 // by how many units in all
	UnitsOnAll int64 // units that lay there
}

// Mistake is a settled order that was wrong.
type Mistake struct {
	Event   *cabinet.Event
	Shelf   cabinet.Shelf
	Truth   map[int64]int64 // product to units
	Verdict cabinet.Verdict
}

// Measure simulates the doors and counts. The same Config gives the same Report.
func Measure(config Config) Report {
	config = config.withDefaults()
	cabinets := (config.Doors + doorsPerCabinet - 1) / doorsPerCabinet
	workers := config.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	m := &measuring{config: config, report: Report{Kind: config.Kind, Seed: config.Seed}, next: make(chan int)}
	var group sync.WaitGroup
	for range workers {
		group.Go(m.work)
	}
	for i := range cabinets {
		m.next <- i
	}
	close(m.next)
	group.Wait()
	return m.report
}

type measuring struct {
	config Config
	next   chan int
	mutex  sync.Mutex
	report Report // guarded by mutex
}

func (m *measuring) work() {
	for i := range m.next {
		doors := min(doorsPerCabinet, m.config.Doors-i*doorsPerCabinet)
		b := newBooks(m, i)
		for range doors {
			b.door()
		}
		m.mutex.Lock()
		m.report.add(b.report)
		done := m.report.Doors
		if m.config.Done != nil {
			m.config.Done(done)
		}
		m.mutex.Unlock()
	}
}

func (r *Report) add(o Report) {
	r.Doors += o.Doors
	r.Sales += o.Sales
	r.Settled += o.Settled
	r.Wrong += o.Wrong
	r.Empty += o.Empty
	r.Missed += o.Missed
	r.Reviews += o.Reviews
	r.Restocks += o.Restocks
	r.RestocksWrong += o.RestocksWrong
	r.StockRows += o.StockRows
	r.StockOff += o.StockOff
	r.UnitsOff += o.UnitsOff
	r.UnitsOnAll += o.UnitsOnAll
}

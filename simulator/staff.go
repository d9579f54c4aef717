package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

const (
	restockers = 2 // members of staff who work at one moment
	perLane    = 8 // units of a product that fit into a cabinet
	countsIn   = 6 // of so many visits one is a stock-take
)

// staff restock cabinets and take stock while shoppers use them.
type staff struct {
	api      *client
	fleet    []*device
	faults   *tally
	books    *books
	runID    string
	seed     uint64
	miscount float64       // share of lines that are typed or counted wrong by one
	gap      time.Duration // mean time between two visits of one member
	faulty   bool
	logger   *slog.Logger

	restocks, stocktakes atomic.Int64
	mu                   sync.Mutex
	papers               []paper
}

// work visits cabinets until open ends. What was begun goes on until finish ends.
func (s *staff) work(open, finish context.Context, worker int) {
	rng := rand.New(rand.NewPCG(s.seed, streamStaff+uint64(worker)<<8)) //nolint:gosec // not a secret
	for n := 1; pause(open, time.Duration(rng.ExpFloat64()*float64(s.gap))); n++ {
		key := fmt.Sprintf("%s-visit-%d-%d", s.runID, worker, n)
		if n%countsIn == 3 {
			s.count(finish, s.fleet[rng.IntN(len(s.fleet))], key, rng)
		} else {
			s.restock(finish, s.needy(rng), key, rng)
		}
	}
}

// stockUp fills what is low before the first shopper comes, and waits until it is on the books. Few doors at a time are
// unanswered, since a restock door is much more work than a sale. Where Doortab has fallen silent, shoppers come all the same.
func (s *staff) stockUp(ctx context.Context) {
	rng := rand.New(rand.NewPCG(s.seed, streamStaff+restockers<<8)) //nolint:gosec // not a secret
	for _, d := range s.fleet {
		if !d.low.Load() {
			continue
		}
		if !s.awaitReceipts(ctx, doorsAtOnce) {
			return
		}
		s.restock(ctx, d, fmt.Sprintf("%s-opening-%d", s.runID, d.id), rng)
	}
	s.awaitReceipts(ctx, 0)
}

const (
	doorsAtOnce = 64
	silence     = 10 * time.Second
)

// awaitReceipts waits until so many events are unanswered at most, and reports whether they are.
func (s *staff) awaitReceipts(ctx context.Context, most int64) bool {
	began := time.Now()
	for {
		switch c := s.books.sofar(); {
		case ctx.Err() != nil:
			return false
		case c.published-c.settled-c.review <= most:
			return true
		case time.Since(latest(began, s.books.lastReceipt())) > silence:
			return false
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// needy looks for a cabinet that is low on something, from a random one on; if there is none, it takes that one.
func (s *staff) needy(rng *rand.Rand) *device {
	start := rng.IntN(len(s.fleet))
	for i := range s.fleet {
		if d := s.fleet[(start+i)%len(s.fleet)]; d.low.Load() && d.free(time.Now()) {
			return d
		}
	}
	return s.fleet[start]
}

// restock fills a cabinet up. Where scales or antennas see what comes, its door reports it; else whoever brings it types it.
func (s *staff) restock(ctx context.Context, d *device, key string, rng *rand.Rand) {
	if !d.staffed.TryLock() {
		return
	}
	defer d.staffed.Unlock()
	brought := d.lacking()
	if len(brought) == 0 || !d.free(time.Now()) {
		return
	}
	if d.kind() != physical.KindItems {
		s.fill(d, brought)
		return
	}
	typed := fromMap(physical.Miscounted(brought, s.miscount, rng))
	if len(typed) == 0 || !s.bring(ctx, d, typed, key) {
		return
	}
	s.fill(d, brought)
	if s.faulty && (rng.IntN(8) == 0 || !s.faults.happened(RepeatedDelivery)) {
		s.bringAgain(ctx, d, typed, key)
	}
}

// fill puts the goods in and closes the door. What was typed in is booked already, so that its door reports nothing.
func (s *staff) fill(d *device, brought map[int64]int64) {
	now := time.Now()
	r, truth := d.use(cabinet.KindRestock, time.Minute, now, func(c *physical.Cabinet) physical.Door { return c.Restock(brought) })
	if d.kind() == physical.KindItems {
		r.Items, truth = []item{}, nil
	}
	s.restocks.Add(1)
	s.books.open(newEntry(r, d.kind(), 0, truth))
	d.post(&message{id: r.CloseEventID, payload: r.payload(), dueAt: now})
}

// bring reports whether Doortab took the delivery. Only then are the goods put in, so that book stock is not behind what
// shoppers can take.
func (s *staff) bring(ctx context.Context, d *device, list []quantity, key string) bool {
	return s.hand(ctx, paper{deviceID: d.id, what: "restock", lines: list, key: key}, restockCall(d.id, list, key))
}

// bringAgain repeats a delivery that was answered, as staff do whose phone lost the answer. No goods come with it.
func (s *staff) bringAgain(ctx context.Context, d *device, list []quantity, key string) {
	if err := s.api.do(ctx, restockCall(d.id, list, key)); err != nil {
		s.logger.Warn("A repeated restock was not answered as the first", "device", d.id, "error", err)
		return
	}
	s.faults.add(RepeatedDelivery)
}

func restockCall(deviceID int64, list []quantity, key string) call {
	return call{
		method: http.MethodPost, path: fmt.Sprintf("/v1/cabinets/%d/restocks", deviceID), key: key,
		body: map[string]any{"lines": list, "note": "refill"},
	}
}

// count takes stock of a cabinet as it is after its last door. Doortab can only take that once it has seen the event of
// that door.
func (s *staff) count(ctx context.Context, d *device, key string, rng *rand.Rand) {
	if !d.staffed.TryLock() {
		return
	}
	defer d.staffed.Unlock()
	units, seq := d.content()
	if seq == 0 {
		return
	}
	counted := physical.Miscounted(units, s.miscount, rng)
	p := paper{deviceID: d.id, what: "stocktake", asOfSeq: seq, key: key}
	var lines []map[string]int64
	for _, id := range slices.Sorted(maps.Keys(counted)) {
		p.lines = append(p.lines, quantity{id, counted[id]})
		lines = append(lines, map[string]int64{"productId": id, "counted": counted[id]})
	}
	if s.hand(ctx, p, call{
		method: http.MethodPost, path: fmt.Sprintf("/v1/cabinets/%d/stocktakes", d.id), key: key,
		body: map[string]any{"asOfSeq": seq, "lines": lines},
	}) {
		s.stocktakes.Add(1)
	}
}

// hand hands a paper in until Doortab takes or refuses it, and reports whether it took it. An event that Doortab has not
// seen yet is waited for.
func (s *staff) hand(ctx context.Context, p paper, c call) bool {
	c.into = &p
	for tries := 1; ; tries++ {
		err := s.api.do(ctx, c)
		refused, _ := errors.AsType[*refusal](err)
		switch {
		case err == nil:
			p.answered = true
			s.keep(p)
			return true
		case ctx.Err() != nil:
			s.keep(p)
			return false
		case refused == nil || refused.passes:
			s.logger.Debug("What staff handed in has no answer and is handed in again", "what", p.what, "device", p.deviceID, "error", err)
			pause(ctx, jitter(unseenPause)) // an answer that can't be read comes at once
		case p.asOfSeq > 0 && refused.status == http.StatusUnprocessableEntity:
			if tries == unseenTries || !pause(ctx, jitter(unseenPause)) {
				return false
			}
		default:
			s.logger.Warn("What staff handed in was refused", "what", p.what, "device", p.deviceID, "error", err)
			return false
		}
	}
}

// Staff wait so long between two tries, and try so often while Doortab has not seen an event that they have.
const (
	unseenTries = 25
	unseenPause = 200 * time.Millisecond
)

func (s *staff) keep(p paper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.papers = append(s.papers, p)
}

func (s *staff) handedIn() []paper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.papers)
}

// paper is a restock or a stock-take that was handed in by REST.
type paper struct {
	deviceID int64
	what     string // the kind of its movements
	asOfSeq  int64  // of a stock-take
	lines    []quantity
	key      string
	answered bool // else it may be on the books or not

	Movements []movementRow `json:"movements"` // as answered
}

func (p paper) String() string {
	return fmt.Sprintf("cabinet %d: the %s %q was never answered", p.deviceID, p.what, p.key)
}

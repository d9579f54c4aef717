package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"doortab/cabinet"
)

const (
	restockers = 2  // members of staff who work at one moment
	capacity   = 40 // units of each product that fit into a cabinet
	lowLevel   = 12 // below it, staff refill
)

// staff restock cabinets through REST while shoppers use them.
type staff struct {
	api      *client
	fleet    []*device
	products []product
	faults   *tally
	books    *books
	runID    string
	seed     uint64
	gap      time.Duration // mean time between two deliveries of one restocker
	faulty   bool
	logger   *slog.Logger

	restocks atomic.Int64
	mu       sync.Mutex
	open     []delivery // whose answer never came
}

// delivery is one restock that may be on the books or not.
type delivery struct {
	deviceID int64
	list     []quantity
	key      string
}

func (d delivery) String() string {
	return fmt.Sprintf("cabinet %d: the restock %q was never answered", d.deviceID, d.key)
}

// work restocks until open ends. What was begun goes on until finish ends.
func (s *staff) work(open, finish context.Context, worker int) {
	rng := rand.New(rand.NewPCG(s.seed, streamStaff+uint64(worker)<<8)) //nolint:gosec // not a secret
	for n := 1; pause(open, time.Duration(rng.ExpFloat64()*float64(s.gap))); n++ {
		d, list := s.needy(rng)
		if len(list) == 0 {
			continue
		}
		key := fmt.Sprintf("%s-restock-%d-%d", s.runID, worker, n)
		if !s.bring(finish, d, list, key) {
			continue
		}
		if s.faulty && (rng.IntN(8) == 0 || !s.faults.happened(RepeatedDelivery)) {
			s.bringAgain(finish, d, list, key)
		}
		s.closeDoor(d)
	}
}

// needy looks for a cabinet that is low on something, from a random one on; if there is none, it takes that one. The cabinet is
// filled up.
func (s *staff) needy(rng *rand.Rand) (*device, []quantity) {
	start := rng.IntN(len(s.fleet))
	for i := range s.fleet {
		d := s.fleet[(start+i)%len(s.fleet)]
		if len(d.shelf.lacking(s.products, lowLevel, capacity)) > 0 {
			return d, d.shelf.lacking(s.products, capacity, capacity)
		}
	}
	return s.fleet[start], s.fleet[start].shelf.lacking(s.products, capacity, capacity)
}

// bring reports whether Doortab took the delivery. Only then are the goods put in, so that book stock is never behind what
// shoppers can take.
func (s *staff) bring(ctx context.Context, d *device, list []quantity, key string) bool {
	req := restockCall(d.id, list, key)
	for {
		err := s.api.do(ctx, req)
		refused, _ := errors.AsType[*refusal](err)
		switch {
		case err == nil:
			d.shelf.add(list)
			s.restocks.Add(1)
			return true
		case ctx.Err() != nil:
			s.giveUp(delivery{d.id, list, key})
			return false
		case refused != nil && !refused.passes:
			s.logger.Warn("A restock was refused", "device", d.id, "error", err)
			return false
		}
	}
}

// bringAgain repeats a delivery that was answered, as staff do whose phone lost the answer. No goods come with it.
func (s *staff) bringAgain(ctx context.Context, d *device, list []quantity, key string) {
	if err := s.api.do(ctx, restockCall(d.id, list, key)); err != nil {
		s.logger.Warn("A repeated restock was not answered as the first", "device", d.id, "error", err)
		return
	}
	s.faults.add(RepeatedDelivery)
}

// closeDoor reports the door that staff used. What they brought was booked through REST already.
func (s *staff) closeDoor(d *device) {
	now := time.Now()
	r := d.report(cabinet.KindRestock, time.Minute, now)
	s.books.open(newEntry(r, 0, nil))
	d.post(&message{id: r.CloseEventID, payload: r.payload(), dueAt: now})
}

func (s *staff) giveUp(d delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, d)
}

func (s *staff) unanswered() []delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.open)
}

func restockCall(deviceID int64, list []quantity, key string) call {
	return call{
		method: http.MethodPost, path: fmt.Sprintf("/v1/cabinets/%d/restocks", deviceID), key: key,
		body: map[string]any{"lines": list, "note": "refill"},
	}
}

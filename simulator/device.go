package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

const (
	firstReconnect = 100 * time.Millisecond
	lastReconnect  = 5 * time.Second
	// maxWaiting is how many events of a cabinet may be unanswered; with more it opens no door, so that a fleet's load is
	// bounded by its size whatever Doortab can do.
	maxWaiting = 32
	// doorGap is the least time between two events of a cabinet: it has one door.
	doorGap = 100 * time.Millisecond
	// maxDials is how many cabinets connect at one moment.
	maxDials = 32
)

// surroundings are what all cabinets of the fleet have in common.
type surroundings struct {
	broker      endpoint
	runID       string
	first, last time.Duration // waits between resends
	books       *books
	faults      *tally
	dials       chan struct{} // a slot for each connection that is being made
	logger      *slog.Logger
}

// device is one cabinet: its goods, its outbox and its connection.
type device struct {
	*surroundings
	id      int64
	secret  string
	opening map[int64]balance // of each stock row when the run began

	staffed sync.Mutex  // one member of staff works on it at a time
	low     atomic.Bool // staff should fill it up

	inside sync.Mutex        // from the opening of the door until it has closed
	goods  *physical.Cabinet // guarded by inside

	mu     sync.Mutex
	seq    int64     // of the last event
	events int64     // of this run
	inUse  time.Time // until then somebody is at the door
	outbox outbox
	wake   chan struct{}
	link   *link // nil while there is none

	unlocks chan string // sessions

	handing sync.WaitGroup
}

// balance is book stock, and the number of the movement that made it so.
type balance struct{ stock, version int64 }

func newDevice(s *surroundings, id int64, goods *physical.Cabinet) *device {
	return &device{
		surroundings: s, id: id, goods: goods, opening: make(map[int64]balance),
		outbox: outbox{first: s.first, last: s.last}, wake: make(chan struct{}, 1),
		unlocks: make(chan string, 8),
	}
}

// report begins the report of a door that closes now. The id begins with the run's, so that it is new to Doortab.
func (d *device) report(kind cabinet.Kind, took time.Duration, now time.Time) *report {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	d.events++
	d.inUse = latest(d.inUse, now).Add(doorGap)
	now = now.UTC().Truncate(time.Millisecond)
	return &report{
		CloseEventID: fmt.Sprintf("%s-%d-%d", d.runID, d.id, d.events), DeviceID: d.id, Kind: kind,
		Seq: d.seq, BootID: d.runID, OpenedAt: now.Add(-took.Truncate(time.Millisecond)), ClosedAt: now,
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// free tells whether the door opens for the next one.
func (d *device) free(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.inUse.After(now) && d.outbox.waiting() < maxWaiting
}

// unanswered are the ids of what the outbox still holds.
func (d *device) unanswered() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outbox.unanswered()
}

// post puts messages into the outbox and sends what is due.
func (d *device) post(list ...*message) {
	d.mu.Lock()
	d.outbox.put(list...)
	d.mu.Unlock()
	d.stir()
}

func (d *device) stir() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *device) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outbox.waiting()
}

func (d *device) resends() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outbox.resends
}

func (d *device) hurry() {
	d.mu.Lock()
	d.outbox.hurry(time.Now(), rand.Float64)
	d.mu.Unlock()
	d.stir()
}

// onReceipt runs between the network and the keep-alive of the connection: it only notes.
func (d *device) onReceipt(payload []byte) {
	now := time.Now()
	id, conflict := d.books.note(d.id, payload, now)
	if id == "" {
		return
	}
	d.mu.Lock()
	d.outbox.answered(id, conflict, now)
	d.mu.Unlock()
	d.stir()
}

// run keeps the cabinet connected until ctx ends.
func (d *device) run(ctx context.Context) {
	defer d.handing.Wait()
	wait := firstReconnect
	for ctx.Err() == nil {
		l, err := d.connect(ctx, d.main())
		if err != nil {
			d.logger.Debug("A cabinet can't connect", "device", d.id, "error", err)
			pause(ctx, jitter(wait))
			wait = min(2*wait, lastReconnect)
			continue
		}
		wait = firstReconnect
		d.serve(ctx, l)
		pause(ctx, jitter(wait))
	}
}

func (d *device) connect(ctx context.Context, c linkConfig) (*link, error) {
	select {
	case d.dials <- struct{}{}:
		defer func() { <-d.dials }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return connect(ctx, d.broker, c, &d.handing)
}

func (d *device) main() linkConfig {
	return linkConfig{
		clientID: d.name(), user: d.name(), secret: d.secret,
		statusTopic: cabinet.StatusTopic(d.id), offline: d.status(false),
		hears: map[string]func([]byte){
			cabinet.ReceiptsTopic(d.id): d.onReceipt, cabinet.UnlockTopic(d.id): d.onUnlock,
		},
	}
}

func (d *device) name() string { return strconv.FormatInt(d.id, 10) }

func (d *device) status(online bool) []byte {
	text, err := json.Marshal(cabinet.Status{Online: online, BootID: d.runID})
	if err != nil {
		panic(fmt.Sprintf("write a status: %v", err)) // a bool and a string
	}
	return text
}

// serve sends what is due until the connection is lost or ctx ends.
func (d *device) serve(ctx context.Context, l *link) {
	defer l.close()
	d.online(l)
	defer d.online(nil)
	l.publish(cabinet.StatusTopic(d.id), true, d.status(true))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if next := d.sendDue(ctx, l); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			if token, sent := l.publish(cabinet.StatusTopic(d.id), true, d.status(false)); sent {
				token.WaitTimeout(goodbyeMillis * time.Millisecond)
			}
			return
		case <-l.lost:
			return
		case <-d.wake:
		case <-timer.C:
		}
	}
}

func (d *device) online(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = l
}

func (d *device) sendDue(ctx context.Context, l *link) (next time.Time) {
	d.mu.Lock()
	send, next := d.outbox.due(time.Now(), rand.Float64)
	d.mu.Unlock()
	for _, m := range send {
		if ctx.Err() != nil {
			return next
		}
		d.send(ctx, l, m)
	}
	return next
}

// send sends a message, at its first time with the fault that befalls it.
func (d *device) send(ctx context.Context, l *link, m *message) {
	if m.changed {
		d.books.change(eventKey{d.id, m.id})
	}
	fault := m.fault
	if m.tries > 1 {
		fault = none
	}
	switch fault {
	case Simultaneous:
		d.sendTwice(ctx, l, m)
	case Dropped:
		// Half of the cuts tear the message apart, half come after it.
		l.wire.Load().cutNext(0.5+0.5*float64(rand.IntN(2)), func() { d.faults.add(Dropped) }) //nolint:gosec // not a secret
		d.publish(l, m.payload)
	default:
		if d.publish(l, m.payload) {
			d.faults.add(fault)
		}
	}
}

// publish reports whether there was a connection to hand the payload to.
func (d *device) publish(l *link, payload []byte) bool {
	_, sent := l.publish(cabinet.DoorClosedTopic(d.id), false, payload)
	return sent
}

// sendTwice sends the message on two connections at one moment. A broker may allow a cabinet only one: then both copies go
// out on that one, or the second connection throws the first out.
func (d *device) sendTwice(ctx context.Context, l *link, m *message) {
	twin, err := d.connect(ctx, linkConfig{clientID: d.name() + "-b", user: d.name(), secret: d.secret})
	if err != nil {
		d.publish(l, m.payload)
		if d.publish(l, m.payload) {
			d.faults.add(Simultaneous)
		}
		return
	}
	var other sync.WaitGroup
	other.Go(func() {
		defer twin.close()
		if token, sent := twin.publish(cabinet.DoorClosedTopic(d.id), false, m.payload); sent {
			token.WaitTimeout(writeTimeout)
		}
	})
	d.publish(l, m.payload)
	other.Wait()
	d.faults.add(Simultaneous)
}

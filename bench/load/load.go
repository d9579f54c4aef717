// Package load plays a fleet of cabinets at an MQTT broker: it publishes door-close events of many over a few connections,
// waits for their receipts on one more, and publishes again what had none for too long, as each cabinet's outbox would.
//
// It takes as little of the machine as it can, since what it takes is missing to what it measures.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Event is one door-close event on its way.
type Event struct {
	Topic string
	// ID is its closeEventId, which the receipt names too.
	ID      string
	Payload []byte
}

// longestWait is what a cabinet's wait doubles up to.
const longestWait = 5 * time.Minute

// Config says where the fleet is and what it reports. All fields but Resend are needed.
type Config struct {
	// Address is the broker's host and port, which lets everybody in.
	Address string
	// Name is the beginning of the client ids.
	Name string
	// Senders is the number of connections that publish.
	Senders int
	// Receipts is the filter of all cabinets' receipts.
	Receipts string
	// Next makes the next event.
	Next func() (Event, error)
	// Resend is how long an event waits for its receipt before it is published again, 10 s where it is 0. It doubles each time,
	// up to 5 minutes.
	Resend time.Duration
}

// Load is a fleet that is connected. Its methods are for one goroutine.
type Load struct {
	Config
	senders  []*conn
	receipts *conn
	tasks    sync.WaitGroup
	broken   chan error
	freed    chan struct{}
	made     int
	checked  time.Time // when the outbox was looked through for a resend

	mu     sync.Mutex
	outbox map[string]*pending // by event id
	waits  []time.Duration     // from publishing to receipt, of events in order of their receipts
	count  Counts
}

// pending is an event without a receipt.
type pending struct {
	Event
	first, last time.Time // when it was published
	wait        time.Duration
	sender      *conn
}

// Counts is what happened since the fleet connected.
type Counts struct {
	// Answered is the events with a receipt, Resent what was published again for want of one, Odd the receipts that say
	// anything but that the event was settled.
	Answered, Resent, Odd int
	// Example is one of the odd receipts.
	Example string
}

// Open connects the fleet. Whoever gets it closes it.
func Open(ctx context.Context, c Config) (*Load, error) {
	if c.Resend == 0 {
		c.Resend = 10 * time.Second
	}
	l := &Load{Config: c, broken: make(chan error, c.Senders+1), freed: make(chan struct{}, 1), outbox: map[string]*pending{}}
	if err := l.connect(ctx); err != nil {
		l.Close()
		return nil, err
	}
	for _, sender := range l.senders {
		l.listen(sender, func([]byte) {})
	}
	l.listen(l.receipts, l.receive)
	return l, nil
}

func (l *Load) connect(ctx context.Context) (err error) {
	for n := range l.Senders {
		sender, err := dial(ctx, l.Address, Account{ClientID: fmt.Sprintf("%s-%d", l.Name, n)}, buffer)
		if err != nil {
			return err
		}
		l.senders = append(l.senders, sender)
	}
	if l.receipts, err = dial(ctx, l.Address, Account{ClientID: l.Name + "-receipts"}, buffer); err != nil {
		return err
	}
	return l.receipts.subscribe(l.Receipts)
}

func (l *Load) listen(c *conn, take func([]byte)) {
	l.tasks.Go(func() { l.broken <- c.listen(take) })
}

// Close ends the connections and waits for them.
func (l *Load) Close() {
	for _, c := range append(l.senders, l.receipts) {
		if c != nil {
			_ = c.Close()
		}
	}
	l.tasks.Wait()
}

// receive notes one receipt. A second one for an event that was published twice finds nothing in the outbox.
func (l *Load) receive(payload []byte) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	id := eventID(payload)
	p, open := l.outbox[string(id)]
	if !open {
		return
	}
	delete(l.outbox, p.ID)
	l.waits = append(l.waits, now.Sub(p.first))
	l.count.Answered++
	if !bytes.Contains(payload, []byte(`"outcome":"settled"`)) {
		l.count.Odd++
		l.count.Example = string(payload)
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// eventID reads the closeEventId, which stands first in a receipt.
func eventID(payload []byte) []byte {
	_, rest, _ := bytes.Cut(payload, []byte(`"closeEventId":"`))
	id, _, _ := bytes.Cut(rest, []byte{'"'})
	return id
}

// publish puts the next event into the outbox and the buffer of a connection.
func (l *Load) publish() error {
	event, err := l.Next()
	if err != nil {
		return err
	}
	now := time.Now()
	p := &pending{Event: event, first: now, last: now, wait: l.Resend, sender: l.senders[l.made%len(l.senders)]}
	l.made++
	l.mu.Lock()
	l.outbox[event.ID] = p
	l.mu.Unlock()
	return p.sender.publish(event.Topic, event.Payload, false)
}

func (l *Load) flush() error {
	var errs []error
	for _, sender := range l.senders {
		errs = append(errs, sender.flush())
	}
	return errors.Join(errs...)
}

// Waiting is the number of events without a receipt.
func (l *Load) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.outbox)
}

// Counts returns what happened so far.
func (l *Load) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// resend publishes again what has waited for too long, and keeps the senders' connections alive; it looks once a second.
func (l *Load) resend() error {
	now := time.Now()
	if now.Sub(l.checked) < time.Second {
		return nil
	}
	l.checked = now
	for _, p := range l.overdue(now) {
		if err := p.sender.publish(p.Topic, p.Payload, false); err != nil {
			return err
		}
	}
	var errs []error
	for _, sender := range l.senders {
		errs = append(errs, sender.ping())
	}
	return errors.Join(errs...)
}

func (l *Load) overdue(now time.Time) (list []*pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.outbox {
		if now.Sub(p.last) > p.wait {
			p.last, p.wait = now, min(2*p.wait, longestWait)
			list = append(list, p)
		}
	}
	l.count.Resent += len(list)
	return list
}

package mqtt

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
)

const (
	// maxBacklog is the most bytes that wait in memory for one peer, some thousands of receipts, and maxBacklogs for all.
	maxBacklog, maxBacklogs = 4 << 20, 256 << 20
	// chunk is the most bytes of one write: even a slow line takes them within brokerWriteTimeout.
	chunk = 16 << 10
)

var errBacklog = errors.New("mqtt: the peer does not read what it is sent: its connection is ended")

// outbox holds what the network has not yet taken from one connection. The broker writes under a lock that a publisher
// needs too, so that a write that waited for one cabinet would hold up the receipts of all.
type outbox struct {
	write func([]byte) (int, error) // bounded in time; ends the connection when it fails
	total *atomic.Int64             // bytes in all outboxes that share it
	// stuck is set once the peer has not read, or not acknowledged, for too long.
	stuck atomic.Bool

	// reuse keeps the last batch's memory for the next; without it an idle connection holds none.
	reuse bool

	mu       sync.Mutex
	pending  []byte
	spare    []byte
	held     int // bytes of pending and of the batch being written
	flushing bool
	closed   bool
	flushes  sync.WaitGroup
}

// put takes a copy of b, or returns errBacklog when too much waits already.
func (o *outbox) put(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errBacklog
	}
	if o.held+len(b) > maxBacklog || o.total.Load() > maxBacklogs {
		o.closed = true
		o.stuck.Store(true)
		return errBacklog
	}
	o.account(len(b))
	o.pending = append(o.pending, b...)
	if !o.flushing {
		o.flushing = true
		o.flushes.Go(o.flush)
	}
	return nil
}

func (o *outbox) account(bytes int) {
	o.held += bytes
	o.total.Add(int64(bytes))
}

// flush writes until nothing waits.
func (o *outbox) flush() {
	for batch := o.take(nil); len(batch) > 0; batch = o.take(batch) {
		o.send(batch)
	}
}

// take returns what waits, and takes back what was written.
func (o *outbox) take(written []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reuse && cap(written) > 0 && cap(written) <= chunk {
		o.spare = written[:0]
	}
	batch := o.pending
	o.pending, o.spare = o.spare, nil
	o.flushing = len(batch) > 0
	return batch
}

func (o *outbox) send(batch []byte) {
	for len(batch) > 0 {
		n, err := o.write(batch[:min(len(batch), chunk)])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.stuck.Store(true)
		}
		if err != nil {
			n = len(batch) // nobody will get the rest
		}
		batch = batch[n:]
		o.mu.Lock()
		o.account(-n)
		o.mu.Unlock()
	}
}

// close takes nothing more and waits until what was taken is written, or the connection closed.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.flushes.Wait()
}

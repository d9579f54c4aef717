package mqtt

import "sync"

type ackState int

const (
	// held: with the caller, or waiting for room there.
	held ackState = iota
	// retrying: deferred, still in the order of arrival.
	retrying
	// stepped: deferred, and later ones have gone past it.
	stepped
	// acknowledged: handed to the connection, or about to be in its turn.
	acknowledged
)

// ackQueue keeps the unacknowledged messages of one connection, and puts their acknowledgements into order of arrival. It
// ends with its connection: a packet id means nothing on the next one.
type ackQueue struct {
	messages int              // that may be open
	bytes    int              // that they may take
	send     func([]*Message) // in order of arrival
	progress func()

	mu        sync.Mutex
	order     []*Message
	ready     []*Message
	open      int
	openBytes int
	held      int
	sending   bool
	wake      chan struct{}
	room      chan struct{}
}

func newAckQueue(messages, bytes int, send func([]*Message), progress func()) *ackQueue {
	return &ackQueue{
		messages: messages, bytes: bytes, send: send, progress: progress, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// admit takes a message in. Whoever reads waits for room before.
func (q *ackQueue) admit(m *Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open++
	q.openBytes += len(m.Payload)
	q.held++
	q.order = append(q.order, m)
}

// awaitRoom is for one reader.
func (q *ackQueue) awaitRoom(shut <-chan struct{}) {
	for q.full() {
		select {
		case <-q.room:
		case <-shut:
			return
		}
	}
}

func (q *ackQueue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open >= q.messages || q.openBytes >= q.bytes
}

func (q *ackQueue) ack(m *Message) {
	q.mu.Lock()
	switch m.state {
	case acknowledged:
		q.mu.Unlock()
		return
	case held:
		q.held--
	case stepped:
		q.ready = append(q.ready, m)
	}
	m.state = acknowledged
	q.open--
	q.openBytes -= len(m.Payload)
	q.advance()
	q.mu.Unlock()
	signal(q.room)
	signal(q.wake)
}

func (q *ackQueue) deferred(m *Message) {
	q.mu.Lock()
	if m.state == held {
		m.state = retrying
		q.held--
		q.advance()
	}
	q.mu.Unlock()
	signal(q.wake)
}

// advance moves the head of the order past everything that is decided.
func (q *ackQueue) advance() {
	for len(q.order) > 0 {
		m := q.order[0]
		switch m.state {
		case held:
			return
		case retrying:
			m.state = stepped
		case acknowledged:
			q.ready = append(q.ready, m)
		}
		q.order[0] = nil
		q.order = q.order[1:]
	}
	q.order = nil
}

// run sends what is ready until the connection has ended.
func (q *ackQueue) run(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-q.wake:
		}
		for batch := q.take(); len(batch) > 0; batch = q.take() {
			q.send(batch)
		}
		q.progress()
	}
}

func (q *ackQueue) take() []*Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.ready
	q.ready = nil
	q.sending = len(batch) > 0
	return batch
}

// idle says that nothing is with the caller (deferred messages aside) and every acknowledgement has gone out.
func (q *ackQueue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held == 0 && len(q.ready) == 0 && !q.sending
}

func (q *ackQueue) unacknowledged() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

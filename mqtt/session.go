package mqtt

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// brokerWriteTimeout ends a connection whose peer does not read.
const brokerWriteTimeout = 5 * time.Second

// session is one connection at the broker, and what the rules must remember about it.
type session struct {
	*timedConn
	local bool
	// shut is closed with the connection.
	shut     chan struct{}
	shutOnce sync.Once
	// gone is closed when the broker has finished with the connection, its last will included.
	gone chan struct{}
	// welcome is called once, when the user is known or the connection over.
	welcome func()
	// out takes what is written to a cabinet.
	out *outbox
	// slots has an element for each message that waits in the server's queue for this client.
	slots       chan struct{}
	subscribing atomic.Bool
	// reserved is the room in the window taken for the publish in progress; only the connection's reader uses it.
	reserved int

	mu       sync.Mutex
	username string
	token    string
	known    bool
	inflight map[uint16]int
}

func newSession(c net.Conn, local bool, backlog *atomic.Int64) *session {
	s := &session{
		timedConn: newTimedConn(c, 16, brokerWriteTimeout), local: local,
		shut: make(chan struct{}), gone: make(chan struct{}), welcome: func() {},
		slots: make(chan struct{}, pendingWrites/2),
	}
	s.out = &outbox{write: s.timedConn.Write, total: backlog}
	s.failed = func(error) { s.markShut() }
	if local {
		s.inflight = make(map[uint16]int)
	}
	return s
}

func (s *session) kind() string {
	if s.local {
		return "local"
	}
	return "tcp"
}

func (s *session) markShut() { s.shutOnce.Do(func() { close(s.shut) }) }

// Close ends the connection, and with it every wait for it.
func (s *session) Close() error {
	s.markShut()
	return s.timedConn.Close()
}

func (s *session) isShut() bool {
	select {
	case <-s.shut:
		return true
	default:
		return false
	}
}

// Write hands what goes to an authenticated cabinet to its outbox, and ends the connection when that is full. The refusal of
// a CONNECT is written at once, as the end of the connection follows, and so is what goes to a local client, which reads.
func (s *session) Write(b []byte) (int, error) {
	if s.local || !s.identified() {
		return s.timedConn.Write(b)
	}
	err := s.out.put(b)
	if err != nil {
		_ = s.Close()
		return 0, err
	}
	return len(b), nil
}

func (s *session) identified() bool {
	_, _, known := s.identity()
	return known
}

// SetDeadline moves the deadline for reading alone: each write has its own.
func (s *session) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

func (s *session) identify(username, token string) {
	s.mu.Lock()
	s.username, s.token, s.known = username, token, true
	s.mu.Unlock()
	s.welcome()
}

func (s *session) identity() (username, token string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.username, s.token, s.known
}

// sent notes a message of QoS 1 on its way to a local client.
func (s *session) sent(id uint16, size int, window *admission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.inflight[id]; twice || s.inflight == nil {
		return
	}
	s.inflight[id] = size
	window.take(size)
}

// acknowledged frees the room of a message that a local client has acknowledged.
func (s *session) acknowledged(id uint16, window *admission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size, open := s.inflight[id]; open {
		delete(s.inflight, id)
		window.free(size)
	}
}

// settle frees the room that was reserved for the publish in progress.
func (s *session) settle(window *admission) {
	if s.reserved > 0 {
		window.free(s.reserved)
		s.reserved = 0
	}
}

// end frees everything the session holds.
func (s *session) end(window *admission) {
	s.settle(window)
	s.mu.Lock()
	for _, size := range s.inflight {
		window.free(size)
	}
	s.inflight = nil
	s.mu.Unlock()
	s.out.close()
	s.welcome()
	close(s.gone)
}

// pace waits until fewer messages than the server's queue holds wait for this client, since the server drops what does not
// fit. A local client that does not read is disconnected; the queue of a cabinet only moves them to its outbox.
func (s *session) pace() bool {
	select {
	case <-s.shut:
		return false
	case s.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(brokerWriteTimeout)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return true
	case <-s.shut:
	case <-timer.C:
		_ = s.Close()
	}
	return false
}

// written undoes pace.
func (s *session) written() {
	select {
	case <-s.slots:
	default:
	}
}

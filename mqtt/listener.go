package mqtt

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxConnect is the most bytes of a CONNECT packet, read before anybody is authenticated.
	maxConnect = 16 << 10
	// maxHandshakes is the most connections without a user at one moment; further ones wait in the kernel.
	maxHandshakes = 1024
)

// accept takes connections until the broker closes. Errors such as too many open files pass; the loop waits and goes on.
func (b *Broker) accept() error {
	handshakes := make(chan struct{}, maxHandshakes)
	pause := backoff{least: 5 * time.Millisecond, most: time.Second}
	for {
		select {
		case handshakes <- struct{}{}:
		case <-b.closing:
			return nil
		}
		conn, err := b.listener.Accept()
		if err == nil {
			pause.reset()
			b.greet(conn, sync.OnceFunc(func() { <-handshakes }))
			continue
		}
		<-handshakes
		if errors.Is(err, net.ErrClosed) {
			return b.closedListener(err)
		}
		b.log.Warn("Accepting an MQTT connection failed; trying again", "error", err)
		select {
		case <-time.After(pause.next()):
		case <-b.closing:
			return nil
		}
	}
}

func (b *Broker) closedListener(err error) error {
	select {
	case <-b.closing:
		return nil
	default:
		return err
	}
}

// greet serves a connection; welcome is called once its user is known or it is over.
func (b *Broker) greet(conn net.Conn, welcome func()) {
	if b.cfg.TLS != nil {
		conn = secured{tls.Server(conn, b.cfg.TLS)}
	}
	s := newSession(conn, false, &b.backlog)
	s.welcome = welcome
	if !b.spawn(func() { b.attend(s) }) {
		_ = conn.Close()
		welcome()
	}
}

// secured ends at once: a TLS connection would wait for its last words to be written, to a peer that may not read.
type secured struct{ *tls.Conn }

// Close ends the connection.
func (s secured) Close() error { return s.NetConn().Close() }

// opensWell says whether the first packet (MQTT 3.1.1, 2.2 and 3.1) comes in time and is a CONNECT of reasonable size. It
// consumes nothing, and the deadline for the packet stands until the connection is authenticated. Under TLS the handshake
// is part of that time.
func (s *session) opensWell(limit time.Duration) bool {
	end := time.Now().Add(limit)
	if c, encrypted := s.Conn.(secured); encrypted && (c.SetDeadline(end) != nil || c.Handshake() != nil) {
		return false
	}
	if s.SetReadDeadline(end) != nil {
		return false
	}
	first, err := s.reader.Peek(1)
	if err != nil || first[0] != 0x10 {
		return false
	}
	length := 0
	for i := range 3 { // three bytes hold up to 2 MiB
		head, err := s.reader.Peek(i + 2)
		if err != nil {
			return false
		}
		length |= int(head[i+1]&0x7f) << (7 * i)
		if head[i+1]&0x80 == 0 {
			return length <= maxConnect
		}
	}
	return false
}

package mqtt

import (
	"sync"
	"sync/atomic"
	"time"
)

// lastWords bounds how long the end of a connection waits for what was written before it.
const lastWords = 2 * time.Second

// gatheredConn is a client's connection. paho writes packet by packet; here those that come while the network takes the ones
// before leave together, so that under load a write carries many and costs neither side a turn of its own. It is not read while
// the client holds as much as it may.
type gatheredConn struct {
	*timedConn
	out   outbox
	bytes atomic.Int64
	// awaitRoom returns once there is room for a message, or the connection shut.
	awaitRoom func(shut <-chan struct{})
	shut      chan struct{}
	shutOnce  sync.Once
}

func newGatheredConn(c *timedConn, awaitRoom func(shut <-chan struct{})) *gatheredConn {
	g := &gatheredConn{timedConn: c, awaitRoom: awaitRoom, shut: make(chan struct{})}
	g.out = outbox{write: c.Write, total: &g.bytes, reuse: true}
	return g
}

// Read waits for room first.
func (g *gatheredConn) Read(b []byte) (int, error) {
	g.awaitRoom(g.shut)
	return g.timedConn.Read(b)
}

// Write returns at once. An error of the network comes to a later Write, and to failed.
func (g *gatheredConn) Write(b []byte) (int, error) {
	if err := g.out.put(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// SetWriteDeadline does nothing: each write to the network has its own.
func (*gatheredConn) SetWriteDeadline(time.Time) error { return nil }

// Close lets out what was written, DISCONNECT being the last of it, unless the network does not take it.
func (g *gatheredConn) Close() error {
	g.shutOnce.Do(func() { close(g.shut) })
	impatient := time.AfterFunc(lastWords, func() { _ = g.timedConn.Close() })
	g.out.close()
	impatient.Stop()
	return g.timedConn.Close()
}

package mqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrNotConnected is returned by Publish while there is no connection.
	ErrNotConnected = errors.New("mqtt: not connected to the broker")
	// ErrQueueFull is returned by Send while Config.SendQueue messages wait.
	ErrQueueFull = errors.New("mqtt: the queue of messages to send is full")
	// ErrClosed is returned by Send, and given to its done, once Run has ended.
	ErrClosed = errors.New("mqtt: the client has ended")
)

// Client consumes and publishes over one connection at a time, which it makes anew for ever. A Client runs once.
type Client struct {
	cfg  Config
	log  *slog.Logger
	dial func(context.Context) (net.Conn, error)

	started      atomic.Bool
	shareRefused sync.Once
	progress     chan struct{}
	stop         chan struct{}
	stopOnce     sync.Once
	done         chan struct{}
	sending      sending
	// tasks may outlive the connection they served by moments; Run waits for them.
	tasks sync.WaitGroup
	count counters

	mu       sync.Mutex
	link     *link
	linkUp   chan struct{}
	draining bool
}

type counters struct {
	connects, received, dropped, sent, givenUp atomic.Uint64
}

// Stats counts since New, and what is open now.
type Stats struct {
	// Connects counts connections that were made.
	Connects uint64
	// Received counts messages that arrived; Dropped those of QoS 0 that no handler had room for.
	Received, Dropped uint64
	// Sent counts messages of Send that the broker has acknowledged, GivenUp those that were not in time.
	Sent, GivenUp uint64
	// Unacknowledged is the messages received and not yet acknowledged, Queued those of Send without an outcome yet.
	Unacknowledged, Queued int
}

// New checks the configuration; it connects to nothing.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dial, err := dialer(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{
		cfg: cfg, log: cfg.Logger.With("mqtt_client", cfg.ClientID), dial: dial,
		progress: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		linkUp: make(chan struct{}), sending: newSending(cfg.SendQueue),
	}, nil
}

// Run connects and stays connected until ctx ends or Drain is done, and then returns nil. An unreachable broker is retried
// for ever, with a pause that doubles and is jittered. Only a second Run returns an error.
func (c *Client) Run(ctx context.Context) error {
	if !c.started.CompareAndSwap(false, true) {
		return errors.New("mqtt: this client has run already: make a new one")
	}
	defer close(c.done)
	defer c.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	endSending := c.startSenders(ctx)
	defer endSending()
	defer cancel()
	pause := backoff{least: c.cfg.MinBackoff, most: c.cfg.MaxBackoff}
	for {
		begin := time.Now()
		err := c.stayConnected(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if time.Since(begin) > c.cfg.MaxBackoff {
			pause.reset()
		}
		wait := pause.next()
		c.log.Warn("No connection to the MQTT broker; trying again", "error", err, "after", wait.Round(time.Millisecond))
		if !pauseFor(ctx, c.stop, wait) {
			return nil
		}
	}
}

// stayConnected lives through one connection; nil means an orderly end.
func (c *Client) stayConnected(ctx context.Context) error {
	l, err := openLink(ctx, c, c.subscriptions())
	if err != nil {
		return err
	}
	defer l.close()
	c.count.connects.Add(1)
	c.up(l)
	defer c.down()
	c.log.Info("Connected to the MQTT broker", "subscriptions", len(l.routes))
	if c.cfg.OnConnect != nil {
		c.cfg.OnConnect()
	}
	return l.wait(ctx, c.stop)
}

func (c *Client) subscriptions() []Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return nil
	}
	return c.cfg.Subscriptions
}

func (c *Client) up(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	close(c.linkUp)
}

func (c *Client) down() {
	c.mu.Lock()
	c.link = nil
	c.linkUp = make(chan struct{})
	c.mu.Unlock()
	signal(c.progress)
}

// current returns the link, or nil and what is closed once there is one.
func (c *Client) current() (*link, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.linkUp
}

// Connected says whether the client is connected and subscribed.
func (c *Client) Connected() bool {
	l, _ := c.current()
	return l != nil
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	s := Stats{
		Connects: c.count.connects.Load(), Received: c.count.received.Load(), Dropped: c.count.dropped.Load(),
		Sent: c.count.sent.Load(), GivenUp: c.count.givenUp.Load(), Queued: int(c.sending.open.Load()),
	}
	if l, _ := c.current(); l != nil {
		s.Unacknowledged = l.acks.unacknowledged()
	}
	return s
}

// Drain ends the client in order: no more intake, then it waits until every message that a handler has taken is
// acknowledged or deferred and every message of Send has its outcome, then it disconnects and Run returns. A caller that
// answers a message calls Send before Ack, so that Drain sees the answer; where another client sends it, that one's Drain
// comes second. When ctx ends first, the client disconnects all
// the same and the error says what was open.
func (c *Client) Drain(ctx context.Context) error {
	c.mu.Lock()
	c.draining = true
	l := c.link
	c.mu.Unlock()
	if l != nil {
		if err := l.stopIntake(ctx); err != nil {
			c.log.Warn("Unsubscribing failed; what still arrives is left to other workers", "error", err)
		}
	}
	err := c.settle(ctx)
	c.stopOnce.Do(func() { close(c.stop) })
	if !c.started.Load() {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	return err
}

func (c *Client) settle(ctx context.Context) error {
	for !c.idle() {
		select {
		case <-c.progress:
		case <-c.done:
			return nil
		case <-ctx.Done():
			s := c.Stats()
			return fmt.Errorf("mqtt drain: %d messages unacknowledged and %d unsent: %w", s.Unacknowledged, s.Queued, ctx.Err())
		}
	}
	return nil
}

func (c *Client) idle() bool {
	l, _ := c.current()
	return (l == nil || l.acks.idle()) && c.sending.open.Load() == 0
}

// backoff doubles its pause up to a most, and takes a random half to whole of it.
type backoff struct {
	least, most, pause time.Duration
}

func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, b.least), b.most)
	return b.pause/2 + rand.N(b.pause/2+1) //nolint:gosec // jitter is no secret
}

func (b *backoff) reset() { b.pause = 0 }

// pauseFor says whether the pause passed without ctx or stop ending it; stop may be nil.
func pauseFor(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

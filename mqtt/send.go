package mqtt

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// outgoing is a message of Send without an outcome yet.
type outgoing struct {
	topic   string
	payload []byte
	until   time.Time
	done    func(error)
}

type sending struct {
	queue chan outgoing
	open  atomic.Int64

	mu     sync.RWMutex
	closed bool
}

func newSending(queue int) sending { return sending{queue: make(chan outgoing, queue)} }

// Publish sends one message and, for QoS 1, waits for the broker's PUBACK, at most Config.Timeout. It does not retry: the
// error is ErrNotConnected without a connection, else what went wrong, and the broker may have got the message all the
// same. The payload must not be changed afterwards.
func (c *Client) Publish(ctx context.Context, topic string, payload []byte, qos byte, retain bool) error {
	l, _ := c.current()
	if l == nil {
		return ErrNotConnected
	}
	if err := l.publish(ctx, topic, payload, qos, retain); err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return nil
}

// Send queues a message of QoS 1, not retained, and returns at once, with ErrQueueFull or ErrClosed if it can't be taken.
// It is retried over lost connections for Config.SendFor; done, which may be nil, gets nil after the PUBACK or else the
// reason why it was given up, from a goroutine of the client that it must not hold up. Messages may overtake each other.
// The payload must not be changed afterwards.
func (c *Client) Send(topic string, payload []byte, done func(error)) error {
	c.sending.mu.RLock()
	defer c.sending.mu.RUnlock()
	if c.sending.closed {
		return ErrClosed
	}
	c.sending.open.Add(1)
	select {
	case c.sending.queue <- outgoing{topic, payload, time.Now().Add(c.cfg.SendFor), done}:
		return nil
	default:
		c.sending.open.Add(-1)
		return ErrQueueFull
	}
}

// startSenders returns what waits for the senders after ctx has ended, and gives up what is still queued.
func (c *Client) startSenders(ctx context.Context) (end func()) {
	var senders sync.WaitGroup
	for range c.cfg.Senders {
		senders.Go(func() { c.sendQueued(ctx) })
	}
	return func() {
		senders.Wait()
		c.sending.mu.Lock()
		c.sending.closed = true
		c.sending.mu.Unlock()
		for {
			select {
			case o := <-c.sending.queue:
				c.finish(o, ErrClosed)
			default:
				return
			}
		}
	}
}

func (c *Client) sendQueued(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-c.sending.queue:
			c.finish(o, c.sendOne(ctx, o))
		}
	}
}

// sendOne tries until the broker has it or its time is over.
func (c *Client) sendOne(ctx context.Context, o outgoing) error {
	ctx, cancel := context.WithDeadline(ctx, o.until)
	defer cancel()
	pause := backoff{least: 50 * time.Millisecond, most: time.Second}
	for {
		err := c.sendOnce(ctx, o)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !pauseFor(ctx, nil, pause.next()) {
			return fmt.Errorf("send to %s: given up: %w", o.topic, err)
		}
	}
}

func (c *Client) sendOnce(ctx context.Context, o outgoing) error {
	l, up := c.current()
	if l == nil {
		select {
		case <-up:
			l, _ = c.current()
		case <-ctx.Done():
		}
	}
	if l == nil {
		return ErrNotConnected
	}
	return l.publish(ctx, o.topic, o.payload, 1, false)
}

func (c *Client) finish(o outgoing, err error) {
	if err == nil {
		c.count.sent.Add(1)
	} else {
		c.count.givenUp.Add(1)
	}
	if o.done != nil {
		o.done(err)
	}
	c.sending.open.Add(-1)
	signal(c.progress)
}

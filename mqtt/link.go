package mqtt

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// refused is the return code of a SUBACK for a filter that the broker did not accept (MQTT 3.1.1, 3.9.3).
const refused = 0x80

// handOver bounds how long paho may take to accept a packet, which it does at once unless the connection is ending.
const handOver = 5 * time.Second

// readAhead is how many bytes one read from the broker takes, some dozens of events.
const readAhead = 32 << 10

// route is a subscription and the messages that its handler had no room for.
type route struct {
	Subscription
	levels []string
	parked []*Message
}

// link is one connection to the broker, from CONNECT to its end. Nothing of it outlives it but unacknowledged Messages,
// whose Ack then does nothing.
type link struct {
	client *Client
	conn   *gatheredConn
	wire   paho.Client
	acks   *ackQueue
	retry  chan struct{}
	lost   chan error
	ended  chan struct{}
	out    chan publication
	tasks  sync.WaitGroup

	mu       sync.Mutex
	routes   []*route
	draining bool
}

// openLink dials, connects and subscribes, all within Config.Timeout each.
func openLink(ctx context.Context, c *Client, subscriptions []Subscription) (*link, error) {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	conn, err := c.dial(dialCtx)
	if err != nil {
		return nil, fmt.Errorf("reach the broker: %w", err)
	}
	timed := newTimedConn(conn, readAhead, c.cfg.Timeout)
	l := &link{
		client: c, routes: newRoutes(subscriptions),
		retry: make(chan struct{}, 1), lost: make(chan error, 1), ended: make(chan struct{}),
		out: make(chan publication),
	}
	timed.failed = l.fail // paho keeps a connection that was closed on this side
	l.acks = newAckQueue(c.cfg.Window, c.cfg.WindowBytes, l.acknowledge, l.acked)
	l.conn = newGatheredConn(timed, l.acks.awaitRoom)
	l.wire = paho.NewClient(l.options())
	if err := await(ctx, l.wire.Connect(), c.cfg.Timeout); err != nil {
		_ = l.conn.Close()
		return nil, fmt.Errorf("connect to the broker as %q: %w", c.cfg.ClientID, err)
	}
	l.tasks.Go(func() { l.acks.run(l.ended) })
	l.tasks.Go(l.offerParked)
	c.tasks.Go(l.hand)
	if err := l.subscribe(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func newRoutes(subscriptions []Subscription) []*route {
	routes := make([]*route, len(subscriptions))
	for i, s := range subscriptions {
		routes[i] = &route{Subscription: s, levels: strings.Split(s.Filter, "/")}
	}
	return routes
}

func (l *link) options() *paho.ClientOptions {
	cfg := l.client.cfg
	o := paho.NewClientOptions().AddBroker("tcp://broker") // never dialled: the connection is there already
	o.CustomOpenConnectionFn = func(*url.URL, paho.ClientOptions) (net.Conn, error) { return l.conn, nil }
	o.SetProtocolVersion(4).SetClientID(cfg.ClientID).SetUsername(cfg.Username).SetPassword(cfg.Password)
	o.SetCleanSession(true).SetAutoReconnect(false).SetStore(noStore{})
	o.SetOrderMatters(true).SetAutoAckDisabled(true).SetDefaultPublishHandler(l.receive)
	o.SetKeepAlive(cfg.KeepAlive).SetPingTimeout(cfg.Timeout)
	o.SetConnectTimeout(cfg.Timeout).SetWriteTimeout(handOver)
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { l.fail(err) })
	return o
}

// subscribe asks for all filters in one packet, and again for the plain form of those shared ones that were refused.
func (l *link) subscribe(ctx context.Context) error {
	denied, err := l.request(ctx, l.routes)
	if err != nil || len(denied) == 0 {
		return err
	}
	for _, r := range denied {
		if r.Share == "" {
			return refusal(r)
		}
		r.Share = ""
	}
	l.client.shareRefused.Do(func() {
		l.client.log.Warn("The broker refuses shared subscriptions; every worker gets every message", "filter", denied[0].Filter)
	})
	denied, err = l.request(ctx, denied)
	if err == nil && len(denied) > 0 {
		err = refusal(denied[0])
	}
	return err
}

func refusal(r *route) error {
	return fmt.Errorf("subscribe %q: the broker refuses it: allow this client to read it", r.wire())
}

// request subscribes the routes and returns those that the broker refused.
func (l *link) request(ctx context.Context, routes []*route) ([]*route, error) {
	if len(routes) == 0 {
		return nil, nil
	}
	filters := make(map[string]byte, len(routes))
	for _, r := range routes {
		filters[r.wire()] = r.QoS
	}
	token := l.wire.SubscribeMultiple(filters, nil)
	if err := await(ctx, token, l.client.cfg.Timeout); err != nil {
		return nil, fmt.Errorf("subscribe %q: %w", routes[0].wire(), err)
	}
	granted := token.(*paho.SubscribeToken).Result()
	var denied []*route
	for _, r := range routes {
		if granted[r.wire()] >= refused {
			denied = append(denied, r)
		}
	}
	return denied, nil
}

// receive is called for every message, in order of arrival, between the network and the keep-alive.
func (l *link) receive(_ paho.Client, in paho.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return
	}
	l.client.count.received.Add(1)
	m := newMessage(in, l.client.cfg.MaxPayload, l.acks)
	r := l.routeOf(m.Topic)
	switch {
	case r == nil:
		in.Ack()
	case in.Qos() == 0:
		m.acks = nil
		if !r.Handle(m) {
			l.client.count.dropped.Add(1)
		}
	default:
		l.acks.admit(m)
		if len(r.parked) > 0 || !r.Handle(m) {
			r.parked = append(r.parked, m)
		}
	}
}

func (l *link) routeOf(topic string) *route {
	levels := strings.Split(topic, "/")
	for _, r := range l.routes {
		if matches(r.levels, levels) {
			return r
		}
	}
	return nil
}

// matches applies a topic filter as MQTT 3.1.1, 4.7 says.
func matches(filter, topic []string) bool {
	if len(topic[0]) > 0 && topic[0][0] == '$' && topic[0] != filter[0] {
		return false
	}
	for i, level := range filter {
		if level == "#" {
			return true
		}
		if i >= len(topic) || level != "+" && level != topic[i] {
			return false
		}
	}
	return len(filter) == len(topic)
}

// offerParked offers refused messages again whenever an acknowledgement shows that the caller got on, and every 50 ms.
func (l *link) offerParked() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-l.retry:
		case <-tick.C:
		}
		l.mu.Lock()
		for _, r := range l.routes {
			r.offer()
		}
		l.mu.Unlock()
	}
}

func (r *route) offer() {
	for len(r.parked) > 0 && r.Handle(r.parked[0]) {
		r.parked[0] = nil
		r.parked = r.parked[1:]
	}
	if len(r.parked) == 0 {
		r.parked = nil
	}
}

// acknowledge writes PUBACK packets (MQTT 3.1.1, 3.4), in one go: through paho each would pass four goroutines.
func (l *link) acknowledge(batch []*Message) {
	packets := make([]byte, 0, 4*len(batch))
	for _, m := range batch {
		packets = binary.BigEndian.AppendUint16(append(packets, 0x40, 2), m.id)
	}
	_, _ = l.conn.Write(packets) // where it fails the connection has ended, and with it what the ids mean
}

// acked is called after acknowledgements have gone out.
func (l *link) acked() {
	signal(l.retry)
	signal(l.client.progress)
}

// stopIntake refuses what still arrives, forgets what nobody has taken, and unsubscribes.
func (l *link) stopIntake(ctx context.Context) error {
	l.mu.Lock()
	l.draining = true
	filters := make([]string, len(l.routes))
	for i, r := range l.routes {
		filters[i] = r.wire()
		for _, m := range r.parked {
			m.Defer()
		}
		r.parked = nil
	}
	l.mu.Unlock()
	if len(filters) == 0 {
		return nil
	}
	return await(ctx, l.wire.Unsubscribe(filters...), l.client.cfg.Timeout)
}

// publication is a message on its way to paho, and where its token goes.
type publication struct {
	topic   string
	payload []byte
	qos     byte
	retain  bool
	token   chan paho.Token
}

// hand gives messages to paho one by one. paho may sit on one for up to handOver when the connection ends at that moment;
// then this task alone waits, not those who publish.
func (l *link) hand() {
	for {
		select {
		case <-l.ended:
			return
		case p := <-l.out:
			p.token <- l.wire.Publish(p.topic, p.qos, p.retain, p.payload)
		}
	}
}

// publish sends one message and for QoS 1 waits for its PUBACK. It watches for the end of the link too, since a token that
// paho makes while disconnecting never completes.
func (l *link) publish(ctx context.Context, topic string, payload []byte, qos byte, retain bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.client.cfg.Timeout, errTimeout)
	defer cancel()
	p := publication{topic, payload, qos, retain, make(chan paho.Token, 1)}
	select {
	case l.out <- p:
	case <-l.ended:
		return ErrNotConnected
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	token, err := untilEnd(ctx, l, p.token)
	if err != nil {
		return err
	}
	if _, err := untilEnd(ctx, l, token.Done()); err != nil {
		return err
	}
	return token.Error()
}

// untilEnd receives from c unless the link or ctx ends first.
func untilEnd[T any](ctx context.Context, l *link, c <-chan T) (T, error) {
	var zero T
	select {
	case v := <-c:
		return v, nil
	case <-l.ended:
		return zero, ErrNotConnected
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
}

// fail ends the link; wait returns the first reason.
func (l *link) fail(err error) {
	select {
	case l.lost <- err:
	default:
	}
}

// wait returns why the link is to end: nil for an orderly end.
func (l *link) wait(ctx context.Context, stop <-chan struct{}) error {
	select {
	case err := <-l.lost:
		return err
	case <-ctx.Done():
		return nil
	case <-stop:
		return nil
	}
}

// close says DISCONNECT if the connection still stands, and waits for the link's own tasks.
func (l *link) close() {
	close(l.ended)
	l.wire.Disconnect(uint(handOver.Milliseconds())) //nolint:gosec // a constant above 0
	_ = l.conn.Close()
	l.tasks.Wait()
}

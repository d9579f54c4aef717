package mqtt_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"doortab/mqtt"
	"doortab/services"
	"doortab/services/servicestest"
)

const patience = 15 * time.Second

func TestMain(m *testing.M) { servicestest.Main(m) }

// rig is a broker under test and how its worker and its cabinets reach it.
type rig struct {
	name   string
	root   string // the first level of every topic of the test
	url    string
	dial   func(context.Context) (net.Conn, error) // for the worker; nil means url
	kill   func()
	revive func()
	broker *mqtt.Broker
}

var roots atomic.Int64

func newRoot() string { return fmt.Sprintf("root%d", roots.Add(1)) }

// eachBroker runs a test on the embedded broker and on Mosquitto with its stock settings.
func eachBroker(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, embedded(t, nil))
	})
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		test(t, &rig{name: "mosquitto", root: newRoot(), url: servicestest.Mosquitto(t).URL()})
	})
}

// eachMortalBroker is eachBroker with brokers that may be killed.
func eachMortalBroker(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, mortalEmbedded(t))
	})
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		own := servicestest.Start(t, services.Options{Mosquitto: &services.MosquittoOptions{}}).Mosquitto
		test(t, &rig{
			name: "mosquitto", root: newRoot(), url: own.URL(),
			kill:   func() { check(t, own.Kill()) },
			revive: func() { check(t, own.Start(t.Context())) },
		})
	})
}

// testRules let user 1001 use <root>/1001/… with the secret "secret-1001" and client ids 1001 and 1001-….
func testRules() mqtt.BrokerConfig {
	own := func(user, topic string) bool {
		levels := strings.Split(topic, "/")
		return len(levels) == 3 && levels[1] == user && !strings.ContainsAny(topic, "+#$")
	}
	return mqtt.BrokerConfig{
		Listen:          "127.0.0.1:0",
		Authenticate:    func(user string, secret []byte) (string, bool) { return "1", string(secret) == "secret-"+user },
		StillValid:      func(string, string) bool { return true },
		ClientIDAllowed: func(user, id string) bool { return id == user || strings.HasPrefix(id, user+"-") },
		MayPublish:      own,
		MaySubscribe:    own,
		ClearRetain:     func(topic string) bool { return strings.HasSuffix(topic, "/door-closed") },
		Logger:          slog.New(slog.DiscardHandler),
	}
}

func embedded(t testing.TB, change func(*mqtt.BrokerConfig)) *rig {
	t.Helper()
	cfg := testRules()
	if change != nil {
		change(&cfg)
	}
	b := serve(t, cfg)
	return &rig{name: "embedded", root: newRoot(), url: "tcp://" + b.Addr().String(), dial: b.Dial, broker: b}
}

func serve(t testing.TB, cfg mqtt.BrokerConfig) *mqtt.Broker {
	t.Helper()
	b, err := mqtt.NewBroker(cfg)
	check(t, err)
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(context.Background()) }()
	t.Cleanup(func() {
		b.Close()
		check(t, await(t, ended))
	})
	return b
}

func mortalEmbedded(t *testing.T) *rig {
	t.Helper()
	r := &rig{name: "embedded", root: newRoot()}
	var current atomic.Pointer[mqtt.Broker]
	r.dial = func(ctx context.Context) (net.Conn, error) { return current.Load().Dial(ctx) }
	r.kill = func() { current.Load().Close() }
	r.revive = func() {
		current.Store(serve(t, testRules()))
		r.url = "tcp://" + current.Load().Addr().String()
	}
	r.revive()
	return r
}

func (r *rig) topic(device, kind string) string { return r.root + "/" + device + "/" + kind }

// worker is the configuration of a client that gets every door-closed message of the test.
func (r *rig) worker(id string, handle func(*mqtt.Message) bool) mqtt.Config {
	return mqtt.Config{
		URL: r.url, Dial: r.dial, ClientID: r.root + id, MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond,
		Subscriptions: []mqtt.Subscription{{Filter: r.root + "/+/door-closed", QoS: 1, Share: "doortab", Handle: handle}},
		Logger:        slog.New(slog.DiscardHandler),
	}
}

// run starts a client and ends it with the test.
func run(t testing.TB, cfg mqtt.Config) *mqtt.Client {
	t.Helper()
	c, stop := start(t, cfg)
	t.Cleanup(stop)
	eventually(t, "the client connects", c.Connected)
	return c
}

func start(t testing.TB, cfg mqtt.Config) (c *mqtt.Client, stop func()) {
	t.Helper()
	c, err := mqtt.New(cfg)
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, sync.OnceFunc(func() {
		cancel()
		check(t, await(t, ended))
	})
}

// inbox takes messages until it is full.
type inbox chan *mqtt.Message

func (i inbox) take(m *mqtt.Message) bool {
	select {
	case i <- m:
		return true
	default:
		return false
	}
}

// cabinet is a plain MQTT client.
type cabinet struct {
	paho.Client
	t testing.TB
}

func cabinetOptions(r *rig, user, id string) *paho.ClientOptions {
	o := paho.NewClientOptions().AddBroker(r.url).SetProtocolVersion(4).SetClientID(id).SetConnectTimeout(patience)
	return o.SetUsername(user).SetPassword("secret-" + user).SetAutoReconnect(false).SetKeepAlive(30 * time.Second)
}

func (r *rig) cabinet(t testing.TB, device string) *cabinet {
	t.Helper()
	o := cabinetOptions(r, device, device+"-"+r.root)
	if r.broker == nil && r.name == "mosquitto" {
		o.SetClientID(r.root + "-" + device)
	}
	return connectCabinet(t, o)
}

func connectCabinet(t testing.TB, o *paho.ClientOptions) *cabinet {
	t.Helper()
	c := &cabinet{paho.NewClient(o), t}
	check(t, done(c.Connect()))
	t.Cleanup(func() { c.Disconnect(100) })
	return c
}

func done(token paho.Token) error {
	if !token.WaitTimeout(patience) {
		return fmt.Errorf("no answer within %v", patience)
	}
	return token.Error()
}

func (c *cabinet) publish(topic, payload string) {
	c.t.Helper()
	check(c.t, done(c.Publish(topic, 1, false, payload)))
}

// listen subscribes a topic and returns what arrives.
func (c *cabinet) listen(topic string) chan string {
	c.t.Helper()
	got := make(chan string, 10_000)
	check(c.t, done(c.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) { got <- string(m.Payload()) })))
	return got
}

// tap is a worker's way to the broker that can be cut, and that notes the packet ids of PUBACKs in the order they go out.
type tap struct {
	to   func(context.Context) (net.Conn, error)
	slow time.Duration // before each write

	mu   sync.Mutex
	acks []uint16
	conn net.Conn
}

func tapOn(r *rig) *tap {
	if r.dial != nil {
		return &tap{to: r.dial}
	}
	address := strings.TrimPrefix(r.url, "tcp://")
	return &tap{to: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }}
}

func (p *tap) dial(ctx context.Context) (net.Conn, error) {
	c, err := p.to(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn, p.acks = c, nil
	return &tapped{Conn: c, tap: p}, nil
}

func (p *tap) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conn.Close()
}

func (p *tap) acked() []uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]uint16(nil), p.acks...)
}

type tapped struct {
	net.Conn
	tap *tap
	out []byte // the beginning of a packet whose end is not written yet
}

func (c *tapped) Write(b []byte) (int, error) {
	if c.tap.slow > 0 {
		<-time.After(c.tap.slow)
	}
	n, err := c.Conn.Write(b)
	c.note(b[:n])
	return n, err
}

func (c *tapped) note(b []byte) {
	c.out = append(c.out, b...)
	for rest := bytes.NewReader(c.out); ; c.out = c.out[len(c.out)-rest.Len():] {
		packet, err := packets.ReadPacket(rest)
		if err != nil {
			break
		}
		if ack, ok := packet.(*packets.PubackPacket); ok {
			c.tap.mu.Lock()
			c.tap.acks = append(c.tap.acks, ack.MessageID)
			c.tap.mu.Unlock()
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("nothing came within %v", patience)
		panic("unreachable")
	}
}

// eventually polls a condition that nothing signals.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-timer.C:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

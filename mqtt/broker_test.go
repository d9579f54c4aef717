package mqtt_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"doortab/mqtt"
)

func TestBrokerRefusesConnections(t *testing.T) {
	t.Parallel()
	r := embedded(t, nil)
	run(t, r.worker("w", make(inbox, 1).take))
	will := func(o *paho.ClientOptions, topic string) *paho.ClientOptions {
		return o.SetWill(topic, "gone", 1, true)
	}
	cases := map[string]struct {
		options *paho.ClientOptions
		code    byte // MQTT 3.1.1, 3.2.2.3
	}{
		"anonymous":             {cabinetOptions(r, "1001", "1001").SetUsername("").SetPassword(""), 5},
		"wrong secret":          {cabinetOptions(r, "1001", "1001").SetPassword("secret-1002"), 5},
		"another's client id":   {cabinetOptions(r, "1001", "1002"), 2},
		"longer number":         {cabinetOptions(r, "1001", "10012"), 2},
		"the worker's id":       {cabinetOptions(r, "1001", r.root+"w"), 2},
		"no client id":          {cabinetOptions(r, "1001", ""), 2},
		"will to another":       {will(cabinetOptions(r, "1001", "1001"), r.topic("1002", "status")), 5},
		"will to a wildcard":    {will(cabinetOptions(r, "1001", "1001"), r.root+"/+/status"), 5},
		"will to the receipts":  {will(cabinetOptions(r, "1001", "1001"), "receipts"), 5},
		"allowed":               {will(cabinetOptions(r, "1001", "1001"), r.topic("1001", "status")), 0},
		"allowed with a suffix": {cabinetOptions(r, "1001", "1001-b"), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := paho.NewClient(tc.options)
			defer c.Disconnect(100)
			token := c.Connect().(*paho.ConnectToken)
			err := done(token)
			if (err == nil) != (tc.code == 0) || token.ReturnCode() != tc.code {
				t.Errorf("return code %d and %v, want code %d", token.ReturnCode(), err, tc.code)
			}
		})
	}
}

func TestWorkerCannotBeThrownOffByACabinet(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.ClientIDAllowed = func(string, string) bool { return true } })
	worker := run(t, r.worker("w", make(inbox, 1).take))
	c := paho.NewClient(cabinetOptions(r, "1001", r.root+"w"))
	if done(c.Connect()) == nil {
		t.Error("a cabinet connected under the worker's client id")
	}
	if s := worker.Stats(); s.Connects != 1 || !worker.Connected() {
		t.Errorf("the worker was disturbed: %+v", s)
	}
}

func TestCabinetIsConfinedToItsTopics(t *testing.T) {
	t.Parallel()
	r := embedded(t, nil)
	got := make(inbox, 10)
	cfg := r.worker("w", got.take)
	cfg.Subscriptions[0] = mqtt.Subscription{Filter: "#", QoS: 1, Handle: got.take}
	run(t, cfg)
	c := r.cabinet(t, "1001")
	for _, topic := range []string{r.topic("1002", "door-closed"), "other", r.root + "/1001/a/b"} {
		c.publish(topic, "forged")
	}
	c.Publish("$SYS/x", 1, false, "forged") // the server drops it without an answer
	c.publish(r.topic("1001", "door-closed"), "own")
	if m := await(t, got); string(m.Payload) != "own" {
		t.Errorf("a message to %s got through", m.Topic)
	}
	for _, filter := range []string{"#", r.root + "/+/receipts", r.topic("1002", "receipts"), "$SYS/#", "$share/g/" + r.topic("1001", "receipts")} {
		token := c.Subscribe(filter, 1, nil).(*paho.SubscribeToken)
		if err := done(token); err != nil {
			continue
		}
		for _, code := range token.Result() {
			if code != 0x80 {
				t.Errorf("subscribed %s", filter)
			}
		}
	}
	if s := r.broker.Stats(); s.RefusedPublishes != 3 || s.RefusedSubscriptions != 5 {
		t.Errorf("counted %d publishes and %d subscriptions", s.RefusedPublishes, s.RefusedSubscriptions)
	}
}

func TestOversizePacketEndsOnlyItsConnection(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.MaxPacket = 100_000 })
	got := make(inbox, 1)
	run(t, r.worker("w", got.take))
	bad, good := r.cabinet(t, "1001"), r.cabinet(t, "1002")
	bad.Publish(r.topic("1001", "door-closed"), 1, false, strings.Repeat("x", 100_000))
	eventually(t, "the connection is closed", func() bool { return !bad.IsConnectionOpen() })
	good.publish(r.topic("1002", "door-closed"), strings.Repeat("x", 90_000))
	await(t, got).Ack()
	if s := r.broker.Stats(); s.Oversize != 1 {
		t.Errorf("counted %d", s.Oversize)
	}
}

func TestReplacedSecretEndsTheLiveConnection(t *testing.T) {
	t.Parallel()
	var version atomic.Value
	version.Store("1")
	r := embedded(t, func(c *mqtt.BrokerConfig) {
		c.Recheck = 10 * time.Millisecond
		c.StillValid = func(user, token string) bool { return user != "1001" || token == version.Load() }
	})
	old, other := r.cabinet(t, "1001"), r.cabinet(t, "1002")
	version.Store("2")
	eventually(t, "the connection ends", func() bool { return !old.IsConnectionOpen() })
	if !other.IsConnectionOpen() || r.broker.Stats().Revoked != 1 {
		t.Error("another cabinet was disturbed")
	}
}

func TestRetainIsClearedWhereTheRuleSaysSo(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.MaxRetained = 100 })
	c := r.cabinet(t, "1001")
	check(t, done(c.Publish(r.topic("1001", "door-closed"), 1, true, "event")))
	check(t, done(c.Publish(r.topic("1001", "telemetry"), 1, true, strings.Repeat("x", 101))))
	check(t, done(c.Publish(r.topic("1001", "status"), 1, true, "online")))
	const first = "the broker is done with the status"
	c.publish(r.topic("1001", "door"), first)
	got := make(inbox, 10)
	next := func() *mqtt.Message {
		m := await(t, got)
		if string(m.Payload) == first { // acknowledged, and passed on only after the subscription
			m = await(t, got)
		}
		return m
	}
	cfg := r.worker("w", got.take)
	cfg.Subscriptions[0] = mqtt.Subscription{Filter: r.root + "/#", QoS: 1, Handle: got.take}
	run(t, cfg)
	c.publish(r.topic("1001", "door"), "last")
	if m := next(); string(m.Payload) != "online" || !m.Retained {
		t.Errorf("kept: %s", m.Topic)
	}
	if m := next(); string(m.Payload) != "last" {
		t.Errorf("kept: %s", m.Topic)
	}
}

// A cabinet that comes back on a new connection must not be shown as offline by the last will of its old one.
func TestTakeoverSendsTheOldWillFirst(t *testing.T) {
	t.Parallel()
	r := embedded(t, nil)
	got := make(inbox, 10)
	cfg := r.worker("w", got.take)
	cfg.Subscriptions[0] = mqtt.Subscription{Filter: r.root + "/+/status", Handle: got.take}
	run(t, cfg)
	for i := range 5 {
		o := cabinetOptions(r, "1001", "1001").SetWill(r.topic("1001", "status"), fmt.Sprint("offline ", i), 1, true)
		c := connectCabinet(t, o)
		c.publish(r.topic("1001", "status"), fmt.Sprint("online ", i))
		if i > 0 {
			if m := await(t, got); string(m.Payload) != fmt.Sprint("offline ", i-1) {
				t.Fatalf("first came %q", m.Payload)
			}
		}
		if m := await(t, got); string(m.Payload) != fmt.Sprint("online ", i) {
			t.Fatalf("then came %q", m.Payload)
		}
	}
}

// A worker that dies must not take its part of the window along.
func TestWindowIsFreeAfterTheWorkerIsGone(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.Window = 5 })
	c := r.cabinet(t, "1001")
	for range 3 {
		got := make(inbox, 10)
		_, stop := start(t, r.worker("w", got.take))
		eventually(t, "five messages arrive", func() bool {
			if len(got) < 5 {
				c.Publish(r.topic("1001", "door-closed"), 1, false, "x")
			}
			return len(got) == 5
		})
		stop()
		eventually(t, "the broker has let the worker go", func() bool { return r.broker.Stats().Clients == 1 })
	}
}

// keepStatuses returns once the broker keeps them all: it has acknowledged the last.
func keepStatuses(t *testing.T, r *rig, cabinets int) {
	t.Helper()
	seed := run(t, mqtt.Config{Dial: r.dial, ClientID: "seed", Logger: slog.New(slog.DiscardHandler)})
	for i := range cabinets {
		qos := byte(i / (cabinets - 1))
		check(t, seed.Publish(t.Context(), r.topic(fmt.Sprint(i), "status"), []byte("online"), qos, true))
	}
}

func TestStatusesOfAFleetReachTheWorkerWhole(t *testing.T) {
	t.Parallel()
	const cabinets = 5000
	r := embedded(t, nil)
	keepStatuses(t, r, cabinets)
	var seen atomic.Int64
	var topics sync.Map // the last may come twice: as it is kept, and as it is passed on
	client := run(t, mqtt.Config{
		Dial: r.dial, ClientID: "status", Logger: slog.New(slog.DiscardHandler),
		Subscriptions: []mqtt.Subscription{{Filter: r.root + "/+/status", Handle: func(m *mqtt.Message) bool {
			if _, again := topics.LoadOrStore(m.Topic, true); !again {
				seen.Add(1)
			}
			return true
		}}},
	})
	eventually(t, "every status arrives", func() bool { return seen.Load() == cabinets })
	if d := client.Stats().Dropped + r.broker.Stats().Dropped; d != 0 {
		t.Errorf("%d dropped", d)
	}
}

// What is still to be delivered to a worker that is gone must hold up nobody.
func TestWorkerThatLeavesAmidDeliveryIsForgotten(t *testing.T) {
	t.Parallel()
	r := embedded(t, nil)
	keepStatuses(t, r, 3000)
	conn, err := r.dial(t.Context())
	check(t, err)
	for _, packet := range [][]byte{
		{0x10, 13, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 1, 'x'},
		append(append([]byte{0x82, byte(len(r.root) + 14), 0, 1, 0, byte(len(r.root) + 9)}, r.root+"/+/status"...), 0),
	} {
		_, err := conn.Write(packet)
		check(t, err)
		_, err = io.ReadFull(conn, make([]byte, 4)) // CONNACK, and the beginning of SUBACK
		check(t, err)
	}
	check(t, conn.Close())
	eventually(t, "the broker has let it go", func() bool { return r.broker.Stats().Clients == 1 })
}

func TestBrokerDoesNotWaitForSilentOrSlowPeers(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.Handshake = 100 * time.Millisecond })
	for name, first := range map[string][]byte{
		"silence":       nil,
		"not a CONNECT": {0x30, 2, 0, 0},
		"huge CONNECT":  {0x10, 0xff, 0xff, 0x7f},
		"endless size":  {0x10, 0xff, 0xff, 0xff, 0xff},
		"MQTT 5":        append([]byte{0x10, 17, 0, 4}, append([]byte("MQTT"), 5, 0xc2, 0, 60, 0, 0, 0, 0, 1, '1', 0, 1, 's')...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", r.broker.Addr().String())
			check(t, err)
			defer conn.Close()
			_, err = conn.Write(first)
			check(t, err)
			check(t, conn.SetReadDeadline(time.Now().Add(patience)))
			if answer, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") || len(answer) > 5 && answer[0] != 0x20 {
				t.Errorf("answered % x, %v", answer, err)
			}
		})
	}
}

func TestBrokerConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mqtt.BrokerConfig){
		"no rule":     func(c *mqtt.BrokerConfig) { c.StillValid = nil },
		"big window":  func(c *mqtt.BrokerConfig) { c.Window = 1 << 16 },
		"bad address": func(c *mqtt.BrokerConfig) { c.Listen = "nowhere" },
	} {
		cfg := testRules()
		change(&cfg)
		if b, err := mqtt.NewBroker(cfg); err == nil {
			b.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/mqtt"
)

// eventKey names an event.
type eventKey struct {
	deviceID int64
	id       string
}

// sale is an event that took some of one product.
func sale(deviceID int64, id string, productID, quantity int64) []byte {
	return event(deviceID, id, fmt.Sprintf(`[{"productId":%d,"quantity":%d}]`, productID, quantity))
}

func event(deviceID int64, id, items string) []byte {
	return fmt.Appendf(nil, `{"closeEventId":%q,"deviceId":%d,"userId":42,"closedAt":%q,"items":%s}`,
		id, deviceID, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), items)
}

// cabinets is one MQTT connection that speaks for cabinets and keeps the receipts it hears.
type cabinets struct {
	t      *testing.T
	client *mqtt.Client

	mu       sync.Mutex
	receipts map[eventKey][]heard
}

// heard is a receipt as it came.
type heard struct {
	cabinet.Receipt
	at time.Time
}

// connection says how cabinets connect; zero: to a broker that lets everybody in, for all cabinets.
type connection struct {
	url, clientID, user, password string
	deaf                          bool // hears no receipts
	hears                         []mqtt.Subscription
}

func connect(t *testing.T, c connection) *cabinets {
	t.Helper()
	conn := &cabinets{t: t, receipts: map[eventKey][]heard{}}
	config := mqtt.Config{
		URL: c.url, ClientID: c.clientID, Username: c.user, Password: c.password, Timeout: 5 * time.Second,
		MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, SendFor: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
	}
	if !c.deaf {
		filter := "v1/cabinets/+/receipts"
		if c.user != "" {
			filter = "v1/cabinets/" + c.user + "/receipts"
		}
		config.Subscriptions = []mqtt.Subscription{{Filter: filter, QoS: 1, Handle: conn.hear}}
	}
	config.Subscriptions = append(config.Subscriptions, c.hears...)
	client, err := mqtt.New(config)
	if err != nil {
		t.Fatal(err)
	}
	conn.client = client
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx) }) // fails only where it ran before
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	eventually(t, 20*time.Second, "connected as "+c.clientID, client.Connected)
	return conn
}

// connectCabinet is the connection of one cabinet to an embedded broker.
func connectCabinet(t *testing.T, url string, deviceID int64, secret string) *cabinets {
	t.Helper()
	name := strconv.FormatInt(deviceID, 10)
	return connect(t, connection{url: url, clientID: name, user: name, password: secret})
}

func (c *cabinets) hear(m *mqtt.Message) bool {
	var r heard
	if err := json.Unmarshal(m.Payload, &r.Receipt); err != nil {
		c.t.Errorf("receipt %s: %v", m.Payload, err)
	}
	r.at = time.Now()
	c.mu.Lock()
	key := eventKey{r.DeviceID, r.CloseEventID}
	c.receipts[key] = append(c.receipts[key], r)
	c.mu.Unlock()
	m.Ack()
	return true
}

func (c *cabinets) heard(key eventKey) []heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]heard(nil), c.receipts[key]...)
}

// answered counts events with a receipt.
func (c *cabinets) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.receipts)
}

// publish sends an event and waits for the broker to have it.
func (c *cabinets) publish(deviceID int64, payload []byte) {
	c.t.Helper()
	if err := c.client.Publish(c.t.Context(), cabinet.DoorClosedTopic(deviceID), payload, 1, false); err != nil {
		c.t.Error(err)
	}
}

// receipt waits for the first receipt of an event.
func (c *cabinets) receipt(deviceID int64, id string, within time.Duration) heard {
	c.t.Helper()
	var all []heard
	eventually(c.t, within, fmt.Sprintf("receipt of %d/%s", deviceID, id), func() bool {
		all = c.heard(eventKey{deviceID, id})
		return len(all) > 0
	})
	return all[0]
}

// sameReceipts checks that an event's receipts differ in nothing but duplicate.
func sameReceipts(t *testing.T, all []heard) (firsts int) {
	t.Helper()
	want := ""
	for _, r := range all {
		if !r.Duplicate {
			firsts++
		}
		r.Duplicate = false
		text, err := json.Marshal(r.Receipt)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(text)
		}
		if string(text) != want {
			t.Errorf("two receipts of one event differ:\n%s\n%s", want, text)
		}
	}
	return firsts
}

// outbox is what cabinets do with events: keep each, and send it again until it has a receipt (R2).
type outbox struct {
	*cabinets
	resend time.Duration

	mu      sync.Mutex
	waiting map[eventKey]*posted
	all     map[eventKey]*posted
	stop    context.CancelFunc
	done    sync.WaitGroup
}

type posted struct {
	payload  []byte
	at, last time.Time
	sending  bool // the broker doesn't have it yet
}

func newOutbox(c *cabinets, resend time.Duration) *outbox {
	ctx, stop := context.WithCancel(context.Background())
	o := &outbox{cabinets: c, resend: resend, waiting: map[eventKey]*posted{}, all: map[eventKey]*posted{}, stop: stop}
	o.done.Go(func() { o.run(ctx) })
	c.t.Cleanup(func() {
		stop()
		o.done.Wait()
	})
	return o
}

func (o *outbox) run(ctx context.Context) {
	tick := time.NewTicker(o.resend / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			o.sendAgain(now)
		}
	}
}

func (o *outbox) sendAgain(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, p := range o.waiting {
		switch {
		case len(o.heard(key)) > 0:
			delete(o.waiting, key)
		case !p.sending && now.Sub(p.last) >= o.resend:
			p.last = now
			o.send(key.deviceID, p)
		}
	}
}

// send is called with the lock held. An event waits in the client's queue once at most.
func (o *outbox) send(deviceID int64, p *posted) {
	p.sending = true
	err := o.client.Send(cabinet.DoorClosedTopic(deviceID), p.payload, func(error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		p.sending = false
	})
	if err != nil {
		o.t.Error(err)
	}
}

func (o *outbox) post(deviceID int64, id string, payload []byte) {
	now := time.Now()
	p := &posted{payload: payload, at: now, last: now}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[eventKey{deviceID, id}], o.all[eventKey{deviceID, id}] = p, p
	o.send(deviceID, p)
}

// load posts sales at a steady rate over so many cabinets until stop is called, which returns their number.
func (o *outbox) load(perSecond, devices int) (stop func() int) {
	ctx, cancel := context.WithCancel(o.t.Context())
	posted := make(chan int, 1)
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				posted <- n
				return
			case <-tick.C:
			}
			device, id := firstDevice+int64(n%devices), fmt.Sprintf("load-%d", n)
			o.post(device, id, sale(device, id, int64(n%products)+1, int64(n%3)+1))
		}
	}()
	return func() int {
		cancel()
		return <-posted
	}
}

// drain waits until each event has its receipt.
func (o *outbox) drain(within time.Duration) {
	o.t.Helper()
	left := 0
	eventually(o.t, within, "every event has a receipt", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		left = len(o.waiting)
		return left == 0
	})
}

// longest is the longest wait of an event for its first receipt.
func (o *outbox) longest() (longest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, p := range o.all {
		if all := o.heard(key); len(all) > 0 {
			longest = max(longest, all[0].at.Sub(p.at))
		}
	}
	return longest
}

// consistent checks the receipts of all events, and that each tells of an order.
func (o *outbox) consistent() {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.all {
		all := o.heard(key)
		sameReceipts(o.t, all)
		if len(all) == 0 || all[0].Outcome != cabinet.Settled || all[0].OrderID == "" {
			o.t.Errorf("%v: receipts %v, want an order", key, all)
		}
	}
}

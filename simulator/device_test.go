package simulator

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"doortab/cabinet"
	"doortab/services"
	"doortab/services/servicestest"
	"doortab/simulator/physical"
)

// listener hears what one cabinet publishes.
type listener struct {
	client paho.Client
	mu     sync.Mutex
	doors  []string
	status []string
	opened []string // what it says of unlocks
}

func listen(t *testing.T, url string, deviceID int64) *listener {
	t.Helper()
	l := &listener{}
	o := paho.NewClientOptions().AddBroker(url).SetClientID("listener-" + t.Name()).SetAutoReconnect(false)
	l.client = paho.NewClient(o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	keep := func(list *[]string) paho.MessageHandler {
		return func(_ paho.Client, m paho.Message) {
			l.mu.Lock()
			defer l.mu.Unlock()
			*list = append(*list, string(m.Payload()))
		}
	}
	for _, token := range []func() paho.Token{
		l.client.Connect,
		func() paho.Token { return l.client.Subscribe(cabinet.DoorClosedTopic(deviceID), 1, keep(&l.doors)) },
		func() paho.Token { return l.client.Subscribe(cabinet.StatusTopic(deviceID), 1, keep(&l.status)) },
		func() paho.Token { return l.client.Subscribe(cabinet.DoorTopic(deviceID), 1, keep(&l.opened)) },
	} {
		if err := finished(ctx, token()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { l.client.Disconnect(100) })
	return l
}

func (l *listener) heard(payload string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.doors {
		if p == payload {
			n++
		}
	}
	return n
}

func (l *listener) saidOf(sessionID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.opened, func(p string) bool {
		r, err := cabinet.DecodeDoorReport([]byte(p))
		return err == nil && r == cabinet.DoorReport{SessionID: sessionID, State: cabinet.DoorOpened}
	})
}

func (l *listener) lastStatus() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.status) == 0 {
		return ""
	}
	return l.status[len(l.status)-1]
}

func (l *listener) answer(t *testing.T, r cabinet.Receipt) {
	t.Helper()
	if !l.client.Publish(cabinet.ReceiptsTopic(r.DeviceID), 1, false, receipt(t, r)).WaitTimeout(5 * time.Second) {
		t.Fatal("the receipt wasn't taken by the broker")
	}
}

// startDevice runs a cabinet until the test ends; stop may end it before.
func startDevice(t *testing.T, url string, id int64) (d *device, stop func()) {
	t.Helper()
	broker, err := parseBroker(url)
	if err != nil {
		t.Fatal(err)
	}
	d = newDevice(&surroundings{
		broker: broker, runID: "run", first: 100 * time.Millisecond, last: 200 * time.Millisecond,
		books: newBooks(), faults: newTally(), dials: make(chan struct{}, maxDials),
		logger: slog.New(slog.DiscardHandler),
	}, id, testCabinet(physical.KindItems))
	d.secret = "secret"
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { d.run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return d, stop
}

func postEvent(d *device, id string, fault Fault) {
	key := eventKey{d.id, id}
	d.books.open(&entry{key: key})
	d.post(&message{id: id, payload: []byte(id), fault: fault, dueAt: time.Now()})
}

func TestACabinetResendsUntilTheReceipt(t *testing.T) {
	t.Parallel()
	url := servicestest.Mosquitto(t).URL()
	l := listen(t, url, 2001)
	d, stop := startDevice(t, url, 2001)
	postEvent(d, "e1", none)
	eventually(t, "the event is sent three times", func() bool { return l.heard("e1") >= 3 })
	l.answer(t, cabinet.Receipt{CloseEventID: "e1", DeviceID: 2001, Outcome: cabinet.Empty})
	eventually(t, "the outbox is empty", func() bool { return d.waiting() == 0 })
	if c := d.books.sofar(); c.settled != 1 || d.resends() < 2 {
		t.Errorf("counted %+v and %d resends", c, d.resends())
	}
	eventually(t, "the cabinet is online", func() bool { return l.lastStatus() == `{"online":true,"bootId":"run"}` })
	stop()
	eventually(t, "the cabinet says goodbye", func() bool { return l.lastStatus() == `{"online":false,"bootId":"run"}` })
}

func TestFaultsOfTheConnection(t *testing.T) {
	t.Parallel()
	url := servicestest.Mosquitto(t).URL()
	l := listen(t, url, 2002)
	d, _ := startDevice(t, url, 2002)
	postEvent(d, "cut", Dropped)
	eventually(t, "the connection was cut and the event sent again on the next", func() bool {
		return d.faults.happened(Dropped) && l.heard("cut") >= 1
	})
	eventually(t, "the last will says that the cabinet was gone", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, s := range l.status {
			if s == `{"online":false,"bootId":"run"}` {
				return true
			}
		}
		return false
	})
	postEvent(d, "twice", Simultaneous)
	eventually(t, "two copies are sent", func() bool { return d.faults.happened(Simultaneous) && l.heard("twice") >= 2 })
}

func TestALostConnectionHoldsNothingUp(t *testing.T) {
	t.Parallel()
	url := servicestest.Mosquitto(t).URL()
	l := listen(t, url, 2004)
	d, _ := startDevice(t, url, 2004)
	ids := strings.Fields("a b c d e f g h i j")
	for _, id := range ids {
		postEvent(d, id, Dropped)
	}
	eventually(t, "events go out although each of them cuts the connection once", func() bool {
		for _, id := range ids {
			if l.heard(id) == 0 {
				return false
			}
		}
		return true
	})
}

func TestTwoConnectionsWhereTheBrokerAllowsOne(t *testing.T) {
	t.Parallel()
	tests := map[string]services.MosquittoOptions{
		"a cabinet's user name is its client id": {
			Users: map[string]string{"2003": "secret"}, Lines: []string{"use_username_as_clientid true"},
		},
		"a second connection is refused": {Lines: []string{"max_connections 1"}},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := servicestest.Start(t, services.Options{Mosquitto: &options}).Mosquitto
			d, _ := startDevice(t, broker.URL(), 2003)
			postEvent(d, "twice", Simultaneous)
			eventually(t, "both copies went out all the same", func() bool { return d.faults.happened(Simultaneous) })
		})
	}
}

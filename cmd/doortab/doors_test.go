package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/mqtt"
)

// doorCabinet is a cabinet that hears unlocks, and leaves to the test what it makes of them.
type doorCabinet struct {
	*cabinets
	id int64

	mu      sync.Mutex
	unlocks []unlock
}

type unlock struct {
	SessionID, CloseEventID, Kind string
	ExpiresAt                     time.Time
	retained                      bool
}

func connectDoor(t *testing.T, url string, deviceID int64, secret string) *doorCabinet {
	t.Helper()
	d := &doorCabinet{id: deviceID}
	name := strconv.FormatInt(deviceID, 10)
	d.cabinets = connect(t, connection{url: url, clientID: name, user: name, password: secret, hears: []mqtt.Subscription{{
		Filter: cabinet.UnlockTopic(deviceID), QoS: 0, Handle: func(m *mqtt.Message) bool {
			u := unlock{retained: m.Retained}
			if err := json.Unmarshal(m.Payload, &u); err != nil {
				t.Errorf("unlock %s: %v", m.Payload, err)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.unlocks = append(d.unlocks, u)
			return true
		},
	}}})
	return d
}

func (d *doorCabinet) told() []unlock {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.unlocks)
}

func (d *doorCabinet) say(topic string, retain bool, format string, args ...any) {
	d.t.Helper()
	if err := d.client.Publish(d.t.Context(), topic, fmt.Appendf(nil, format, args...), 1, retain); err != nil {
		d.t.Error(err)
	}
}

func (d *doorCabinet) answer(u unlock, state string) {
	d.t.Helper()
	d.say(cabinet.DoorTopic(d.id), false, `{"sessionId":%q,"state":%q,"at":"2026-11-30T10:00:00Z"}`, u.SessionID, state)
}

// doorSession is what REST says of one.
type doorSession struct {
	SessionID, CloseEventID, State string
	Receipt                        *cabinet.Receipt
}

// doorTest is one cabinet and the REST API that opens it.
type doorTest struct {
	*installation
	url     string
	cabinet *doorCabinet
	opened  int
}

func (d *doorTest) open(want int) (s doorSession) {
	d.t.Helper()
	d.client.do("POST", d.url+"/v1/door-sessions", fmt.Sprintf(`{"deviceId":%d,"userId":42}`, d.cabinet.id), want, &s)
	if want == 201 {
		d.opened++
	}
	return s
}

// unlocked opens, and waits for the cabinet to hear of it.
func (d *doorTest) unlocked() unlock {
	d.t.Helper()
	s := d.open(201)
	eventually(d.t, 10*time.Second, "the cabinet hears that it may open", func() bool { return len(d.cabinet.told()) >= d.opened })
	u := d.cabinet.told()[d.opened-1]
	if u.SessionID != s.SessionID || u.CloseEventID != s.CloseEventID || u.Kind != "sale" || u.retained || time.Until(u.ExpiresAt) <= 0 {
		d.t.Errorf("told %+v, answered %+v", u, s)
	}
	return u
}

func (d *doorTest) becomes(u unlock, state string) (s doorSession) {
	d.t.Helper()
	eventually(d.t, 20*time.Second, "the session is "+state, func() bool {
		d.client.get(d.url+"/v1/door-sessions/"+u.SessionID, &s)
		return s.State == state
	})
	return s
}

func (d *doorTest) isOnline(online bool) {
	d.t.Helper()
	d.cabinet.say(cabinet.StatusTopic(d.cabinet.id), true, `{"online":%t,"bootId":"b"}`, online)
	eventually(d.t, 10*time.Second, fmt.Sprint("online is ", online), func() bool {
		var c struct{ Online bool }
		d.client.get(fmt.Sprintf("%s/v1/cabinets/%d", d.url, d.cabinet.id), &c)
		return c.Online == online
	})
}

// A door from the shopper's tap to the receipt, on the embedded broker, and on another one that two processes share.
func TestDoorSessions(t *testing.T) {
	t.Parallel()
	t.Run("embedded broker", func(t *testing.T) {
		t.Parallel()
		in := newInstallation(t, 1)
		s := in.serve()
		testDoors(&doorTest{in, s.http, connectDoor(t, s.mqtt, firstDevice, in.secret(firstDevice)), 0})
	})
	t.Run("two processes on Mosquitto", func(t *testing.T) {
		t.Parallel()
		in, broker := newInstallation(t, 1), mosquitto(t)
		in.serve("--mqtt-url=" + broker.URL())
		s := in.serve("--mqtt-url=" + broker.URL())
		testDoors(&doorTest{in, s.http, connectDoor(t, broker.URL(), firstDevice, ""), 0})
	})
}

func testDoors(d *doorTest) {
	d.t.Helper()
	d.open(409) // nobody has heard of the cabinet
	d.isOnline(true)

	u := d.unlocked()
	d.open(409) // it has one
	d.cabinet.answer(u, "opened")
	d.becomes(u, "open")
	d.cabinet.publish(d.cabinet.id, saleOf(d.cabinet.id, u.CloseEventID, `"items":[{"productId":3,"quantity":2}]`))
	r := d.cabinet.receipt(d.cabinet.id, u.CloseEventID, 10*time.Second)
	s := d.becomes(u, "closed")
	if r.Outcome != cabinet.Settled || r.TotalMinor != 600 || s.Receipt == nil || s.Receipt.OrderID != r.OrderID {
		d.t.Errorf("cabinet heard %+v, REST says %+v", r, s.Receipt)
	}
	if n := d.count("SELECT COUNT(*) FROM orders WHERE user_id = 42"); n != 1 {
		d.t.Errorf("%d orders of the shopper", n)
	}

	for _, state := range []string{"refused", "not_pulled"} {
		u = d.unlocked()
		d.cabinet.answer(u, state)
		d.becomes(u, map[string]string{"refused": "refused", "not_pulled": "expired"}[state])
	}

	// Never heard of again: the sweep frees cabinet and shopper, and the event that comes at last settles.
	u = d.unlocked()
	d.exec("UPDATE door_sessions SET expires_at = ? WHERE session_id = ?", time.Now().UTC(), u.SessionID)
	eventually(d.t, 20*time.Second, "the session is swept", func() bool {
		return d.count("SELECT COUNT(*) FROM door_sessions WHERE state = 'expired' AND open_user IS NULL AND session_id = '"+u.SessionID+"'") == 1
	})
	next := d.unlocked()
	d.cabinet.publish(d.cabinet.id, saleOf(d.cabinet.id, u.CloseEventID, `"items":[{"productId":1,"quantity":1}]`))
	d.becomes(u, "closed")
	d.becomes(next, "opening")
	d.cabinet.answer(next, "refused")
	d.becomes(next, "refused")

	// Opening is refused while it is offline or locked; its events never are.
	d.isOnline(false)
	d.open(409)
	d.isOnline(true)
	d.client.do("PATCH", fmt.Sprintf("%s/v1/cabinets/%d", d.url, d.cabinet.id), `{"locked":true}`, 200, nil)
	d.open(409)
	d.cabinet.publish(d.cabinet.id, sale(d.cabinet.id, "while-locked", 1, 1))
	if r := d.cabinet.receipt(d.cabinet.id, "while-locked", 10*time.Second); r.Outcome != cabinet.Settled {
		d.t.Errorf("while locked: %+v", r)
	}
	d.cabinet.say(cabinet.TelemetryTopic(d.cabinet.id), false, `{"temperatureC":3.9,"at":"2026-11-30T10:00:00Z"}`)
	eventually(d.t, 10*time.Second, "the temperature is shown", func() bool {
		var c struct{ TemperatureC *float64 }
		d.client.get(fmt.Sprintf("%s/v1/cabinets/%d", d.url, d.cabinet.id), &c)
		return c.TemperatureC != nil && *c.TemperatureC == 3.9
	})
	if told := len(d.cabinet.told()); told != d.opened {
		d.t.Errorf("%d unlocks for %d sessions", told, d.opened)
	}
	d.audit()
}

// saleOf is an event that says no user.
func saleOf(deviceID int64, id, evidence string) []byte {
	return fmt.Appendf(nil, `{"closeEventId":%q,"deviceId":%d,"closedAt":%q,%s}`,
		id, deviceID, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), evidence)
}

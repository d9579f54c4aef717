package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"doortab/cabinet"
)

// oddEvent is something that a cabinet should not send, and how it ends (section 4 of the design).
type oddEvent struct {
	name    string
	device  int64 // 0: firstDevice
	payload func(id string, device int64) []byte
	outcome cabinet.Outcome // "" for no receipt
	reasons string          // of the receipt, and of the review
	letter  string          // reason of the dead letter
	total   int64           // of the order of the sure lines
	retain  bool
}

// unregistered connects to a broker and is in no table.
const unregistered = 4711

func oddEvents() []oddEvent {
	items := func(list string) func(string, int64) []byte {
		return func(id string, device int64) []byte { return event(device, id, list) }
	}
	one := `{"productId":2,"quantity":1}`
	quantity := func(q string) func(string, int64) []byte {
		return items("[" + one + `,{"productId":1,"quantity":` + q + "}]")
	}
	return []oddEvent{
		{name: "not JSON", payload: func(string, int64) []byte { return []byte("door closed!") }, letter: "malformed"},
		{name: "no payload", payload: func(string, int64) []byte { return nil }, letter: "malformed"},
		{name: "1 MiB", payload: func(id string, device int64) []byte {
			whole := event(device, id, "["+one+"]")
			return append(whole[:len(whole)-1], `,"note":"`+strings.Repeat("x", 1<<20)+`"}`...)
		}, outcome: cabinet.Rejected, letter: "malformed"},
		{name: "1 MiB of nothing", payload: func(string, int64) []byte { return []byte(strings.Repeat("\x00", 1<<20)) }, letter: "malformed"},
		{name: "another cabinet's", payload: func(id string, device int64) []byte { return event(device+1, id, "["+one+"]") },
			letter: "identity_mismatch"},
		{name: "quantity 0", payload: quantity("0"), outcome: cabinet.Review, reasons: "[invalid_quantity]", total: 200},
		{name: "quantity -3", payload: quantity("-3"), outcome: cabinet.Review, reasons: "[invalid_quantity]", total: 200},
		{name: "quantity 1e9", payload: quantity("1000000000"), outcome: cabinet.Review, reasons: "[invalid_quantity]", total: 200},
		{name: "300 items", payload: items("[" + strings.Repeat(one+",", 299) + one + "]"), outcome: cabinet.Rejected, letter: "malformed"},
		{name: "unknown product", payload: items("[" + one + `,{"productId":99,"quantity":1}]`),
			outcome: cabinet.Review, reasons: "[unknown_product]", total: 200},
		{name: "unknown cabinet", device: unregistered, payload: items("[" + one + "]"), outcome: cabinet.Rejected, letter: "unknown_cabinet"},
		{name: "empty list", payload: items("[]"), outcome: cabinet.Empty, reasons: "[]"},
		{name: "retained", payload: items("[" + one + "]"), outcome: cabinet.Settled, reasons: "[]", total: 200, retain: true},
	}
}

func TestOddEvents(t *testing.T) {
	t.Parallel()
	t.Run("embedded broker", func(t *testing.T) {
		t.Parallel()
		in := newInstallation(t, 2)
		s := in.serve()
		in.exec("INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (?, 'Scrapped soon', NOW(), NOW())", unregistered)
		known := connectCabinet(t, s.mqtt, firstDevice, in.secret(firstDevice))
		scrapped := connectCabinet(t, s.mqtt, unregistered, in.secret(unregistered))
		in.exec("DELETE FROM cabinets WHERE device_id = ?", unregistered)
		odd(in, s, func(device int64) *cabinets {
			if device == unregistered {
				return scrapped
			}
			return known
		})
	})
	t.Run("mosquitto", func(t *testing.T) {
		t.Parallel()
		in, broker := newInstallation(t, 2), mosquitto(t)
		s := in.serve("--mqtt-url=" + broker.URL())
		all := connect(t, connection{url: broker.URL(), clientID: "cabinets"})
		odd(in, s, func(int64) *cabinets { return all })
	})
}

// odd publishes each odd event with a good one behind it.
func odd(in *installation, s *server, of func(device int64) *cabinets) {
	in.t.Helper()
	good, slowest := of(firstDevice), time.Duration(0)
	events := oddEvents()
	// First the one whose cabinet loses its connection soon.
	for n := range events {
		if events[n].device == unregistered {
			events[0], events[n] = events[n], events[0]
		}
	}
	for n := range events {
		e, id := &events[n], fmt.Sprint("odd-", n)
		if e.device == 0 {
			e.device = firstDevice
		}
		topic := cabinet.DoorClosedTopic(e.device)
		if err := of(e.device).client.Publish(in.t.Context(), topic, e.payload(id, e.device), 1, e.retain); err != nil {
			in.t.Fatalf("%s: %v", e.name, err)
		}
		behind := fmt.Sprint("good-", n)
		began := time.Now()
		good.publish(firstDevice, sale(firstDevice, behind, 1, 1))
		good.receipt(firstDevice, behind, 10*time.Second)
		slowest = max(slowest, time.Since(began))
	}
	in.t.Logf("the slowest good event behind an odd one was answered in %s", slowest.Round(time.Millisecond))
	if slowest > 2*time.Second {
		in.t.Errorf("a good event behind an odd one was answered in %s only", slowest)
	}
	for n, e := range events {
		in.checkOdd(s, of(e.device), e, fmt.Sprint("odd-", n))
	}
	in.checkLetters(s, events)
	in.audit()
}

func (in *installation) checkOdd(s *server, c *cabinets, e oddEvent, id string) {
	in.t.Helper()
	if e.outcome == "" {
		if all := c.heard(eventKey{e.device, id}); len(all) != 0 {
			in.t.Errorf("%s: receipt %+v, want none", e.name, all[0].Receipt)
		}
		return
	}
	r := c.receipt(e.device, id, 5*time.Second)
	if r.Outcome != e.outcome || r.TotalMinor != e.total || e.reasons != "" && fmt.Sprint(r.Reasons) != e.reasons {
		in.t.Errorf("%s: receipt %+v, want %s with %s and a total of %d", e.name, r.Receipt, e.outcome, e.reasons, e.total)
	}
	url := fmt.Sprintf("%s/v1/settlements/%d/%s", s.http, e.device, id)
	if e.outcome == cabinet.Rejected {
		if status := in.client.status(url); status != 404 {
			in.t.Errorf("%s: its settlement answers %d, want 404", e.name, status)
		}
		return
	}
	var settled struct{ Outcome cabinet.Outcome }
	in.client.get(url, &settled)
	if settled.Outcome != e.outcome {
		in.t.Errorf("%s: settlement %s, want %s", e.name, settled.Outcome, e.outcome)
	}
	type review struct {
		CloseEventID string
		Reasons      []string
		Status       string
	}
	found := ""
	for _, r := range list[review](in.client, s.http+"/v1/reviews") {
		if r.CloseEventID == id && r.Status == "open" {
			found = fmt.Sprint(r.Reasons)
		}
	}
	if want := e.outcome == cabinet.Review; want != (found != "") || want && found != e.reasons {
		in.t.Errorf("%s: review with reasons %q, want %q", e.name, found, e.reasons)
	}
}

func (in *installation) checkLetters(s *server, events []oddEvent) {
	in.t.Helper()
	type letter struct {
		Reason, Topic string
		Size          int
	}
	got, want := map[letter]int{}, map[letter]int{}
	for _, l := range list[letter](in.client, s.http+"/v1/dead-letters") {
		got[l]++
	}
	for n, e := range events {
		if e.letter != "" {
			want[letter{e.letter, cabinet.DoorClosedTopic(e.device), len(e.payload(fmt.Sprint("odd-", n), e.device))}]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		in.t.Errorf("dead letters\n%v, want\n%v", got, want)
	}
}

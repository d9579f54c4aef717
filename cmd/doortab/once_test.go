package main

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// R1: however often and at whichever process an event arrives, it has one outcome.
func TestCopiesAtTheSameMomentMakeOneOrder(t *testing.T) {
	t.Parallel()
	events, copies := short(200, 50), 5
	in, broker := newInstallation(t, 20), mosquitto(t)
	in.serve("--mqtt-url="+broker.URL(), "--instance=a")
	in.serve("--mqtt-url="+broker.URL(), "--instance=b")
	ears := connect(t, connection{url: broker.URL(), clientID: "ears"})
	senders := make([]*cabinets, copies)
	for n := range senders {
		senders[n] = connect(t, connection{url: broker.URL(), clientID: fmt.Sprint("sender-", n), deaf: true})
	}
	began := time.Now()
	const atOnce = 10 // events, each by every sender
	for from := 0; from < events; from += atOnce {
		var publishing sync.WaitGroup
		together := make(chan struct{})
		for n := from; n < from+atOnce; n++ {
			device := firstDevice + int64(n%20)
			payload := sale(device, fmt.Sprint("event-", n), int64(n%products)+1, 2)
			for _, sender := range senders {
				publishing.Go(func() {
					<-together
					sender.publish(device, payload)
				})
			}
		}
		close(together)
		publishing.Wait()
	}
	for n := range events {
		key := eventKey{firstDevice + int64(n%20), fmt.Sprint("event-", n)}
		eventually(t, 30*time.Second, fmt.Sprint("all receipts of ", key), func() bool { return len(ears.heard(key)) >= copies })
	}
	t.Logf("%d deliveries answered in %s", events*copies, time.Since(began).Round(time.Millisecond))
	for n := range events {
		all := ears.heard(eventKey{firstDevice + int64(n%20), fmt.Sprint("event-", n)})
		if firsts := sameReceipts(t, all); len(all) != copies || firsts != 1 {
			t.Errorf("event-%d: %d receipts, %d of them not a duplicate; want %d and 1", n, len(all), firsts, copies)
		}
	}
	in.settledOnce(events)
}

// R4: the goods are gone, whatever the books say.
func TestMoreTakenThanTheBooksHave(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	in.exec("INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (7, 'Almost empty', NOW(), NOW())")
	in.stock(7, 3, 2)
	s := in.serve()
	c := connectCabinet(t, s.mqtt, 7, in.secret(7))
	c.publish(7, sale(7, "short", 3, 3))
	r := c.receipt(7, "short", 10*time.Second)
	if r.Outcome != "settled" || r.TotalMinor != 900 || fmt.Sprint(r.Reasons) != "[shortfall]" || r.Lines[0].Quantity != 3 {
		t.Errorf("receipt %+v, want an order of three with the reason shortfall", r.Receipt)
	}
	var order struct {
		TotalMinor int64
		Status     string
		Lines      []struct{ ProductID, Quantity int64 }
	}
	in.client.get(s.http+"/v1/orders/"+r.OrderID, &order)
	if order.Status != "open" || order.TotalMinor != 900 || len(order.Lines) != 1 || order.Lines[0].Quantity != 3 {
		t.Errorf("order %+v, want three for 900", order)
	}
	type row struct{ ProductID, Stock int64 }
	if rows := list[row](in.client, s.http+"/v1/cabinets/7/stock"); fmt.Sprint(rows) != "[{3 0}]" {
		t.Errorf("stock %v, want product 3 at 0", rows)
	}
	type discrepancy struct {
		DeviceID, ProductID, Quantity int64
		Kind, Ref                     string
	}
	found := list[discrepancy](in.client, s.http+"/v1/discrepancies")
	if len(found) != 1 || found[0] != (discrepancy{7, 3, 1, "shortfall", "short"}) {
		t.Errorf("discrepancies %+v, want one of 1", found)
	}
	in.audit()
}

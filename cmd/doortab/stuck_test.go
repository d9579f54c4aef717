package main

import (
	"fmt"
	"testing"
	"time"
)

// An event that can't be written must not hold up those behind it, on a broker that hands out 20 messages at a time.
func TestOneEventCannotBeWritten(t *testing.T) {
	t.Parallel()
	in, c, s := stuckSetting(t)
	in.exec(`CREATE TRIGGER refuse BEFORE INSERT ON settlements FOR EACH ROW
		IF NEW.close_event_id = 'stuck' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF`)
	payload := sale(firstDevice, "stuck", 1, 1)
	began := time.Now()
	c.publish(firstDevice, payload)
	behindIt(c)
	if all := c.heard(eventKey{firstDevice, "stuck"}); len(all) > 0 {
		t.Errorf("an event without an outcome was answered: %+v", all)
	}
	if testing.Short() {
		t.Skip("that it becomes a dead letter after 30 s is seen only without -short")
	}
	type letter struct{ ID, Topic, Reason, CloseEventID, Payload string }
	var letters []letter
	eventually(t, 50*time.Second, "it is kept as a dead letter", func() bool {
		letters = list[letter](in.client, s.http+"/v1/dead-letters")
		return len(letters) > 0
	})
	t.Logf("kept as a dead letter after %s", time.Since(began).Round(time.Millisecond))
	if l := letters[0]; l.Reason != "internal" || l.CloseEventID != "stuck" || l.Payload != string(payload) {
		t.Errorf("dead letter %+v, want internal with the event", l)
	}
	if all := c.heard(eventKey{firstDevice, "stuck"}); len(all) > 0 {
		t.Errorf("an event without an outcome was answered: %+v", all)
	}
	in.exec("DROP TRIGGER refuse")
	c.publish(firstDevice, payload)
	if r := c.receipt(firstDevice, "stuck", 10*time.Second); r.Outcome != "settled" || r.Duplicate {
		t.Errorf("receipt %+v of the event sent again, want settled", r.Receipt)
	}
	in.settledOnce(behind + 1)
}

func TestRowStaysLocked(t *testing.T) {
	t.Parallel()
	in, c, _ := stuckSetting(t)
	tx, err := in.db.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // done already where the test goes well
	began := time.Now()
	var stock int64
	err = tx.QueryRow("SELECT stock FROM device_stock WHERE device_id = ? AND product_id = 1 FOR UPDATE", firstDevice).Scan(&stock)
	if err != nil {
		t.Fatal(err)
	}
	c.publish(firstDevice, sale(firstDevice, "stuck", 1, 1))
	behindIt(c)
	during(t, short(30*time.Second, 3*time.Second)-time.Since(began))
	if all := c.heard(eventKey{firstDevice, "stuck"}); len(all) > 0 {
		t.Errorf("an event without an outcome was answered: %+v", all)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	free := time.Now()
	if r := c.receipt(firstDevice, "stuck", 15*time.Second); r.Outcome != "settled" || r.Duplicate {
		t.Errorf("receipt %+v, want settled", r.Receipt)
	}
	t.Logf("settled %s after the lock went", time.Since(free).Round(time.Millisecond))
	in.settledOnce(behind + 1)
	if n := in.count("SELECT COUNT(*) FROM dead_letters"); n != 0 {
		t.Errorf("%d dead letters: a lock is no reason to give up", n)
	}
}

// behind is how many events come after the stuck one.
const behind = 200

func stuckSetting(t *testing.T) (*installation, *cabinets, *server) {
	in, broker := newInstallation(t, 40), mosquitto(t)
	s := in.serve("--mqtt-url=" + broker.URL())
	return in, connect(t, connection{url: broker.URL(), clientID: "cabinets"}), s
}

// behindIt publishes events behind the stuck one, some of the same cabinet, which all need other rows.
func behindIt(c *cabinets) {
	c.t.Helper()
	began := time.Now()
	for n := range behind {
		device := firstDevice + int64(n%40)
		c.publish(device, sale(device, fmt.Sprint("behind-", n), int64(n%4)+2, 1))
	}
	for n := range behind {
		c.receipt(firstDevice+int64(n%40), fmt.Sprint("behind-", n), 20*time.Second)
	}
	took := time.Since(began)
	c.t.Logf("%d events behind it were answered in %s", behind, took.Round(time.Millisecond))
	if took > 8*time.Second {
		c.t.Errorf("%d events behind it took %s: it holds them up", behind, took)
	}
}

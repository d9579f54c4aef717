package intake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/database/databasetest"
	"doortab/intake"
	"doortab/migrations"
	"doortab/services"
	"doortab/services/servicestest"
	"doortab/settlement"
)

func TestWhatHasQueuedUpIsOneGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), func(c *intake.Config) { c.Workers, c.MaxGroup = 1, 50 })
	b.fill(1001)
	var want []string
	for n := range 120 {
		id := fmt.Sprint("e", n)
		want = append(want, id)
		if !b.offer(1001, id) {
			t.Fatal("no room")
		}
	}
	if _, waiting := b.sample("doortab_queue_depth"); waiting != 120 {
		t.Errorf("%v messages wait, want 120", waiting)
	}
	b.start()
	eventually(t, "all are acknowledged", func() bool { return len(b.acked()) == 120 })
	if diff := cmp.Diff(want, b.acked()); diff != "" {
		t.Errorf("not in order of arrival: %s", diff)
	}
	if groups, messages := b.sample("doortab_group_size"); groups != 3 || messages != 120 {
		t.Errorf("%d groups of %v messages, want 50, 50 and 20", groups, messages)
	}
	if n := b.number("SELECT COUNT(*) FROM orders"); n != 120 {
		t.Errorf("%d orders", n)
	}
	for _, id := range want {
		if r := b.receiptsOf(id); len(r) != 1 || r[0].Outcome != cabinet.Settled || r[0].Duplicate {
			t.Errorf("%s: receipts %+v", id, r)
		}
	}
}

func TestEachDeliveryGetsOneReceipt(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), nil)
	b.fill(1001)
	for range 3 {
		b.offer(1001, "e")
	}
	b.start()
	eventually(t, "all are acknowledged", func() bool { return len(b.acked()) == 3 })
	b.offer(1001, "e")
	eventually(t, "the repeat is acknowledged", func() bool { return len(b.acked()) == 4 })
	var duplicates []bool
	for _, r := range b.receiptsOf("e") {
		duplicates = append(duplicates, r.Duplicate)
	}
	if !slices.Equal(duplicates, []bool{false, true, true, true}) {
		t.Errorf("duplicates %v", duplicates)
	}
}

func TestACabinetsEventsKeepTheirOrderAmongMany(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), func(c *intake.Config) { c.MaxGroup = 7 })
	b.fill(1, 2, 3, 4, 5)
	b.start()
	const each = 40
	for n := range each {
		for device := int64(1); device <= 5; device++ {
			b.offer(device, fmt.Sprintf("%d-%03d", device, n))
		}
	}
	eventually(t, "all are acknowledged", func() bool { return len(b.acked()) == 5*each })
	last := map[string]string{}
	for _, id := range b.acked() {
		device, _, _ := strings.Cut(id, "-")
		if id < last[device] {
			t.Errorf("%s after %s", id, last[device])
		}
		last[device] = id
	}
}

func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), func(c *intake.Config) { c.Workers, c.Queue = 1, 3 })
	var taken []bool
	for n := range 5 {
		taken = append(taken, b.offer(1001, fmt.Sprint("e", n)))
	}
	if !slices.Equal(taken, []bool{true, true, true, false, false}) {
		t.Error(taken)
	}
	if _, refused := b.sample("doortab_intake_refused_total"); refused != 2 {
		t.Errorf("%v refused", refused)
	}
}

func TestAnOversizeMessageIsCutButAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), nil)
	b.fill(1001)
	b.start()
	payload := `{"closeEventId":"big","deviceId":1001,"note":"` + strings.Repeat("x", 1<<20) + `"}`
	b.Offer(intake.Message{
		Delivery: settlement.Delivery{DeviceID: 1001, Topic: "t", Payload: []byte(payload), ReceivedAt: time.Now()},
		Ack:      b.note(&b.done, "big"),
	})
	b.offer(1001, "behind")
	eventually(t, "both are acknowledged", func() bool { return len(b.acked()) == 2 })
	if r := b.receiptsOf("big"); len(r) != 1 || r[0].Outcome != cabinet.Rejected {
		t.Errorf("%+v", r)
	}
	if n := b.number("SELECT LENGTH(payload) FROM dead_letters WHERE size = ?", len(payload)); n != cabinet.MaxPayload {
		t.Errorf("%d bytes kept", n)
	}
}

func TestNothingIsAcknowledgedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	group := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()})
	admin := databasetest.Open(t, group.MariaDB.DSN("mysql"))
	if _, err := admin.SQL().Exec("CREATE DATABASE doortab"); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, databasetest.Open(t, group.MariaDB.DSN("doortab")), func(c *intake.Config) { c.GiveUpAfter = time.Millisecond })
	if _, err := migrations.Up(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}
	b.fill(1001, 1002)
	b.start()
	b.offer(1001, "before")
	eventually(t, "the first is acknowledged", func() bool { return len(b.acked()) == 1 })
	if err := group.MariaDB.Kill(); err != nil {
		t.Fatal(err)
	}
	failures := func() float64 { _, n := b.sample("doortab_settle_failures_total"); return n }
	for n := range 100 {
		b.offer(int64(1001+n%2), fmt.Sprint("e", n))
	}
	eventually(t, "several tries have failed", func() bool { return failures() > 10 }) // a group may be one event: the others wait behind it
	if got := b.acked(); len(got) != 1 || b.deferrals() > 0 {
		t.Errorf("acknowledged %v, %d deferred", got, b.deferrals())
	}
	if b.Stuck() == 0 || b.Unsettled() < b.Stuck() {
		t.Errorf("it says that it is stuck for %s, and that the oldest event is %s old", b.Stuck(), b.Unsettled())
	}
	if err := group.MariaDB.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are acknowledged", func() bool { return len(b.acked()) == 101 })
	eventually(t, "nothing is stuck any more", func() bool { return b.Stuck() == 0 && b.Unsettled() == 0 })
	if n := b.number("SELECT COUNT(*) FROM orders"); n != 101 {
		t.Errorf("%d orders", n)
	}
	if n := b.number("SELECT COUNT(*) FROM dead_letters"); n != 0 {
		t.Errorf("%d dead letters of a database that was away", n)
	}
	b.stop()
}

func TestAnUnwritableEventIsParkedWhileOthersPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), func(c *intake.Config) { c.GiveUpAfter, c.MaxGroup = 300*time.Millisecond, 20 })
	b.fill(1001, 1002)
	b.exec(`CREATE TRIGGER broken BEFORE INSERT ON orders FOR EACH ROW
		IF NEW.close_event_id = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted'; END IF`)
	b.offer(1001, "bad")
	for n := range 200 {
		b.offer(int64(1001+n%2), fmt.Sprint("e", n))
	}
	b.start()
	eventually(t, "all are acknowledged", func() bool { return len(b.acked()) == 201 })
	if b.deferrals() != 1 {
		t.Errorf("%d deferred, want the bad one", b.deferrals())
	}
	if at := slices.Index(b.acked(), "bad"); at < 1 {
		t.Errorf("the bad one was acknowledged as number %d", at)
	}
	if r := b.receiptsOf("bad"); len(r) != 0 {
		t.Errorf("it was answered: %+v", r)
	}
	if n := b.number("SELECT COUNT(*) FROM dead_letters WHERE reason = 'internal' AND close_event_id = 'bad' AND detail LIKE '%planted%'"); n != 1 {
		t.Errorf("%d dead letters", n)
	}
	b.exec("DROP TRIGGER broken")
	b.offer(1001, "bad")
	eventually(t, "the later delivery settles", func() bool { return len(b.receiptsOf("bad")) == 1 })
	if r := b.receiptsOf("bad")[0]; r.Outcome != cabinet.Settled || r.Duplicate {
		t.Errorf("%+v", r)
	}
}

func TestALockedRowDelaysItsEventAndParksNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), func(c *intake.Config) { c.GiveUpAfter = time.Millisecond })
	b.fill(1001, 1002)
	tx, err := b.db.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SELECT * FROM device_stock WHERE device_id = 1001 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	b.offer(1001, "held")
	for n := range 200 {
		b.offer(1002, fmt.Sprint("e", n))
	}
	b.start()
	eventually(t, "the others are acknowledged", func() bool { return len(b.acked()) == 200 })
	eventually(t, "the held one is deferred", func() bool { return b.deferrals() == 1 })
	eventually(t, "the held one alone is unsettled, and ages", func() bool {
		_, first := b.sample("doortab_unsettled_oldest_seconds")
		_, later := b.sample("doortab_unsettled_oldest_seconds")
		return b.Stuck() == 0 && first > 0 && later > first
	})
	_, retrying := b.sample("doortab_retrying_events")
	if retrying != 1 || slices.Contains(b.acked(), "held") {
		t.Errorf("%v retrying, acknowledged %v", retrying, b.acked())
	}
	_, failed := b.sample("doortab_settle_failures_total")
	eventually(t, "it was tried again in vain", func() bool { _, n := b.sample("doortab_settle_failures_total"); return n > failed+1 })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it settles after the release", func() bool { return len(b.receiptsOf("held")) == 1 })
	if n := b.number("SELECT COUNT(*) FROM dead_letters"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	if b.deferrals() != 1 {
		t.Errorf("%d deferred", b.deferrals())
	}
}

func TestShutdownLeavesWhatIsNotCommittedUnacknowledged(t *testing.T) {
	t.Parallel()
	b := newBench(t, databasetest.New(t), func(c *intake.Config) { c.Workers, c.MaxGroup = 1, 1 })
	b.fill(1001)
	b.exec(`CREATE TRIGGER broken BEFORE INSERT ON orders FOR EACH ROW
		IF NEW.close_event_id = 'bad' THEN SIGNAL SQLSTATE '45000'; END IF`)
	b.offer(1001, "bad")
	b.start()
	eventually(t, "the bad one is retried", func() bool { return b.deferrals() == 1 })
	for n := range 500 {
		b.offer(1001, fmt.Sprint("e", n))
	}
	eventually(t, "some are acknowledged", func() bool { return len(b.acked()) > 0 })
	b.stop()
	acked := b.acked()
	if slices.Contains(acked, "bad") {
		t.Error("an event without an outcome is acknowledged")
	}
	if n := b.number("SELECT COUNT(*) FROM settlements"); n != len(acked) {
		t.Errorf("%d acknowledged, %d settled", len(acked), n)
	}
	if _, waiting := b.sample("doortab_queue_depth"); int(waiting)+len(acked) < 499 || len(acked) == 500 {
		t.Errorf("%v wait, %d are acknowledged", waiting, len(acked))
	}
}

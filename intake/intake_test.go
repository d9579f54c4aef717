package intake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/intake"
	"doortab/migrations"
	"doortab/services"
	"doortab/services/servicestest"
	"doortab/settlement"
)

// bench is an Intake on a database of its own, which notes what it does with each message.
type bench struct {
	*intake.Intake
	t       *testing.T
	db      *database.DB
	metrics *prometheus.Registry
	stop    func()

	mu       sync.Mutex
	done     []string                     // messages in the order of their acknowledgement
	deferred []string                     // messages that are retried
	receipts map[string][]cabinet.Receipt // by close event id
}

func newBench(t *testing.T, db *database.DB, change func(*intake.Config)) *bench {
	t.Helper()
	b := &bench{t: t, db: db, metrics: prometheus.NewRegistry(), receipts: map[string][]cabinet.Receipt{}}
	log := slog.New(slog.DiscardHandler)
	config := intake.Config{
		Settlement: settlement.New(settlement.Config{DB: db, Currency: "CNY", Metrics: b.metrics, Logger: log}),
		Send:       b.send, Logger: log, Metrics: b.metrics,
	}
	if change != nil {
		change(&config)
	}
	b.Intake = intake.New(config)
	return b
}

func (b *bench) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	b.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	b.t.Cleanup(b.stop)
}

func (b *bench) send(topic string, payload []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var r cabinet.Receipt
	if err := json.Unmarshal(payload, &r); err != nil || topic != cabinet.ReceiptsTopic(r.DeviceID) {
		b.t.Errorf("receipt %s on %s: %v", payload, topic, err)
	}
	b.receipts[r.CloseEventID] = append(b.receipts[r.CloseEventID], r)
}

func (b *bench) note(list *[]string, what string) func() {
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		*list = append(*list, what)
	}
}

// offer gives a sale of one unit of 7.
func (b *bench) offer(deviceID int64, id string) bool {
	payload := fmt.Sprintf(`{"closeEventId":%q,"deviceId":%d,"userId":42,"closedAt":%q,"items":[{"productId":7,"quantity":1}]}`,
		id, deviceID, time.Now().UTC().Format(time.RFC3339))
	return b.Offer(intake.Message{
		Delivery: settlement.Delivery{
			DeviceID: deviceID, Topic: cabinet.DoorClosedTopic(deviceID), Payload: []byte(payload), ReceivedAt: time.Now(),
		},
		Ack: b.note(&b.done, id), Defer: b.note(&b.deferred, id),
	})
}

func (b *bench) acked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.done)
}

func (b *bench) receiptsOf(id string) []cabinet.Receipt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.receipts[id])
}

func (b *bench) deferrals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.deferred)
}

func (b *bench) exec(statement string, args ...any) {
	b.t.Helper()
	if _, err := b.db.SQL().ExecContext(context.Background(), statement, args...); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

// fill makes product 7 and the cabinets.
func (b *bench) fill(devices ...int64) {
	b.t.Helper()
	b.exec("INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (7, 'a', 'x', 500, NOW(3), NOW(3))")
	b.exec("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, NOW(3), 500)")
	for _, id := range devices {
		b.exec("INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (?, 'x', NOW(3), NOW(3))", id)
		b.exec("INSERT INTO device_stock (device_id, product_id, stock, version, counted_seq, updated_at) VALUES (?, 7, 0, 1, NULL, NOW(3))", id)
	}
}

func (b *bench) number(query string, args ...any) (n int) {
	b.t.Helper()
	if err := b.db.SQL().QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (b *bench) sample(name string) (count uint64, value float64) {
	b.t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		m := family.GetMetric()[0]
		return m.GetHistogram().GetSampleCount(), m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
	}
	return 0, 0
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(60 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-ticker.C:
		}
	}
}

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

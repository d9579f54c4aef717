package intake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/cabinet"
	"doortab/database"
	"doortab/intake"
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

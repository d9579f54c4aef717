package settlement_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"doortab/audit"
	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/fleet"
	"doortab/inventory"
	"doortab/settlement"
)

// receivedAt is after every price came into force.
var receivedAt = time.Date(2026, 11, 30, 10, 0, 22, 0, time.UTC)

const closedAt = `"closedAt":"2026-11-30T10:00:21.480Z"`

// shop is a service on a database of its own, with the products 7 (500), 8 (300) and 9 (250)
// and no cabinet.
type shop struct {
	*settlement.Service
	t       *testing.T
	db      *database.DB
	dsn     string
	metrics *prometheus.Registry
	tokens  int // of claims, so far
}

func newShop(t *testing.T) *shop {
	t.Helper()
	db, dsn := databasetest.NewWithDSN(t)
	s := &shop{t: t, db: db, dsn: dsn}
	for id, price := range map[int64]int64{7: 500, 8: 300, 9: 250} {
		s.product(id, price)
	}
	s.serve(nil)
	return s
}

// another is a second process on the same database.
func (s *shop) another(remembered *settlement.Remembered) *shop {
	s.t.Helper()
	second := &shop{t: s.t, db: databasetest.Open(s.t, s.dsn), dsn: s.dsn}
	second.serve(remembered)
	return second
}

func (s *shop) serve(remembered *settlement.Remembered) {
	s.metrics = prometheus.NewRegistry()
	s.Service = settlement.New(settlement.Config{
		DB: s.db, Remembered: remembered, Currency: "CNY", Metrics: s.metrics, Logger: slog.New(slog.DiscardHandler),
	})
}

func (s *shop) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.SQL().ExecContext(context.Background(), statement, args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// catalogue changes products, prices or planograms past the code that does it.
func (s *shop) catalogue(statement string, args ...any) {
	s.t.Helper()
	s.exec(statement, args...)
	s.exec("UPDATE marks SET version = version + 1 WHERE name = 'catalogue'")
}

func (s *shop) product(id, priceMinor int64) {
	s.t.Helper()
	from := receivedAt.AddDate(-1, 0, 0)
	s.catalogue(`INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (?, ?, 'x', ?, ?, ?)`,
		id, fmt.Sprint("sku", id), priceMinor, from, from)
	s.catalogue("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (?, ?, ?)", id, from, priceMinor)
}

// cabinet registers a cabinet and fills it: product, units, product, units …
func (s *shop) cabinet(deviceID int64, stock ...int64) {
	s.t.Helper()
	s.exec(`INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (?, 'x', ?, ?)`, deviceID, receivedAt, receivedAt)
	if len(stock) > 0 {
		s.restock(deviceID, stock...)
	}
}

func (s *shop) restock(deviceID int64, stock ...int64) {
	s.t.Helper()
	if err := s.tryRestock(deviceID, stock...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tryRestock(deviceID int64, stock ...int64) error {
	request := inventory.RestockRequest{DeviceID: deviceID, RestockID: uuid.NewString(), Actor: "ann"}
	for pair := range slices.Chunk(stock, 2) {
		request.Lines = append(request.Lines, inventory.RestockLine{ProductID: pair[0], Quantity: pair[1]})
	}
	return s.db.InTxCounted(context.Background(), func(tx *gorm.DB, attempt int) error {
		_, err := inventory.AddRestock(tx, attempt, request, database.Now())
		return err
	})
}

// stocktake takes stock as of a seq: product, units, product, units …
func (s *shop) stocktake(deviceID int64, asOfSeq int, counted ...int64) {
	s.t.Helper()
	seq := int64(asOfSeq)
	if _, err := s.tryStocktake(deviceID, &seq, counted...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tryStocktake(deviceID int64, asOfSeq *int64, counted ...int64) (movements []inventory.Movement, err error) {
	request := inventory.StocktakeRequest{DeviceID: deviceID, StocktakeID: uuid.NewString(), AsOfSeq: asOfSeq, Actor: "ann"}
	for pair := range slices.Chunk(counted, 2) {
		request.Lines = append(request.Lines, inventory.CountedLine{ProductID: pair[0], Counted: pair[1]})
	}
	err = s.db.InTxCounted(context.Background(), func(tx *gorm.DB, attempt int) (err error) {
		movements, err = inventory.AddStocktake(tx, attempt, request, database.Now())
		return err
	})
	return movements, err
}

func (s *shop) writeOff(deviceID, productID, units int64) {
	s.t.Helper()
	s.writeOffLine(deviceID, inventory.WriteoffLine{ProductID: productID, Quantity: units})
}

func (s *shop) writeOffLine(deviceID int64, line inventory.WriteoffLine) {
	s.t.Helper()
	request := inventory.WriteoffRequest{
		DeviceID: deviceID, WriteoffID: uuid.NewString(), Reason: "expired", Actor: "ann", Lines: []inventory.WriteoffLine{line},
	}
	err := s.db.InTxCounted(context.Background(), func(tx *gorm.DB, attempt int) error {
		_, err := inventory.AddWriteoff(tx, attempt, request, database.Now())
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) replaceController(deviceID int64) {
	s.t.Helper()
	err := s.db.InTx(context.Background(), func(tx *gorm.DB) error {
		_, _, err := fleet.ReplaceController(tx, deviceID)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// rows reads a query as text, with | between columns.
func (s *shop) rows(query string, args ...any) []string {
	s.t.Helper()
	rows, err := s.db.SQL().QueryContext(context.Background(), query, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	columns, _ := rows.Columns()
	var list []string
	for rows.Next() {
		values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			s.t.Fatal(err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = v.String
		}
		list = append(list, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *shop) count(table, where string, args ...any) int {
	s.t.Helper()
	return len(s.rows("SELECT 1 FROM "+table+" WHERE "+where, args...))
}

// metric reads a counter or a gauge, of one label value where it has any; 0 where it isn't told.
func (s *shop) metric(name, label string) float64 {
	s.t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// settle settles messages of one cabinet as one group.
func (s *shop) settle(deviceID int64, payloads ...string) []settlement.Answer {
	s.t.Helper()
	return s.Settle(context.Background(), deliveriesOf(deviceID, payloads...))
}

// receipts settles a group in which every message is answered.
func (s *shop) receipts(deviceID int64, payloads ...string) []cabinet.Receipt {
	s.t.Helper()
	answers := s.settle(deviceID, payloads...)
	list := make([]cabinet.Receipt, len(answers))
	for i, a := range answers {
		if a.Err != nil || a.Receipt == nil {
			s.t.Fatalf("message %d: receipt %v, error %v", i, a.Receipt, a.Err)
		}
		list[i] = *a.Receipt
	}
	return list
}

func (s *shop) audited() {
	s.t.Helper()
	report, err := audit.Run(context.Background(), s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	if !report.OK() {
		var text strings.Builder
		_ = report.Print(&text)
		s.t.Error(text.String())
	}
}

func deliveriesOf(deviceID int64, payloads ...string) []settlement.Delivery {
	list := make([]settlement.Delivery, len(payloads))
	for i, payload := range payloads {
		list[i] = settlement.Delivery{
			DeviceID: deviceID, Topic: cabinet.DoorClosedTopic(deviceID), Payload: []byte(payload), ReceivedAt: receivedAt,
		}
	}
	return list
}

// event is a door-close event with the members given.
func event(deviceID int64, id string, members ...string) string {
	base := []string{fmt.Sprintf(`"closeEventId":%q,"deviceId":%d`, id, deviceID)}
	if !strings.Contains(strings.Join(members, ""), "closedAt") {
		base = append(base, closedAt)
	}
	return "{" + strings.Join(append(base, members...), ",") + "}"
}

// sale is an event of user 42 who took: product, units, product, units …
func sale(deviceID int64, id string, taken ...int64) string {
	return event(deviceID, id, `"userId":42`, items(taken...))
}

func items(taken ...int64) string {
	var list []string
	for pair := range slices.Chunk(taken, 2) {
		list = append(list, fmt.Sprintf(`{"productId":%d,"quantity":%d}`, pair[0], pair[1]))
	}
	return `"items":[` + strings.Join(list, ",") + "]"
}

// within runs what must end soon.
func within(t *testing.T, limit time.Duration, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s takes longer than %v", what, limit)
	}
}

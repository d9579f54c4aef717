package archive_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/archive"
	"doortab/audit"
	"doortab/auditlog"
	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
	"doortab/settlement"
)

// shop is a service on a database of its own with the products 7 (500) and 8 (300), and the cabinets 1001 to 1003 with 100 of each.
type shop struct {
	*settlement.Service
	t   *testing.T
	db  *database.DB
	dsn string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	db, dsn := databasetest.NewWithDSN(t)
	s := &shop{t: t, db: db, dsn: dsn}
	s.Service = settlement.New(settlement.Config{DB: db, Currency: "CNY", Logger: slog.New(slog.DiscardHandler)})
	for id, price := range map[int64]int64{7: 500, 8: 300} {
		s.exec(`INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (?, ?, 'x', ?, NOW(), NOW())`,
			id, fmt.Sprint("sku", id), price)
		s.exec("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (?, '2020-01-01', ?)", id, price)
	}
	for device := int64(1001); device <= 1003; device++ {
		s.exec("INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (?, 'x', NOW(), NOW())", device)
		s.restock(device, 100)
	}
	return s
}

func (s *shop) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.SQL().ExecContext(context.Background(), statement, args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *shop) count(from string) (n int64) {
	s.t.Helper()
	if err := s.db.SQL().QueryRowContext(context.Background(), "SELECT COUNT(*) FROM "+from).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *shop) restock(device, units int64) {
	s.t.Helper()
	err := s.db.InTxCounted(context.Background(), func(tx *gorm.DB, attempt int) error {
		_, err := inventory.AddRestock(tx, attempt, inventory.RestockRequest{
			DeviceID: device, RestockID: uuid.NewString(), Actor: "ann",
			Lines: []inventory.RestockLine{{ProductID: 7, Quantity: units}, {ProductID: 8, Quantity: units}},
		}, database.Now())
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

func (s *shop) stocktake(device int64, asOfSeq *int64, counted int64) ([]inventory.Movement, error) {
	var movements []inventory.Movement
	err := s.db.InTxCounted(context.Background(), func(tx *gorm.DB, attempt int) (err error) {
		movements, err = inventory.AddStocktake(tx, attempt, inventory.StocktakeRequest{
			DeviceID: device, StocktakeID: uuid.NewString(), AsOfSeq: asOfSeq, Actor: "ann",
			Lines: []inventory.CountedLine{{ProductID: 7, Counted: counted}},
		}, database.Now())
		return err
	})
	return movements, err
}

// settle settles events of cabinets, each by itself, and returns their receipts.
func (s *shop) settle(events ...said) []cabinet.Receipt {
	s.t.Helper()
	deliveries := make([]settlement.Delivery, len(events))
	for i, e := range events {
		deliveries[i] = settlement.Delivery{
			DeviceID: e.device, Topic: cabinet.DoorClosedTopic(e.device), Payload: []byte(e.payload), ReceivedAt: database.Now(),
		}
	}
	receipts := make([]cabinet.Receipt, len(events))
	for i, a := range s.Settle(context.Background(), deliveries) {
		if a.Err != nil || a.Receipt == nil {
			s.t.Errorf("%s: receipt %v, error %v", events[i].payload, a.Receipt, a.Err)
			continue
		}
		receipts[i] = *a.Receipt
	}
	return receipts
}

// said is an event as a cabinet sends it.
type said struct {
	device  int64
	id      string
	payload string
}

// event is of user 42 unless members say otherwise.
func event(device int64, id string, members ...string) said {
	text := strings.Join(members, ",")
	if !strings.Contains(text, "userId") {
		text = `"userId":42,` + text
	}
	return said{device, id, fmt.Sprintf(`{"closeEventId":%q,"deviceId":%d,"closedAt":"2026-11-30T10:00:21.480Z",%s}`, id, device, text)}
}

func items(productID, units int64) string {
	return fmt.Sprintf(`"items":[{"productId":%d,"quantity":%d}]`, productID, units)
}

func sale(device int64, id string, units int64) said { return event(device, id, items(7, units)) }

// doubtful has one sure unit of product 7 and one of a product that nobody knows.
func doubtful(device int64, id string, members ...string) said {
	return event(device, id, append(members, `"items":[{"productId":7,"quantity":1},{"productId":99,"quantity":1}]`)...)
}

func (s *shop) read(device int64, id string) settlement.Settlement {
	s.t.Helper()
	x, err := settlement.ReadSettlement(context.Background(), s.db, device, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

func (s *shop) order(device int64, id string) settlement.Order {
	s.t.Helper()
	x := s.read(device, id)
	if x.OrderID == nil {
		s.t.Fatalf("%d/%s has no order", device, id)
	}
	o, err := settlement.ReadOrder(context.Background(), s.db, *x.OrderID)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *shop) reopen(orderID int64) (review settlement.Review, err error) {
	err = s.db.InTx(auditlog.WithActor(context.Background(), "ann"), func(tx *gorm.DB) error {
		review, err = settlement.Reopen(tx, orderID, "x", database.Now())
		return err
	})
	return review, err
}

// amend says that an event took, or brought, so many units of product 7 and nothing else.
func (s *shop) amend(reviewID, units int64) error {
	lines := []settlement.ProposedLine{}
	if units > 0 {
		lines = append(lines, settlement.ProposedLine{ProductID: 7, Quantity: units})
	}
	return s.db.InTxCounted(auditlog.WithActor(context.Background(), "ann"), func(tx *gorm.DB, attempt int) error {
		_, err := settlement.Resolve(tx, attempt,
			settlement.Resolution{ReviewID: reviewID, Decision: settlement.Amend, Lines: lines, Note: "x"}, database.Now())
		return err
	})
}

// moment is later than whatever happened, and earlier than whatever will.
func moment() time.Time {
	last := database.Now()
	for database.Now().Equal(last) {
	}
	at := database.Now()
	for database.Now().Equal(at) {
	}
	return at
}

func (s *shop) archive(before time.Time, batch int) map[string]int64 {
	s.t.Helper()
	moved, err := archive.Run(s.t.Context(), s.db, archive.Options{Before: before, Batch: batch})
	if err != nil {
		s.t.Fatal(err)
	}
	return byWhat(moved)
}

func byWhat(counts []archive.Count) map[string]int64 {
	found := map[string]int64{}
	for _, c := range counts {
		if c.Rows > 0 {
			found[c.What] = c.Rows
		}
	}
	return found
}

func (s *shop) audited() {
	s.t.Helper()
	report, err := audit.Run(context.Background(), s.db)
	if err != nil {
		s.t.Error(err)
		return
	}
	if !report.OK() {
		var text strings.Builder
		_ = report.Print(&text)
		s.t.Error(text.String())
	}
}

// versions are those of product 7 in a table, ascending.
func (s *shop) versions(table string, device int64) (list []int64) {
	s.t.Helper()
	err := s.db.Read(context.Background()).Raw("SELECT version FROM "+table+" WHERE device_id = ? AND product_id = 7", device).
		Scan(&list).Error
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

package reservation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
)

// shop is a database with the products 7, 8 and 9 and the cabinets 1001 and 1002.
type shop struct {
	t   *testing.T
	db  *database.DB
	now time.Time
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t, databasetest.New(t), database.Now()}
	for id := 7; id <= 9; id++ {
		s.exec("INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (?, ?, 'x', 500, ?, ?)",
			id, fmt.Sprint("sku", id), s.now, s.now)
	}
	for id := 1001; id <= 1002; id++ {
		s.exec("INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (?, 'x', ?, ?)", id, s.now, s.now)
	}
	return s
}

func (s *shop) exec(statement string, args ...any) {
	s.t.Helper()
	if err := s.db.Read(context.Background()).Exec(statement, args...).Error; err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *shop) number(query string, args ...any) (n int64) {
	s.t.Helper()
	if err := s.db.Read(context.Background()).Raw(query, args...).Scan(&n).Error; err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// rows tells a whole table.
func (s *shop) rows(table string) (all []string) {
	s.t.Helper()
	var rows []map[string]any
	if err := s.db.Read(context.Background()).Raw("SELECT * FROM " + table).Scan(&rows).Error; err != nil {
		s.t.Fatal(err)
	}
	for _, row := range rows {
		all = append(all, fmt.Sprint(table, row))
	}
	slices.Sort(all)
	return all
}

// stock brings units: product, units, product, units …
func (s *shop) stock(deviceID int64, units ...int64) {
	s.t.Helper()
	request := inventory.RestockRequest{DeviceID: deviceID, RestockID: uuid.NewString(), Actor: "ann"}
	for pair := range slices.Chunk(units, 2) {
		request.Lines = append(request.Lines, inventory.RestockLine{ProductID: pair[0], Quantity: pair[1]})
	}
	s.inTx(func(tx *gorm.DB) error {
		_, err := inventory.AddRestock(tx, 1, request, database.Now())
		return err
	})
}

func (s *shop) inTx(work func(*gorm.DB) error) {
	s.t.Helper()
	if err := s.db.InTx(context.Background(), work); err != nil {
		s.t.Fatal(err)
	}
}

// ask asks for units until an hour later: product, units, product, units …
func ask(deviceID, userID int64, units ...int64) Request {
	r := Request{DeviceID: deviceID, UserID: userID, App: "shopper", Until: database.Now().Add(time.Hour)}
	for pair := range slices.Chunk(units, 2) {
		r.Lines = append(r.Lines, RequestLine{pair[0], pair[1]})
	}
	return r
}

func (s *shop) try(r Request) (made Reservation, err error) {
	ctx := auditlog.WithActor(context.Background(), "the app")
	err = s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		made, err = Create(tx, r, database.Now())
		return err
	})
	return made, err
}

func (s *shop) reserve(r Request) Reservation {
	s.t.Helper()
	made, err := s.try(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

func (s *shop) giveBack(reservationID int64, app string) error {
	return s.db.InTx(context.Background(), func(tx *gorm.DB) error { return Return(tx, reservationID, app, database.Now()) })
}

// pickUp is a door at which a shopper takes units of a product, as far as reservations go.
func (s *shop) pickUp(by Shopper, productID, units int64) (othersLack bool, err error) {
	err = s.db.InTx(context.Background(), func(tx *gorm.DB) (err error) {
		othersLack, err = pickUp(tx, by, productID, units)
		return err
	})
	return othersLack, err
}

func pickUp(tx *gorm.DB, by Shopper, productID, units int64) (othersLack bool, err error) {
	goods, now := Goods{by.DeviceID, productID}, database.Now()
	ledger, err := inventory.OpenLedger(tx, []inventory.Key{inventory.Key(goods)}, 0)
	if err != nil {
		return false, err
	}
	h, err := OpenHolds(tx, []Goods{goods}, []Shopper{by})
	if err != nil {
		return false, err
	}
	m := ledger.Book(inventory.Change{Key: inventory.Key(goods), Kind: inventory.Writeoff, Quantity: -units, Ref: "w"}, now)
	othersLack = h.Take(Door{by, now, now}, goods, units, m.Balance)
	if err := ledger.Write(tx, now); err != nil {
		return false, err
	}
	return othersLack, h.Write(tx, now)
}

// overdue makes a reservation end now, unseen by any sweep.
func (s *shop) overdue(reservationID int64) {
	s.t.Helper()
	s.exec("UPDATE reservations SET until_at = ? WHERE reservation_id = ?", database.Now(), reservationID)
}

// told is a reservation in short: state, then product, left of quantity and how many are short.
func (s *shop) told(reservationID int64) string {
	s.t.Helper()
	r, err := Read(s.t.Context(), s.db, reservationID, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return say(r)
}

func say(r Reservation) string {
	words := []string{string(r.State)}
	for _, l := range r.Lines {
		word := fmt.Sprintf("%d: %d of %d", l.ProductID, l.Left, l.Quantity)
		if l.Short > 0 {
			word += fmt.Sprintf(" (%d short)", l.Short)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func (s *shop) reserved(deviceID, productID int64) int64 {
	s.t.Helper()
	return s.number("SELECT COALESCE(SUM(reserved), 0) FROM reserved_stock WHERE device_id = ? AND product_id = ?", deviceID, productID)
}

// balanced checks that what is reserved is what the held ones have left.
func (s *shop) balanced() {
	s.t.Helper()
	if n := s.number(`SELECT COUNT(*) FROM reserved_stock t WHERE reserved <> (SELECT COALESCE(SUM(l.left_quantity), 0)
		FROM reservation_lines l JOIN reservations r ON r.device_id = l.device_id AND r.reservation_id = l.reservation_id
		WHERE l.device_id = t.device_id AND l.product_id = t.product_id AND r.state = 'held')`); n != 0 {
		s.t.Errorf("%d rows of reserved_stock are not what held reservations have left", n)
	}
	if n := s.number(`SELECT COUNT(*) FROM reservations r WHERE (state = 'held') <> EXISTS (SELECT 1 FROM reservation_lines l
		WHERE l.device_id = r.device_id AND l.reservation_id = r.reservation_id AND l.left_quantity > 0) AND state IN ('held', 'used')`); n != 0 {
		s.t.Errorf("%d reservations are in a state that their lines contradict", n)
	}
}

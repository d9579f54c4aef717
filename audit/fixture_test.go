package audit_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
)

var settledAt = time.Date(2026, 11, 30, 10, 0, 21, 503_000_000, time.UTC)

// books is a small data set in which every outcome occurs and nothing is wrong.
type books struct {
	t  *testing.T
	db *database.DB
}

func newBooks(t *testing.T) books {
	t.Helper()
	return books{t, databasetest.New(t)}
}

func (b books) exec(statement string, args ...any) {
	b.t.Helper()
	if _, err := b.db.SQL().ExecContext(b.t.Context(), statement, args...); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

// unchecked runs statements that the schema's own constraints would refuse.
func (b books) unchecked(statements ...string) {
	b.t.Helper()
	off, on := "SET check_constraint_checks = 0", "SET check_constraint_checks = 1"
	if !isMariaDB(b) {
		alter := "ALTER TABLE device_stock ALTER CHECK device_stock_not_negative "
		off, on = alter+"NOT ENFORCED", "" // a schema that was made wrong can't be enforced again
	}
	conn, err := b.db.SQL().Conn(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, statement := range append(append([]string{off}, statements...), on) {
		if statement == "" {
			continue
		}
		if _, err := conn.ExecContext(b.t.Context(), statement); err != nil {
			b.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func isMariaDB(b books) bool {
	var found int
	err := b.db.SQL().QueryRowContext(b.t.Context(), "SELECT INSTR(VERSION(), 'MariaDB') > 0").Scan(&found)
	if err != nil {
		b.t.Fatal(err)
	}
	return found == 1
}

func (b books) fill() {
	b.t.Helper()
	for _, table := range []string{
		"device_stock", "stock_movements", "restocks", "stocktakes", "writeoffs", "settlements", "settlement_conflicts",
		"orders", "order_lines", "reviews", "discrepancies", "door_sessions", "orders_archive",
		"order_lines_archive", "stock_movements_archive", "settlement_payloads_archive", "conflict_payloads_archive", "epcs",
		"reservations", "reservation_lines", "reserved_stock",
	} {
		b.exec("DELETE FROM " + table)
	}
	b.stockOf1001()
	b.countedOf1001()
	b.settlementsOf1001()
	b.reviewsOf1001()
	b.otherCabinet()
	b.tags()
	b.reservations()
}

// reservations are one in each state, and one that is held beside another.
func (b books) reservations() {
	b.exec("UPDATE marks SET version = ? WHERE name = 'reservations'", settledAt.Add(time.Hour).UnixMilli())
	for id, state := range map[int]string{301: "held", 302: "held", 303: "used", 304: "returned", 305: "expired"} {
		b.exec(`INSERT INTO reservations (device_id, reservation_id, user_id, app, state, version, until_at, created_at, updated_at)
			VALUES (1001, ?, 42, '', ?, 1, ?, ?, ?)`, id, state, settledAt, settledAt, settledAt)
	}
	b.exec("INSERT INTO reservation_lines VALUES (1001, 301, 7, 2, 2), (1001, 301, 8, 1, 0), (1001, 302, 7, 3, 1), (1001, 303, 7, 1, 0)")
	b.exec("INSERT INTO reservation_lines VALUES (1001, 304, 7, 4, 4), (1001, 305, 8, 4, 2)")
	b.exec("INSERT INTO reserved_stock VALUES (1001, 7, 3), (1001, 8, 0)")
}

// tags are one in each state.
func (b books) tags() {
	for _, tag := range [][]any{
		{"AAAA", "in_cabinet", "staff", nil}, {"BBBB", "sold", "two-products", 101}, {"CCCC", "lost", "writeoff-1", nil},
	} {
		b.exec("INSERT INTO epcs (epc, product_id, state, device_id, close_event_id, order_id, version, updated_at) VALUES (?, 7, ?, 1001, ?, ?, 1, ?)",
			append(tag, settledAt)...)
	}
}

func (b books) stockOf1001() {
	b.exec("INSERT INTO restocks VALUES (1001, 'restock-1', '', 'ann', ?)", settledAt)
	b.movement(1001, 7, 1, "restock", 10, 10, 10, "restock-1")
	b.movement(1001, 7, 2, "sale", -2, -2, 8, "two-products")
	b.movement(1001, 7, 3, "restock", 5, 5, 13, "staff")
	b.movement(1001, 7, 4, "sale", -1, -1, 12, "doubtful")
	b.movement(1001, 7, 5, "stocktake", 0, 0, 12, "count-1")
	b.movement(1001, 7, 6, "sale", -1, 0, 12, "before-count")
	b.place(1001, 7, 6, 0, 20)
	b.movement(1001, 7, 7, "sale", -1, -1, 11, "waived")
	b.place(1001, 7, 7, 0, 21)
	b.stock(1001, 7, 11, 7, 20)

	b.movement(1001, 8, 1, "restock", 3, 3, 3, "restock-1")
	b.movement(1001, 8, 2, "sale", -1, -1, 2, "two-products")
	b.movement(1001, 8, 3, "sale", -3, -2, 0, "short")
	b.exec("INSERT INTO discrepancies VALUES (1001, 8, 3, 'shortfall', 1, 'short', ?)", settledAt)
	b.stock(1001, 8, 0, 3, nil)

	b.movement(1001, 9, 1, "restock", 4, 4, 4, "staff-doubtful")
	b.stock(1001, 9, 4, 1, nil)
	b.stock(1001, 10, 0, 0, nil) // planned, never moved

	b.movement(1001, 11, 1, "restock", 5, 5, 5, "restock-1")
	b.movement(1001, 11, 2, "review", -1, -1, 4, "204")
	b.stock(1001, 11, 4, 2, nil)
}

// countedOf1001 has a count of 8 where the books of that moment had 10, booked after staff had brought 5 more.
func (b books) countedOf1001() {
	b.exec("INSERT INTO stocktakes VALUES (1001, 'count-1', 20, 0, 'ann', ?)", settledAt)
	b.exec("INSERT INTO writeoffs VALUES (1001, 'writeoff-1', 'spoiled', 'ann', ?), (1001, 'writeoff-2', 'broken', 'ann', ?)", settledAt, settledAt)
	b.movement(1001, 12, 1, "restock", 10, 10, 10, "restock-1")
	b.movement(1001, 12, 2, "restock", 5, 5, 15, "staff")
	b.place(1001, 12, 2, 0, 22)
	b.movement(1001, 12, 3, "stocktake", -2, -2, 13, "count-1")
	b.exec("INSERT INTO discrepancies VALUES (1001, 12, 3, 'stocktake', -2, 'count-1', ?)", settledAt)
	b.movement(1001, 12, 4, "writeoff", -1, -1, 12, "writeoff-1")
	b.movement(1001, 12, 5, "writeoff", -13, -12, 0, "writeoff-2")
	b.exec("INSERT INTO discrepancies VALUES (1001, 12, 5, 'shortfall', 1, 'writeoff-2', ?)", settledAt)
	b.stock(1001, 12, 0, 5, 20)
}

func (b books) settlementsOf1001() {
	b.settled(1001, "two-products", 101, "open", line(7, 2, 500), line(8, 1, 300))
	b.settled(1001, "short", 102, "paid", line(8, 3, 300))
	b.settled(1001, "before-count", 103, "open", line(7, 1, 500))
	b.settlement(1001, "nothing", "empty", 0)
	b.settlement(1001, "staff", "restocked", 0)
	b.doorSession("door-1", "closed", "short")
	b.doorSession("door-2", "expired", nil)
}

func (b books) doorSession(id, state string, event any) {
	b.exec(`INSERT INTO door_sessions (session_id, device_id, close_event_id, user_id, kind, app, state, settled_event_id, created_at,
		expires_at) VALUES (?, 1001, ?, 42, 'sale', '', ?, ?, ?, ?)`, id, id, state, event, settledAt, settledAt)
	b.exec("UPDATE settlements SET session_id = ? WHERE device_id = 1001 AND close_event_id = ?", id, event)
}

func (b books) reviewsOf1001() {
	b.settlement(1001, "doubtful", "review", 104, line(7, 1, 500))
	b.order(1001, "doubtful", 104, "review", line(7, 1, 500))
	b.review(201, 1001, "doubtful", 104, nil)

	b.settlement(1001, "all-doubtful", "review", 0)
	b.review(202, 1001, "all-doubtful", nil, nil)

	b.settlement(1001, "waived", "review", 105, line(7, 1, 500))
	b.order(1001, "waived", 105, "open", line(7, 1, 500))
	b.review(203, 1001, "waived", 105, nil)
	b.decided(203, "waived")

	// The receipt went out before a person made the order (R15).
	b.settlement(1001, "accepted", "review", 0)
	b.exec("UPDATE settlements SET order_id = 106 WHERE close_event_id = 'accepted'")
	b.order(1001, "accepted", 106, "open")
	b.exec("INSERT INTO order_lines VALUES (1001, 106, 1, 'review', 11, 1, 500, 500, '{}')")
	b.exec("UPDATE orders SET total_minor = 500 WHERE order_id = 106")
	b.review(204, 1001, "accepted", 106, nil)
	b.decided(204, "accepted")

	b.settlement(1001, "staff-doubtful", "review", 0)
	b.review(205, 1001, "staff-doubtful", nil, nil)

	digest := digestOf("another content")
	b.exec("INSERT INTO settlement_conflicts VALUES (1001, 'two-products', ?, '{}', ?)", digest, settledAt)
	b.review(206, 1001, "two-products", 101, digest)
}

// otherCabinet has used an event id of the first one's: the two are independent.
func (b books) otherCabinet() {
	b.exec("INSERT INTO restocks VALUES (1002, 'restock-1', '', 'ann', ?)", settledAt)
	b.movement(1002, 7, 1, "restock", 6, 6, 6, "restock-1")
	b.movement(1002, 7, 2, "sale", -1, -1, 5, "two-products")
	b.stock(1002, 7, 5, 2, nil)
	b.settled(1002, "two-products", 107, "open", line(7, 1, 500))
}

func line(product, quantity, price int64) cabinet.Line {
	return cabinet.Line{ProductID: product, Quantity: quantity, UnitPriceMinor: price, AmountMinor: quantity * price}
}

func digestOf(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	return digest[:]
}

func (b books) stock(device, product, stock, version int64, counted any) {
	b.t.Helper()
	b.exec("INSERT INTO device_stock VALUES (?, ?, ?, ?, ?, 0, ?)", device, product, stock, version, counted, settledAt)
}

func (b books) movement(device, product, version int64, kind string, quantity, delta, balance int64, ref string) {
	b.t.Helper()
	b.exec("INSERT INTO stock_movements VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
		device, product, version, kind, quantity, delta, balance, ref, settledAt)
}

// place says which event of the cabinet's sequence a movement belongs to.
func (b books) place(device, product, version, epoch, seq int64) {
	b.t.Helper()
	b.exec("UPDATE stock_movements SET seq_epoch = ?, seq = ? WHERE device_id = ? AND product_id = ? AND version = ?",
		epoch, seq, device, product, version)
}

func (b books) settled(device int64, event string, order int64, status string, lines ...cabinet.Line) {
	b.t.Helper()
	b.settlement(device, event, "settled", order, lines...)
	b.order(device, event, order, status, lines...)
}

// settlement writes the row and its receipt; order 0 is none.
func (b books) settlement(device int64, event, outcome string, order int64, lines ...cabinet.Line) {
	b.t.Helper()
	receipt := cabinet.Receipt{
		CloseEventID: event, DeviceID: device, Outcome: cabinet.Outcome(outcome), Currency: "CNY",
		Lines: lines, SettledAt: settledAt,
	}
	for _, l := range lines {
		receipt.TotalMinor += l.AmountMinor
	}
	var orderID any
	if order != 0 {
		orderID, receipt.OrderID = order, strconv.FormatInt(order, 10)
	}
	text, err := json.Marshal(receipt)
	if err != nil {
		b.t.Fatal(err)
	}
	payload, digest := published(b.t, device, event)
	b.exec(`INSERT INTO settlements (device_id, close_event_id, outcome, digest, order_id, kind, user_id, priced_at, payload, receipt,
		received_at, settled_at) VALUES (?, ?, ?, ?, ?, 'sale', 42, ?, ?, ?, ?, ?)`,
		device, event, outcome, digest, orderID, settledAt, payload, text, settledAt, settledAt)
}

// published is an event as a cabinet sent it, with the digest of its meaning.
func published(t *testing.T, device int64, event string) (payload string, digest []byte) {
	t.Helper()
	payload = fmt.Sprintf(`{"closeEventId":%q,"deviceId":%d,"userId":42,"closedAt":"2026-11-30T10:00:21.480Z","items":[]}`, event, device)
	said, err := cabinet.Decode([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	sum := said.Digest()
	return payload, sum[:]
}

func (b books) order(device int64, event string, order int64, status string, lines ...cabinet.Line) {
	b.t.Helper()
	total := int64(0)
	for i, l := range lines {
		total += l.AmountMinor
		b.exec("INSERT INTO order_lines VALUES (?, ?, ?, 'settlement', ?, ?, ?, ?, '{}')",
			device, order, i+1, l.ProductID, l.Quantity, l.UnitPriceMinor, l.AmountMinor)
	}
	b.exec(`INSERT INTO orders (order_id, device_id, close_event_id, user_id, status, currency, total_minor, created_at)
		VALUES (?, ?, ?, 42, ?, 'CNY', ?, ?)`, order, device, event, status, total, settledAt)
}

func (b books) review(review, device int64, event string, order any, conflict any) {
	b.t.Helper()
	b.exec("INSERT INTO reviews VALUES (?, ?, ?, ?, ?, '[]', '[]', '{}', 'open', '', '', NULL, ?)",
		review, device, event, order, conflict, settledAt)
}

// receiptOf changes one member of a stored receipt as the text that it is.
func (b books) receiptOf(event, old, now string) {
	b.t.Helper()
	result, err := b.db.SQL().ExecContext(b.t.Context(),
		"UPDATE settlements SET receipt = REPLACE(receipt, ?, ?) WHERE device_id = 1001 AND close_event_id = ?", old, now, event)
	if err != nil {
		b.t.Fatal(err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed != 1 {
		b.t.Fatal(fmt.Errorf("receipt of %s has no %s (%w)", event, old, err))
	}
}

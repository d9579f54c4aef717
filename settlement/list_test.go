package settlement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"doortab/database"
	"doortab/deadletter"
	"doortab/settlement"
)

// many is how many rows the lists' tables hold in a test of what a page costs.
const many = 4_000

// fill puts rows for cabinets 1 to 10 straight into the tables, ten to a millisecond.
func fill(t *testing.T, db *database.DB) {
	t.Helper()
	rows := map[string][][]any{}
	for i := range int64(many) {
		at := receivedAt.Add(time.Duration(i/10) * time.Millisecond)
		id, device, event := at.UnixMilli()<<22|i, i%10+1, fmt.Sprintf("e%05d", i)
		status := "open"
		if i%2 == 0 {
			status = "waived"
		}
		receipt := fmt.Sprintf(`{"closeEventId":%q,"deviceId":%d,"outcome":"settled","reasons":[]}`, event, device)
		rows["settlements"] = append(rows["settlements"], []any{device, event, "settled", make([]byte, 32), id, "sale", at, "{}", receipt, at, at})
		rows["orders"] = append(rows["orders"], []any{id, device, event, i%100 + 1, "open", "CNY", 1, at})
		rows["order_lines"] = append(rows["order_lines"], []any{device, id, 1, "settlement", 7, 1, 1, 1, "{}"})
		rows["reviews"] = append(rows["reviews"], []any{id, device, event, id, `["conflict"]`, `[{"productId":7,"quantity":1}]`, `[]`, status, at})
		rows["discrepancies"] = append(rows["discrepancies"], []any{device, 7, i + 1, "shortfall", 1, event, at})
		rows["dead_letters"] = append(rows["dead_letters"], []any{
			id, fmt.Appendf(nil, "%032d", i), "t", "x", 1, make([]byte, 32), "malformed", "d", 1, at, at,
		})
	}
	for table, columns := range map[string][]string{
		"settlements": {
			"device_id", "close_event_id", "outcome", "digest", "order_id", "kind", "priced_at", "payload", "receipt", "received_at", "settled_at",
		},
		"orders":        {"order_id", "device_id", "close_event_id", "user_id", "status", "currency", "total_minor", "created_at"},
		"order_lines":   {"device_id", "order_id", "line", "origin", "product_id", "quantity", "unit_price_minor", "amount_minor", "evidence"},
		"reviews":       {"review_id", "device_id", "close_event_id", "order_id", "reasons", "proposed", "evidence", "status", "created_at"},
		"discrepancies": {"device_id", "product_id", "version", "kind", "quantity", "ref", "created_at"},
		"dead_letters": {
			"dead_letter_id", "fingerprint", "topic", "payload", "size", "digest", "reason", "detail", "copies", "received_at", "last_received_at",
		},
	} {
		for chunk := range slices.Chunk(rows[table], 500) {
			if err := database.Insert(db.Read(t.Context()), table, columns, chunk, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lists walks each list with its filters, in pages, and returns the places of its items.
func lists(ctx context.Context, db *database.DB) map[string]func(limit, pages int) ([]string, error) {
	from, to := receivedAt.Add(200*time.Millisecond), receivedAt.Add(205*time.Millisecond)
	settlements := func(f settlement.Filter) func(int, int) ([]string, error) {
		return walker(func(after *settlement.Settlement, limit int) ([]settlement.Settlement, error) {
			var key *settlement.SettlementKey
			if after != nil {
				key = &settlement.SettlementKey{ReceivedAt: after.ReceivedAt, DeviceID: after.DeviceID, CloseEventID: after.CloseEventID}
			}
			return settlement.ListSettlements(ctx, db, f, key, limit)
		}, func(s settlement.Settlement) string { return s.CloseEventID })
	}
	orders := func(f settlement.Filter) func(int, int) ([]string, error) {
		return walker(func(after *settlement.Order, limit int) ([]settlement.Order, error) {
			var before int64
			if after != nil {
				before = after.OrderID
			}
			return settlement.ListOrders(ctx, db, f, before, limit)
		}, func(o settlement.Order) string { return fmt.Sprint(o.CloseEventID, len(o.Lines)) })
	}
	return map[string]func(int, int) ([]string, error){
		"settlements":                settlements(settlement.Filter{}),
		"settlements of a cabinet":   settlements(settlement.Filter{DeviceID: 3}),
		"settlements of a time":      settlements(settlement.Filter{From: from, To: to}),
		"settlements of an outcome":  settlements(settlement.Filter{State: "review"}),
		"settlements of both":        settlements(settlement.Filter{DeviceID: 3, From: from, To: to}),
		"orders":                     orders(settlement.Filter{}),
		"orders of a cabinet":        orders(settlement.Filter{DeviceID: 3}),
		"orders of a user":           orders(settlement.Filter{UserID: 3}),
		"orders of a time":           orders(settlement.Filter{From: from, To: to}),
		"orders of a status":         orders(settlement.Filter{State: "review"}),
		"orders of an app":           orders(settlement.Filter{App: "shopper"}),
		"orders of all time":         orders(settlement.Filter{From: time.Unix(-1, 0), To: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}),
		"orders of a cabinet's time": orders(settlement.Filter{DeviceID: 3, From: from, To: to}),
		"reviews": walker(func(after *settlement.Review, limit int) ([]settlement.Review, error) {
			var key settlement.ReviewKey
			if after != nil {
				key = after.Key()
			}
			return settlement.ListReviews(ctx, db, key, limit)
		}, func(r settlement.Review) string { return r.CloseEventID }),
		"discrepancies": walker(func(after *settlement.Discrepancy, limit int) ([]settlement.Discrepancy, error) {
			var key *settlement.DiscrepancyKey
			if after != nil {
				key = &settlement.DiscrepancyKey{CreatedAt: after.CreatedAt, DeviceID: after.DeviceID, ProductID: after.ProductID, Version: after.Version}
			}
			return settlement.ListDiscrepancies(ctx, db, key, limit)
		}, func(d settlement.Discrepancy) string { return d.Ref }),
		"dead letters": walker(func(after *deadletter.Kept, limit int) ([]deadletter.Kept, error) {
			var before int64
			if after != nil {
				before = after.DeadLetterID
			}
			return deadletter.List(ctx, db, before, limit)
		}, func(d deadletter.Kept) string { return fmt.Sprint(d.DeadLetterID) }),
	}
}

func walker[T any](read func(after *T, limit int) ([]T, error), name func(T) string) func(limit, pages int) ([]string, error) {
	return func(limit, pages int) (names []string, err error) {
		var after *T
		for range pages {
			list, err := read(after, limit)
			if err != nil {
				return nil, err
			}
			for _, item := range list {
				names = append(names, name(item))
				after = &item
			}
			if len(list) < limit {
				return names, nil
			}
		}
		return names, nil
	}
}

func TestListsReadOnlyWhatAPageNeeds(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	fill(t, s.db)
	s.exec("UPDATE settlements SET outcome = 'review' ORDER BY received_at LIMIT 5") // the oldest: the last that a scan meets
	s.exec("UPDATE orders SET status = 'review', app = 'shopper' ORDER BY order_id LIMIT 5")
	s.exec("ANALYZE TABLE settlements, orders, order_lines, reviews, discrepancies, dead_letters")
	db, err := database.Open(database.Config{DSN: s.dsn, Pool: 1}) // one connection, whose reads the server counts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const limit, pages = 10, 4
	reads := func() (n int64) {
		err := db.Read(t.Context()).Raw(`SELECT SUM(VARIABLE_VALUE) FROM ` + statusTable(t, db) + ` WHERE VARIABLE_NAME IN
			('Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev',
			'Handler_read_rnd', 'Handler_read_rnd_next')`).
			Scan(&n).Error
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	reads()
	for name, list := range lists(t.Context(), db) {
		before := reads()
		idle := reads() - before // what counting costs
		before = reads()
		got, err := list(limit, pages)
		read := reads() - before - idle
		if err != nil || len(got) == 0 {
			t.Errorf("%s: %d items, %v", name, len(got), err)
		}
		if read > 12*limit*pages {
			t.Errorf("%s: %d rows were read for %d pages of %d", name, read, pages, limit)
		}
	}
}

func statusTable(t *testing.T, db *database.DB) string {
	t.Helper()
	var mariadb int
	if err := db.Read(t.Context()).Raw("SELECT VERSION() LIKE '%MariaDB%'").Scan(&mariadb).Error; err != nil {
		t.Fatal(err)
	}
	if mariadb == 1 {
		return "information_schema.SESSION_STATUS"
	}
	return "performance_schema.session_status"
}

func TestListsGiveEachRowOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	fill(t, s.db)
	for name, want := range map[string]int{
		"settlements": many, "settlements of a cabinet": many / 10, "settlements of a time": 50, "settlements of both": 5,
		"orders": many, "orders of a cabinet": many / 10, "orders of a user": many / 100, "orders of a time": 50,
		"orders of a cabinet's time": 5, "orders of all time": many, "reviews": many, "discrepancies": many, "dead letters": many,
	} {
		got, err := lists(t.Context(), s.db)[name](333, many)
		if err != nil || len(got) != want {
			t.Errorf("%s: %d items, want %d, %v", name, len(got), want, err)
			continue
		}
		// The names grow with the rows' times; reviews have a test of their own.
		if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) && name != "reviews" {
			t.Errorf("%s is not in order: %v", name, got[:20])
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != want {
			t.Errorf("%s gives some rows twice", name)
		}
	}
}

func TestOpenReviewsComeFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	fill(t, s.db)
	var key settlement.ReviewKey
	var last settlement.Review
	decided := 0
	for {
		list, err := settlement.ListReviews(t.Context(), s.db, key, 777)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if last.ReviewID != 0 && last.Status == r.Status && r.ReviewID <= last.ReviewID || last.Status == "waived" && r.Status == "open" {
				t.Fatalf("%s %d follows %s %d", r.Status, r.ReviewID, last.Status, last.ReviewID)
			}
			if last, key = r, r.Key(); key.Decided {
				decided++
			}
		}
		if len(list) < 777 {
			break
		}
	}
	if decided != many/2 {
		t.Errorf("%d decided reviews", decided)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, one := settlement.ReadSettlement(t.Context(), s.db, 1, "x")
	_, two := settlement.ReadOrder(t.Context(), s.db, 1)
	_, three := settlement.ReadReview(t.Context(), s.db, 1)
	for i, err := range []error{one, two, three} {
		if !errors.Is(err, settlement.ErrNotFound) {
			t.Errorf("read %d: %v", i, err)
		}
	}
}

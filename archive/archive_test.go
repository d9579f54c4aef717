package archive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/archive"
	"doortab/cabinet"
	"doortab/inventory"
	"doortab/settlement"
)

// aged has an event of each kind before the moment that it returns, and two sales after it.
func aged(t *testing.T) (s *shop, cut time.Time) {
	s = newShop(t)
	s.settle(
		sale(1001, "sold", 2), event(1001, "nothing", `"items":[]`), doubtful(1001, "waits"),
		event(1001, "brought", `"kind":"restock"`, items(7, 5)), sale(1002, "other", 1), sale(1001, "owed", 1))
	s.settle(sale(1001, "sold", 3)) // a conflict
	s.exec("UPDATE orders SET status = 'arrears' WHERE close_event_id = 'owed'")
	cut = moment()
	s.settle(sale(1001, "later", 1), sale(1002, "later", 1))
	return s, cut
}

// Of cabinet 1001 product 7 has the movements restock, sold, waits, brought, owed: the last of them stays.
func TestRunMovesWhatIsOldAndFinished(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2, 500} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			t.Parallel()
			s, cut := aged(t)
			pending, err := archive.Pending(t.Context(), s.db, archive.Options{Before: cut})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]int64{"orders": 2, "movements": 5, "payloads": 6, "conflicts": 1}
			if diff := cmp.Diff(want, byWhat(pending)); diff != "" {
				t.Errorf("pending: %s", diff)
			}
			if diff := cmp.Diff(want, s.archive(cut, batch)); diff != "" {
				t.Errorf("moved: %s", diff)
			}
			s.audited()
			for from, rows := range map[string]int64{
				"orders WHERE close_event_id IN ('waits', 'owed', 'later')": 4, "orders": 4, "orders_archive": 2,
				"order_lines": 4, "order_lines_archive": 2, "settlements": 8, "settlements WHERE payload = ''": 6,
				"settlements WHERE receipt = ''": 0, "settlement_conflicts WHERE payload = ''": 1, "conflict_payloads_archive": 1,
			} {
				if n := s.count(from); n != rows {
					t.Errorf("%s: %d rows, want %d", from, n, rows)
				}
			}
			if live, old := s.versions("stock_movements", 1001), s.versions("stock_movements_archive", 1001); !cmp.Equal(live, []int64{5, 6}) ||
				!cmp.Equal(old, []int64{1, 2, 3, 4}) {
				t.Errorf("versions %v live, %v archived", live, old)
			}
			if again := s.archive(cut, batch); len(again) != 0 {
				t.Errorf("a second run moved %v", again)
			}
			if rest := s.archive(moment(), batch); !cmp.Equal(rest, map[string]int64{"orders": 2, "movements": 2, "payloads": 2}) {
				t.Errorf("a later date moved %v", rest)
			}
			s.audited()
		})
	}
}

func TestNothingIsOldEnough(t *testing.T) {
	t.Parallel()
	s, _ := aged(t)
	if moved := s.archive(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), 0); len(moved) != 0 {
		t.Errorf("moved %v", moved)
	}
}

// TestWhatIsArchivedIsStillRead compares everything that REST shows of it.
func TestWhatIsArchivedIsStillRead(t *testing.T) {
	t.Parallel()
	s, cut := aged(t)
	type shown struct {
		Settlements []settlement.Settlement
		One         settlement.Settlement
		Order       settlement.Order
		Movements   []inventory.Movement
	}
	look := func() (x shown) {
		t.Helper()
		var err error
		if x.Settlements, err = settlement.ListSettlements(t.Context(), s.db, settlement.Filter{}, nil, 100); err != nil {
			t.Fatal(err)
		}
		x.One, x.Order = s.read(1001, "sold"), s.order(1001, "sold")
		for at := (*inventory.MovementKey)(nil); ; { // page by page, across the boundary
			page, err := inventory.ListMovements(t.Context(), s.db, 1001, 7, at, 2)
			if err != nil {
				t.Fatal(err)
			}
			x.Movements = append(x.Movements, page...)
			if len(page) < 2 {
				break
			}
			at = &inventory.MovementKey{Version: page[1].Version}
		}
		x.Order.Archived = false
		return x
	}
	before := look()
	if len(before.Movements) != 6 || len(before.One.Conflicts) != 1 || len(before.Order.Lines) != 1 || len(before.Settlements) != 8 {
		t.Fatalf("before: %+v", before)
	}
	s.archive(cut, 3)
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("archived (- before, + after):\n%s", diff)
	}
	if o := s.order(1001, "sold"); !o.Archived {
		t.Error("the order doesn't say that it is archived")
	}
	for f, want := range map[settlement.Filter]int{{}: 4, {Archived: true}: 2, {Archived: true, DeviceID: 1001}: 1, {Archived: true, UserID: 7}: 0} {
		list, err := settlement.ListOrders(t.Context(), s.db, f, 0, 100)
		if err != nil || len(list) != want {
			t.Errorf("%+v: %d orders, want %d (%v)", f, len(list), want, err)
		}
		for _, o := range list {
			if o.Archived != f.Archived || len(o.Lines) == 0 {
				t.Errorf("%+v: %+v", f, o)
			}
		}
	}
}

// A resend gets its first receipt for ever, other content is a conflict for ever, one that was there is known again.
func TestEventsStayKnown(t *testing.T) {
	t.Parallel()
	s, cut := aged(t)
	first := s.settle(sale(1001, "sold", 2), sale(1001, "sold", 3))
	s.archive(cut, 100)
	again := s.settle(sale(1001, "sold", 2), sale(1001, "sold", 3), sale(1001, "sold", 4))
	if diff := cmp.Diff(first, again[:2]); diff != "" {
		t.Errorf("resent (- before, + after):\n%s", diff)
	}
	if again[2].Outcome != cabinet.Conflict || len(s.read(1001, "sold").Conflicts) != 2 {
		t.Errorf("third content: %+v", again[2])
	}
	s.audited()
}

func TestACorrectionBringsAnOrderBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		review func(*shop) (settlement.Review, error)
	}{
		{"reopened", func(s *shop) (settlement.Review, error) { return s.reopen(s.order(1001, "sold").OrderID) }},
		{"the conflict's review", func(s *shop) (settlement.Review, error) { return s.read(1001, "sold").Reviews[0], nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, cut := aged(t)
			s.archive(cut, 100)
			review, err := c.review(s)
			if err != nil {
				t.Fatal(err)
			}
			s.audited()
			if err := s.amend(review.ReviewID, 1); err != nil {
				t.Fatal(err)
			}
			if o := s.order(1001, "sold"); o.Archived || o.TotalMinor != 500 || len(o.Lines) != 2 || o.Status != "open" {
				t.Errorf("corrected: %+v", o)
			}
			if n := s.count("orders_archive WHERE close_event_id = 'sold'") + s.count("order_lines_archive WHERE device_id = 1001"); n != 0 {
				t.Errorf("%d rows are still archived", n)
			}
			s.audited()
			if moved := s.archive(moment(), 100); moved["orders"] != 3 {
				t.Errorf("archived again with the two later ones: %v", moved)
			}
			s.audited()
		})
	}
}

// A restock door's units are known by its movements alone.
func TestARestockDoorIsCorrectedFromTheArchive(t *testing.T) {
	t.Parallel()
	s, cut := aged(t)
	s.settle(event(1001, "brought", `"kind":"restock"`, items(7, 6))) // a conflict, whose review is amended
	s.archive(cut, 100)
	before := s.stock(1001)
	if err := s.amend(s.read(1001, "brought").Reviews[0].ReviewID, 3); err != nil {
		t.Fatal(err)
	}
	if got := s.stock(1001) - before; got != -2 {
		t.Errorf("3 brought instead of 5: stock changed by %d", got)
	}
	s.audited()
}

// A stock-take as of an event whose followers are archived counts them all the same (R13).
func TestAStocktakeLooksIntoTheArchive(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		t.Run(fmt.Sprint("archived ", archived), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			for seq := range int64(5) {
				s.settle(event(1001, fmt.Sprint("e", seq), items(7, 2), fmt.Sprintf(`"seq":%d`, seq+1)))
			}
			if archived {
				if moved := s.archive(moment(), 100); moved["movements"] != 5 {
					t.Fatalf("moved %v", moved)
				}
			}
			asOf := int64(2)
			movements, err := s.stocktake(1001, &asOf, 50)
			if err != nil {
				t.Fatal(err)
			}
			// 50 were there after the second event, 2 went with each of the three that followed; the books had 96 then.
			if m := movements[0]; m.Balance != 44 || m.Difference != -46 || m.Version != 7 {
				t.Errorf("balance %d, difference %d, version %d", m.Balance, m.Difference, m.Version)
			}
			s.audited()
		})
	}
}

func (s *shop) stock(device int64) (units int64) {
	s.t.Helper()
	err := s.db.Read(context.Background()).Raw("SELECT stock FROM device_stock WHERE device_id = ? AND product_id = 7", device).
		Scan(&units).Error
	if err != nil {
		s.t.Fatal(err)
	}
	return units
}

// TestAStepThatFailsLosesNothing: a step that fails anywhere leaves all as it was before it, and another run ends the work.
func TestAStepThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, moment, table, row string }{
		{"order is copied", "BEFORE INSERT", "orders_archive", "NEW.close_event_id = 'other'"},
		{"order is removed", "BEFORE DELETE", "orders", "OLD.close_event_id = 'other'"},
		{"lines are removed", "BEFORE DELETE", "order_lines", "OLD.device_id = 1002"},
		{"movement is copied", "BEFORE INSERT", "stock_movements_archive", "NEW.version = 3"},
		{"movement is removed", "BEFORE DELETE", "stock_movements", "OLD.version = 3"},
		{"payload is copied", "BEFORE INSERT", "settlement_payloads_archive", "NEW.close_event_id = 'brought'"},
		{"payload is taken", "BEFORE UPDATE", "settlements", "OLD.close_event_id = 'brought'"},
		{"conflict is taken", "BEFORE UPDATE", "settlement_conflicts", "TRUE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, cut := aged(t)
			s.exec(fmt.Sprintf(`CREATE TRIGGER failing %s ON %s FOR EACH ROW BEGIN IF %s THEN
				SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF; END`, c.moment, c.table, c.row))
			if _, err := archive.Run(t.Context(), s.db, archive.Options{Before: cut, Batch: 2}); err == nil {
				t.Fatal("no error")
			}
			s.audited()
			s.exec("DROP TRIGGER failing")
			s.archive(cut, 2)
			s.audited()
			if n := s.count("orders_archive") + s.count("stock_movements_archive") + s.count("settlement_payloads_archive"); n != 2+5+6 {
				t.Errorf("%d rows archived, want 13", n)
			}
		})
	}
}

func TestOneProcessArchivesAtATime(t *testing.T) {
	t.Parallel()
	s, cut := aged(t)
	asked := false
	options := archive.Options{Before: cut, Batch: 1, Progress: func(archive.Progress) {
		if asked {
			return
		}
		asked = true
		if _, err := archive.Run(t.Context(), s.db, archive.Options{Before: cut}); !errors.Is(err, archive.ErrRunning) {
			t.Errorf("a second one beside it: %v", err)
		}
	}}
	if _, err := archive.Run(t.Context(), s.db, options); err != nil || !asked {
		t.Fatal(err, asked)
	}
	s.archive(cut, 1) // the lock is free again
}

// TestTablesAndArchivesHaveTheSameColumns: what one has and the other has not would be lost on the way.
func TestTablesAndArchivesHaveTheSameColumns(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	columns := func(table string) (list []string) {
		err := s.db.Read(t.Context()).Raw(`SELECT CONCAT_WS(' ', column_name, column_type, is_nullable, collation_name)
			FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? ORDER BY column_name`, table).Scan(&list).Error
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %v", table, err)
		}
		return list
	}
	for _, table := range []string{"orders", "order_lines", "stock_movements"} {
		if diff := cmp.Diff(columns(table), columns(table+"_archive")); diff != "" {
			t.Errorf("%s (- live, + archive):\n%s", table, diff)
		}
	}
}

// The tags of an event are read from its message, which is archived.
func TestACorrectionMovesTagsOfAnArchivedEvent(t *testing.T) {
	t.Parallel()
	const epc = "3036142C8C008F8000053244"
	s := newShop(t)
	s.exec("UPDATE products SET gtin = '08719139005740', gtin14 = '08719139005740' WHERE product_id = 7")
	s.settle(event(1001, "brought", `"kind":"restock"`, `"rfid":{"before":[],"after":["`+epc+`"]}`))
	s.settle(event(1001, "sold", `"rfid":{"before":["`+epc+`"],"after":[]}`))
	s.archive(moment(), 100)
	review, err := s.reopen(s.order(1001, "sold").OrderID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.amend(review.ReviewID, 0); err != nil {
		t.Fatal(err)
	}
	if n := s.count("epcs WHERE state = 'in_cabinet' AND order_id IS NULL"); n != 1 {
		t.Error("the tag that was given back is not in the cabinet")
	}
	s.audited()
}

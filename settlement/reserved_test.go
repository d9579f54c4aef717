package settlement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/reservation"
	"doortab/settlement"
)

// reserve reserves for an hour, as if before any event came: product, units, product, units …
func (s *shop) reserve(deviceID, userID int64, units ...int64) int64 {
	s.t.Helper()
	made, err := s.tryReserve(deviceID, userID, units...)
	if err != nil {
		s.t.Fatal(err)
	}
	return made.ReservationID
}

func (s *shop) tryReserve(deviceID, userID int64, units ...int64) (reservation.Reservation, error) {
	return s.tryReserveUntil(database.Now().Add(time.Hour), deviceID, userID, units...)
}

func (s *shop) tryReserveUntil(until time.Time, deviceID, userID int64, units ...int64) (made reservation.Reservation, err error) {
	request := reservation.Request{DeviceID: deviceID, UserID: userID, Until: until}
	for pair := range slices.Chunk(units, 2) {
		request.Lines = append(request.Lines, reservation.RequestLine{ProductID: pair[0], Quantity: pair[1]})
	}
	err = s.db.InTx(context.Background(), func(tx *gorm.DB) (err error) {
		if made, err = reservation.Create(tx, request, database.Now()); err != nil {
			return err
		}
		return tx.Exec("UPDATE reservations SET created_at = ? WHERE reservation_id = ?", receivedAt.Add(-time.Hour), made.ReservationID).Error
	})
	return made, err
}

func (s *shop) giveBack(reservationID int64) error {
	return s.db.InTx(context.Background(), func(tx *gorm.DB) error {
		return reservation.Return(tx, reservationID, "", database.Now())
	})
}

// leftOf is a reservation's state, then product and units left, and short where it is.
func (s *shop) leftOf(reservationID int64) string {
	s.t.Helper()
	r, err := reservation.Read(s.t.Context(), s.db, reservationID, "")
	if err != nil {
		s.t.Fatal(err)
	}
	words := []string{string(r.State)}
	for _, l := range r.Lines {
		words = append(words, fmt.Sprintf("%d:%d", l.ProductID, l.Left))
	}
	if r.Short() {
		words = append(words, "short")
	}
	return strings.Join(words, " ")
}

func saleOf(userID int64, deviceID int64, id string, taken ...int64) string {
	return event(deviceID, id, fmt.Sprintf(`"userId":%d`, userID), items(taken...))
}

// TestWhoReservedPicksUp: what each door makes of reservations of users 42 and 43, settled in one group or one by one.
func TestWhoReservedPicksUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doors    []string
		outcomes []string // and reasons
		left42   string   // 2 of 7 and 1 of 8 were reserved
		left43   string   // 3 of 7
	}{
		"their own units": {
			[]string{saleOf(42, 1001, "a", 7, 2, 8, 1), saleOf(43, 1001, "b", 7, 3)},
			[]string{"settled []", "settled []"}, "used 7:0 8:0", "used 7:0",
		},
		"a part, and then the rest": {
			[]string{saleOf(42, 1001, "a", 7, 1), saleOf(42, 1001, "b", 7, 1, 8, 1)},
			[]string{"settled []", "settled []"}, "used 7:0 8:0", "held 7:3",
		},
		"more than their own": {
			[]string{saleOf(42, 1001, "a", 7, 4)},
			[]string{"settled [reserved_taken]"}, "held 7:0 8:1", "held 7:3 short",
		},
		"one more than their own, which is free": {
			[]string{saleOf(42, 1001, "a", 7, 3)},
			[]string{"settled []"}, "held 7:0 8:1", "held 7:3",
		},
		"a stranger takes what is free": {
			[]string{saleOf(44, 1001, "a", 7, 1)},
			[]string{"settled []"}, "held 7:2 8:1", "held 7:3",
		},
		"a stranger takes what is reserved": {
			[]string{saleOf(44, 1001, "a", 7, 2)},
			[]string{"settled [reserved_taken]"}, "held 7:2 8:1", "held 7:3 short",
		},
		"a stranger takes more than there is": {
			[]string{saleOf(44, 1001, "a", 7, 7)},
			[]string{"settled [reserved_taken shortfall]"}, "held 7:2 8:1 short", "held 7:3 short",
		},
		"what a stranger took, another can't pick up, and is charged for what is taken": {
			[]string{saleOf(44, 1001, "a", 7, 6), saleOf(42, 1001, "b", 7, 2)},
			[]string{"settled [reserved_taken]", "settled [reserved_taken shortfall]"}, "held 7:0 8:1", "held 7:3 short",
		},
		"nobody known": {
			[]string{event(1001, "a", items(7, 2))},
			[]string{"review [reserved_taken unattributed]"}, "held 7:2 8:1", "held 7:3 short",
		},
		"staff": {
			[]string{event(1001, "a", `"userId":42,"kind":"restock"`, items(7, 2))},
			[]string{"restocked []"}, "held 7:2 8:1", "held 7:3",
		},
		"another cabinet": {
			[]string{saleOf(42, 1002, "a", 7, 2)},
			[]string{"settled [shortfall]"}, "held 7:2 8:1", "held 7:3",
		},
		"a doubtful line": {
			[]string{event(1001, "a", `"userId":42`, `"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":1,"confidence":0.1}]`)},
			[]string{"review [low_confidence]"}, "held 7:0 8:1", "held 7:3",
		},
		"a copy and a repeat": {
			[]string{saleOf(42, 1001, "a", 7, 1), saleOf(42, 1001, "a", 7, 1)},
			[]string{"settled []", "settled []"}, "held 7:1 8:1", "held 7:3",
		},
	} {
		for _, group := range []int{1, 10} {
			t.Run(fmt.Sprint(name, ", groups of ", group), func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				s.cabinet(1001, 7, 6, 8, 1)
				s.cabinet(1002)
				of42, of43 := s.reserve(1001, 42, 7, 2, 8, 1), s.reserve(1001, 43, 7, 3)
				var got []string
				for some := range slices.Chunk(c.doors, group) {
					device := int64(1001)
					if strings.Contains(some[0], "1002") {
						device = 1002
					}
					for _, r := range s.receipts(device, some...) {
						got = append(got, fmt.Sprint(r.Outcome, " ", r.Reasons))
					}
				}
				if diff := cmp.Diff(c.outcomes, got); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{c.left42, c.left43}, []string{s.leftOf(of42), s.leftOf(of43)}); diff != "" {
					t.Error(diff)
				}
				s.audited()
			})
		}
	}
}

// TestTheOrderStandsInFull: what others had reserved is sold all the same (R4), and alone it asks nobody.
func TestTheOrderStandsInFull(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 2)
	s.reserve(1001, 42, 7, 2)
	r := s.receipts(1001, saleOf(44, 1001, "a", 7, 2))[0]
	if r.Outcome != cabinet.Settled || r.TotalMinor != 1000 || s.count("orders", "status = 'open' AND total_minor = 1000") != 1 {
		t.Errorf("%+v", r)
	}
	if n := s.count("reviews", "1"); n != 0 {
		t.Errorf("%d reviews", n)
	}
	if told := s.rows("SELECT receipt FROM settlements"); len(told) != 1 || !strings.Contains(told[0], `"reserved_taken"`) {
		t.Errorf("stored receipts %q", told)
	}
	s.audited()
}

// TestTheEarliestEndIsPickedUpFirst, and what had ended when the door opened isn't.
func TestTheEarliestEndIsPickedUpFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 9)
	late, early, over := s.reserve(1001, 42, 7, 2), s.reserve(1001, 42, 7, 2), s.reserve(1001, 42, 7, 2)
	s.exec("UPDATE reservations SET until_at = ? WHERE reservation_id = ?", database.Now().Add(time.Minute), early)
	s.exec("UPDATE reservations SET until_at = ? WHERE reservation_id = ?", receivedAt, over)
	s.receipts(1001, sale(1001, "a", 7, 3))
	if diff := cmp.Diff([]string{"held 7:1", "used 7:0", "expired 7:2"}, []string{s.leftOf(late), s.leftOf(early), s.leftOf(over)}); diff != "" {
		t.Error(diff)
	}
	s.audited()
}

// TestWhatWasReservedLaterIsForALaterDoor: the goods of an event that comes late had gone before.
func TestWhatWasReservedLaterIsForALaterDoor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 9)
	later := s.reserve(1001, 42, 7, 2)
	s.exec("UPDATE reservations SET created_at = ?", receivedAt.Add(time.Millisecond))
	s.receipts(1001, sale(1001, "a", 7, 2))
	if got := s.leftOf(later); got != "held 7:2" {
		t.Error(got)
	}
	s.exec("UPDATE reservations SET created_at = ?", receivedAt)
	s.receipts(1001, sale(1001, "b", 7, 2))
	if got := s.leftOf(later); got != "used 7:0" {
		t.Error(got)
	}
	s.audited()
}

// TestAReviewPicksUpToo: units that a person adds are their shopper's own, as at the door; what it gives back stays used.
func TestAReviewPicksUpToo(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 9, 8, 9)
	of42, of43 := s.reserve(1001, 42, 7, 3), s.reserve(1001, 43, 7, 3)
	later := s.reserve(1001, 42, 8, 1)
	s.exec("UPDATE reservations SET created_at = ? WHERE reservation_id = ?", receivedAt.Add(time.Second), later)
	left := func(want42, want43 string) {
		t.Helper()
		if diff := cmp.Diff([]string{want42, want43, "held 8:1"}, []string{s.leftOf(of42), s.leftOf(of43), s.leftOf(later)}); diff != "" {
			t.Error(diff)
		}
		s.audited()
	}
	s.receipts(1001, event(1001, "a", `"userId":42`, `"items":[{"productId":7,"quantity":2,"confidence":0.1}]`))
	left("held 7:3", "held 7:3")
	review := s.review(1001, "a").ReviewID
	for step, c := range []struct {
		decision settlement.Decision
		units    []int64
		want42   string
	}{
		{settlement.Accept, nil, "held 7:1"},
		{settlement.Amend, []int64{7, 1}, "held 7:1"},
		{settlement.Amend, []int64{7, 4, 8, 1}, "used 7:0"},
		{settlement.Amend, nil, "used 7:0"},
	} {
		if step > 0 {
			reopened, err := s.reopen(s.orderOf(1001, "a").OrderID)
			if err != nil {
				t.Fatal(err)
			}
			review = reopened.ReviewID
		}
		if _, err := s.decide(review, c.decision, c.units...); err != nil {
			t.Fatal(err)
		}
		left(c.want42, "held 7:3")
	}
	s.receipts(1001, event(1001, "staff", `"kind":"restock"`, `"items":[{"productId":7,"quantity":2,"confidence":0.1}]`))
	s.receipts(1001, event(1001, "nobody", `"items":[{"productId":7,"quantity":1,"confidence":0.1}]`))
	for _, id := range []string{"staff", "nobody"} {
		if _, err := s.decide(s.review(1001, id).ReviewID, settlement.Accept); err != nil {
			t.Fatal(err)
		}
	}
	left("used 7:0", "held 7:3")
}

// TestALateDoorBreaksNoPromise: units that a count has seen gone already leave nobody shorter than the count did (R13).
func TestALateDoorBreaksNoPromise(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 9)
	s.receipts(1001, event(1001, "first", `"userId":44,"seq":10`, items(7, 1)))
	id := s.reserve(1001, 42, 7, 5)
	s.stocktake(1001, 10, 7, 4)
	if got := s.leftOf(id); got != "held 7:5 short" {
		t.Error(got)
	}
	if r := s.receipts(1001, event(1001, "late", `"userId":44,"seq":9`, items(7, 2)))[0]; len(r.Reasons) != 0 {
		t.Errorf("reasons %v", r.Reasons)
	}
	s.receipts(1001, event(1001, "mine", `"userId":42,"seq":8`, items(7, 2)))
	if got := s.leftOf(id); got != "held 7:3" {
		t.Errorf("picked up before the count: %s", got)
	}
	s.audited()
}

// TestWithoutReservationsNothingIsRead: the way that every settlement goes has no statement about reservations.
func TestWithoutReservationsNothingIsRead(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 9)
	s.exec("UPDATE marks SET version = ? WHERE name = 'reservations'", database.Now().Add(-time.Hour).UnixMilli())
	for _, table := range []string{"reserved_stock", "reservations", "reservation_lines"} {
		s.exec("DROP TABLE " + table)
	}
	if r := s.receipts(1001, sale(1001, "a", 7, 1))[0]; r.Outcome != cabinet.Settled {
		t.Errorf("%+v", r)
	}
	s.exec("UPDATE marks SET version = ? WHERE name = 'reservations'", database.Now().Add(time.Hour).UnixMilli())
	if a := s.settle(1001, sale(1001, "b", 7, 1))[0]; a.Err == nil {
		t.Error("with a mark ahead nothing is read either")
	}
}

// TestADoorThatCannotPickUpLeavesNothing: each of the statements fails by a trigger, and works once it is gone.
func TestADoorThatCannotPickUpLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 9)
	id := s.reserve(1001, 42, 7, 5)
	for n, table := range []string{"reservations", "reservation_lines", "reserved_stock"} {
		s.exec("CREATE TRIGGER broken BEFORE UPDATE ON " + table + " FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted'")
		was, left := s.everythingOf(1001), s.leftOf(id)
		answers := s.settle(1001, sale(1001, fmt.Sprint("a", n), 7, 1), saleOf(44, 1001, fmt.Sprint("b", n), 7, 1))
		if a := answers[0]; a.Err == nil || !a.Unwritable() || !a.Alone() {
			t.Errorf("%s: %+v", table, a)
		}
		if a := answers[1]; a.Err != nil {
			t.Errorf("%s, beside it: %+v", table, a)
		}
		s.exec("DROP TRIGGER broken")
		if cmp.Equal(was, s.everythingOf(1001)) || s.leftOf(id) != left {
			t.Errorf("%s: %s, was %s", table, s.leftOf(id), left)
		}
		s.receipts(1001, sale(1001, fmt.Sprint("a", n), 7, 1))
		s.audited()
	}
	if got := s.leftOf(id); got != "held 7:2" {
		t.Error(got)
	}
}

// TestDoorsAndAppsAtOnce: two processes settle doors of one cabinet in groups, while apps reserve and give back: what is
// reserved is right at the end, and so are the books.
func TestDoorsAndAppsAtOnce(t *testing.T) {
	t.Parallel()
	first := newShop(t)
	first.cabinet(1001, 7, 60, 8, 60)
	second := first.another(nil)
	var wait sync.WaitGroup
	for n, s := range []*shop{first, second} {
		wait.Go(func() {
			for group := range 10 {
				var list []settlement.Delivery
				for i := range int64(5) {
					user := 42 + i%3
					list = append(list, deliveriesOf(1001, saleOf(user, 1001, fmt.Sprint("e", n, "-", group, "-", i), 7, 1, 8, 1))...)
				}
				for _, a := range s.Settle(context.Background(), list) {
					if a.Err != nil {
						t.Error(a.Err)
					}
				}
			}
		})
		wait.Go(func() {
			for i := range int64(40) {
				made, err := s.tryReserve(1001, 42+i%3, 8, 1, 7, 1)
				if err == nil && i%4 == 0 {
					err = s.giveBack(made.ReservationID)
				}
				if err != nil && !errors.Is(err, reservation.ErrTooLittle) && !errors.Is(err, reservation.ErrOver) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	used := first.count("reservations", "state = 'used'")
	if used == 0 || first.count("settlements", "1") != 100 {
		t.Errorf("%d reservations used, %d settlements", used, first.count("settlements", "1"))
	}
	wrong := first.rows(`SELECT product_id, reserved FROM reserved_stock t WHERE reserved <> (SELECT COALESCE(SUM(l.left_quantity), 0)
		FROM reservation_lines l JOIN reservations r USING (device_id, reservation_id)
		WHERE r.state = 'held' AND l.device_id = t.device_id AND l.product_id = t.product_id)`)
	if len(wrong) != 0 {
		t.Errorf("reserved_stock %q", wrong)
	}
	first.audited()
}

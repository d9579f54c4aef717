package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/database"
)

func TestStockLessWhatIsReservedDecides(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 5, 8, 2)
	s.stock(1002, 7, 1)
	first := s.reserve(ask(1001, 42, 8, 1, 7, 3))
	if got := s.told(first.ReservationID); got != "held, 7: 3 of 3, 8: 1 of 1" {
		t.Error(got)
	}
	for name, c := range map[string]struct {
		request Request
		want    error
	}{
		"more than is free":               {ask(1001, 43, 7, 3), ErrTooLittle},
		"one line free, the other not":    {ask(1001, 43, 8, 1, 7, 3), ErrTooLittle},
		"what the cabinet never had":      {ask(1001, 43, 9, 1), ErrTooLittle},
		"what another cabinet has":        {ask(1002, 43, 7, 2), ErrTooLittle},
		"nothing":                         {ask(1001, 43), ErrInvalid},
		"none":                            {ask(1001, 43, 7, 0), ErrInvalid},
		"below none":                      {ask(1001, 43, 7, -3), ErrInvalid},
		"a thousand million":              {ask(1001, 43, 7, 1e9), ErrInvalid},
		"a product twice":                 {ask(1001, 43, 7, 1, 7, 1), ErrInvalid},
		"an end that is over":             {Request{DeviceID: 1001, Lines: ask(0, 0, 7, 1).Lines, Until: database.Now()}, ErrInvalid},
		"an end more than a week ahead":   {Request{DeviceID: 1001, Lines: ask(0, 0, 7, 1).Lines, Until: s.now.Add(MaxAhead + time.Minute)}, ErrInvalid},
		"an end that no clock can be set": {Request{DeviceID: 1001, Lines: ask(0, 0, 7, 1).Lines}, ErrInvalid},
	} {
		if _, err := s.try(c.request); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.number("SELECT COUNT(*) FROM reservations"); n != 1 || s.reserved(1001, 7) != 3 || s.reserved(1001, 8) != 1 || s.reserved(1001, 9) != 0 {
		t.Errorf("refusals left something: %d reservations, %d and %d reserved", n, s.reserved(1001, 7), s.reserved(1001, 8))
	}
	s.reserve(ask(1001, 43, 7, 2))
	if n := s.number("SELECT SUM(version) FROM device_stock WHERE device_id = 1001 AND stock > 0"); n != 2 {
		t.Errorf("versions of book stock add up to %d: a reservation moved one", n)
	}
	if n := s.number("SELECT COUNT(*) FROM audit_log WHERE action = 'reservation.create' AND actor = 'the app'"); n != 2 {
		t.Errorf("%d lines in the audit log", n)
	}
	s.balanced()
}

func TestGivingBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 5)
	mine := s.reserve(ask(1001, 42, 7, 5))
	if err := s.giveBack(mine.ReservationID, "another app"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an app gives back what is not its own: %v", err)
	}
	if err := s.giveBack(mine.ReservationID+1, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	for range 2 {
		if err := s.giveBack(mine.ReservationID, "shopper"); err != nil {
			t.Error(err)
		}
		if got := s.told(mine.ReservationID); got != "returned, 7: 5 of 5" || s.reserved(1001, 7) != 0 {
			t.Errorf("%s, %d reserved", got, s.reserved(1001, 7))
		}
	}
	if n := s.number("SELECT COUNT(*) FROM audit_log WHERE action = 'reservation.return'"); n != 1 {
		t.Errorf("%d lines in the audit log", n)
	}
	late := s.reserve(ask(1001, 42, 7, 5))
	s.overdue(late.ReservationID)
	if err := s.giveBack(late.ReservationID, ""); !errors.Is(err, ErrOver) {
		t.Errorf("one that is overdue: %v", err)
	}
	used := s.reserve(ask(1001, 42, 7, 5)) // the overdue one makes room
	if _, err := s.pickUp(Shopper{1001, 42}, 7, 5); err != nil {
		t.Error(err)
	}
	if err := s.giveBack(used.ReservationID, ""); !errors.Is(err, ErrOver) || s.told(used.ReservationID) != "used, 7: 0 of 5" {
		t.Errorf("one that is used: %v, %s", err, s.told(used.ReservationID))
	}
	s.balanced()
}

func TestWhatIsOverdueExpires(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 400)
	for range 2*sweepRows + 1 {
		s.reserve(ask(1001, 42, 7, 1))
	}
	s.exec("UPDATE reservations SET until_at = ?", database.Now())
	kept := s.reserve(ask(1001, 42, 7, 100))
	if got, err := List(t.Context(), s.db, Filter{State: Expired}, 0, 500); err != nil || len(got) != 2*sweepRows+1 {
		t.Errorf("%d listed as expired before the sweep, %v", len(got), err)
	}
	swept, err := Sweep(t.Context(), s.db)
	if err != nil || swept != 2*sweepRows+1 || s.reserved(1001, 7) != 100 {
		t.Errorf("%d swept, %d reserved, %v", swept, s.reserved(1001, 7), err)
	}
	if swept, err = Sweep(t.Context(), s.db); err != nil || swept != 0 || s.told(kept.ReservationID) != "held, 7: 100 of 100" {
		t.Errorf("%d swept again, %v", swept, err)
	}
	s.overdue(kept.ReservationID)
	if lack, err := s.pickUp(Shopper{1001, 42}, 7, 1); err != nil || lack || s.reserved(1001, 7) != 100 {
		t.Errorf("a door after the end picked up: %d reserved, %v", s.reserved(1001, 7), err)
	}
	s.balanced()
}

func TestOneIsEndedOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 5)
	r := s.reserve(ask(1001, 42, 7, 2))
	for _, step := range []struct {
		what string
		do   func()
		due  time.Time
		want string
	}{
		{"with time left", func() {}, r.Until, "held, 7: 2 of 2"},
		{"overdue", func() { s.overdue(r.ReservationID) }, time.Time{}, "expired, 7: 2 of 2"},
		{"again", func() {}, time.Time{}, "expired, 7: 2 of 2"},
	} {
		step.do()
		due, err := End(t.Context(), s.db, r.ReservationID)
		if got := s.told(r.ReservationID); err != nil || !due.Equal(step.due) || got != step.want {
			t.Errorf("%s: due %v, %v, %s", step.what, due, err, got)
		}
	}
	if s.reserved(1001, 7) != 0 {
		t.Errorf("%d reserved", s.reserved(1001, 7))
	}
	if due, err := End(t.Context(), s.db, 1); err != nil || !due.IsZero() {
		t.Errorf("one that is not there: %v, %v", due, err)
	}
}

func TestListsAndFilters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 9)
	s.stock(1002, 7, 9)
	other := ask(1001, 44, 7, 1)
	other.App = "shopper " // another one, to the letter
	var ids []int64
	for _, r := range []Request{ask(1001, 42, 7, 1), ask(1002, 42, 7, 1), ask(1001, 43, 7, 1), other} {
		ids = append(ids, s.reserve(r).ReservationID)
	}
	if err := s.giveBack(ids[1], ""); err != nil {
		t.Fatal(err)
	}
	s.overdue(ids[2])
	for name, c := range map[string]struct {
		filter Filter
		before int64
		limit  int
		want   []int
	}{
		"all":           {Filter{}, 0, 9, []int{3, 2, 1, 0}},
		"two":           {Filter{}, 0, 2, []int{3, 2}},
		"the next two":  {Filter{}, ids[2], 2, []int{1, 0}},
		"a cabinet's":   {Filter{DeviceID: 1001}, 0, 9, []int{3, 2, 0}},
		"a shopper's":   {Filter{UserID: 42}, 0, 9, []int{1, 0}},
		"an app's":      {Filter{App: "shopper"}, 0, 9, []int{2, 1, 0}},
		"held":          {Filter{State: Held}, 0, 9, []int{3, 0}},
		"returned":      {Filter{State: Returned}, 0, 9, []int{1}},
		"expired":       {Filter{State: Expired}, 0, 9, []int{2}},
		"used":          {Filter{State: Used}, 0, 9, nil},
		"held and both": {Filter{DeviceID: 1001, UserID: 42, State: Held}, 0, 9, []int{0}},
	} {
		list, err := List(t.Context(), s.db, c.filter, c.before, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, r := range list {
			got = append(got, slices.Index(ids, r.ReservationID))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTheYoungestAreShort: short follows the stock of the moment, and nothing of it is kept.
func TestTheYoungestAreShort(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 6, 8, 5)
	first, second, third := s.reserve(ask(1001, 42, 7, 2)), s.reserve(ask(1001, 43, 7, 3, 8, 1)), s.reserve(ask(1001, 44, 7, 1))
	for _, step := range []struct {
		what string
		do   func()
		want [3]string
	}{
		{"as made", func() {}, [3]string{"held, 7: 2 of 2", "held, 7: 3 of 3, 8: 1 of 1", "held, 7: 1 of 1"}},
		{"a stranger takes 3", func() { s.stranger(t, 3) },
			[3]string{"held, 7: 2 of 2", "held, 7: 3 of 3 (2 short), 8: 1 of 1", "held, 7: 1 of 1 (1 short)"}},
		{"and 2 more", func() { s.stranger(t, 2) },
			[3]string{"held, 7: 2 of 2 (1 short)", "held, 7: 3 of 3 (3 short), 8: 1 of 1", "held, 7: 1 of 1 (1 short)"}},
		{"staff bring 4", func() { s.stock(1001, 7, 4) },
			[3]string{"held, 7: 2 of 2", "held, 7: 3 of 3, 8: 1 of 1", "held, 7: 1 of 1 (1 short)"}},
		{"the oldest is returned", func() { _ = s.giveBack(first.ReservationID, "") },
			[3]string{"returned, 7: 2 of 2", "held, 7: 3 of 3, 8: 1 of 1", "held, 7: 1 of 1"}},
		{"the second is overdue", func() { s.overdue(second.ReservationID); s.stranger(t, 4) },
			[3]string{"returned, 7: 2 of 2", "expired, 7: 3 of 3, 8: 1 of 1", "held, 7: 1 of 1"}},
	} {
		step.do()
		got := [3]string{s.told(first.ReservationID), s.told(second.ReservationID), s.told(third.ReservationID)}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
}

func (s *shop) stranger(t *testing.T, units int64) {
	t.Helper()
	if _, err := s.pickUp(Shopper{1001, 99}, 7, units); err != nil {
		t.Error(err)
	}
}

func TestTheMarkRunsAheadOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 9)
	mark := func() int64 { return s.number("SELECT version FROM marks WHERE name = 'reservations'") }
	if Possible(mark(), s.now) {
		t.Error("something may be held although nothing ever was")
	}
	long := ask(1001, 42, 7, 1)
	long.Until = s.now.Add(time.Hour)
	s.reserve(long)
	high := mark()
	if end := long.Until.UnixMilli(); high < end || high >= end+markStep.Milliseconds() || high%markStep.Milliseconds() != 0 {
		t.Errorf("mark %d for an end at %d", high, end)
	}
	short := ask(1001, 42, 7, 1)
	short.Until = s.now.Add(time.Minute)
	s.reserve(short)
	if mark() != high {
		t.Errorf("mark %d fell to %d", high, mark())
	}
	for name, c := range map[string]struct {
		at   time.Time
		want bool
	}{
		"now":                    {s.now, true},
		"at the end":             {long.Until, true},
		"before a sweep is sure": {time.UnixMilli(high).Add(afterMark - time.Millisecond), true},
		"long after":             {time.UnixMilli(high).Add(afterMark), false},
	} {
		if got := Possible(high, c.at); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s.exec("DELETE FROM marks") // it comes back by itself
	s.reserve(short)
	if !Possible(mark(), s.now) {
		t.Error("no mark")
	}
}

// TestEachStatementThatFailsLeavesNothing: a trigger makes each statement fail.
func TestEachStatementThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 9, 8, 9)
	before := s.reserve(ask(1001, 42, 7, 3))
	gone := s.reserve(ask(1001, 42, 7, 1))
	if err := s.giveBack(gone.ReservationID, ""); err != nil {
		t.Fatal(err)
	}
	everything := func() (all []string) {
		for _, table := range []string{"reservations", "reservation_lines", "reserved_stock", "marks", "audit_log", "device_stock"} {
			all = append(all, s.rows(table)...)
		}
		return all
	}
	was := everything()
	long := ask(1001, 43, 7, 1, 8, 1)
	long.Until = s.now.Add(24 * time.Hour)
	works := map[string]func() error{
		"create":  func() error { _, err := s.try(long); return err },
		"return":  func() error { return s.giveBack(before.ReservationID, "") },
		"pick up": func() error { _, err := s.pickUp(Shopper{1001, 42}, 7, 2); return err },
		"sweep": func() error {
			_, _, err := sweepSome(context.Background(), s.db, s.now.Add(2*time.Hour))
			return err
		},
	}
	for _, c := range []struct{ work, moment, table string }{
		{"create", "INSERT", "reservations"}, {"create", "INSERT", "reservation_lines"}, {"create", "INSERT", "reserved_stock"},
		{"create", "UPDATE", "reserved_stock"}, {"create", "UPDATE", "marks"}, {"create", "INSERT", "audit_log"},
		{"return", "UPDATE", "reservations"}, {"return", "UPDATE", "reserved_stock"}, {"return", "INSERT", "audit_log"},
		{"pick up", "UPDATE", "reservations"}, {"pick up", "UPDATE", "reservation_lines"}, {"pick up", "UPDATE", "reserved_stock"},
		{"sweep", "UPDATE", "reservations"}, {"sweep", "UPDATE", "reserved_stock"},
	} {
		s.exec(fmt.Sprintf("CREATE TRIGGER broken BEFORE %s ON %s FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted'", c.moment, c.table))
		if err := works[c.work](); err == nil {
			t.Errorf("%s went through although %s of %s failed", c.work, c.moment, c.table)
		}
		if diff := cmp.Diff(was, everything()); diff != "" {
			t.Errorf("%s, %s of %s: %s", c.work, c.moment, c.table, diff)
		}
		s.exec("DROP TRIGGER broken")
	}
	for _, work := range []string{"create", "pick up", "return"} {
		if err := works[work](); err != nil {
			t.Errorf("%s without the trigger: %v", work, err)
		}
	}
	s.balanced()
}

// TestRowsThatWereWrongStopNobody: what is reserved never goes below 0.
func TestRowsThatWereWrongStopNobody(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 9, 8, 9)
	r := s.reserve(ask(1001, 42, 7, 3, 8, 3))
	s.exec("UPDATE reserved_stock SET reserved = 1 WHERE product_id = 7")
	s.exec("DELETE FROM reserved_stock WHERE product_id = 8")
	s.inTx(func(tx *gorm.DB) error { return Return(tx, r.ReservationID, "", database.Now()) })
	if s.reserved(1001, 7) != 0 || s.told(r.ReservationID) != "returned, 7: 3 of 3, 8: 3 of 3" {
		t.Errorf("%d reserved, %s", s.reserved(1001, 7), s.told(r.ReservationID))
	}
}

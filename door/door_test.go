package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
)

func start(t *testing.T, db *database.DB, deviceID, userID int64, at time.Time) (s Session, err error) {
	t.Helper()
	ctx := auditlog.WithActor(context.Background(), "the app")
	err = db.InTx(ctx, func(tx *gorm.DB) (err error) {
		s, err = Start(tx, Request{DeviceID: deviceID, UserID: userID, Kind: cabinet.KindSale, App: "shopper"}, at)
		return err
	})
	return s, err
}

func started(t *testing.T, db *database.DB, deviceID, userID int64, at time.Time) Session {
	t.Helper()
	s, err := start(t, db, deviceID, userID, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stateOf is the state as it is kept, and what the session holds.
func stateOf(t *testing.T, db *database.DB, sessionID string) string {
	t.Helper()
	var row struct {
		State                string
		OpenDevice, OpenUser int64
	}
	err := db.Read(t.Context()).Raw(`SELECT state, COALESCE(open_device, 0) AS open_device, COALESCE(open_user, 0) AS open_user
		FROM door_sessions WHERE session_id = ?`, sessionID).Scan(&row).Error
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(row.State, " ", row.OpenDevice, " ", row.OpenUser)
}

func TestACabinetAndAShopperHaveOneOpenSession(t *testing.T) {
	t.Parallel()
	db, now := databasetest.New(t), database.Now()
	first := started(t, db, 1, 42, now)
	if first.State != Opening || !minted(first.SessionID) || !minted(first.CloseEventID) || !first.ExpiresAt.Equal(now.Add(time.Minute)) {
		t.Errorf("session %+v", first)
	}
	if _, err := start(t, db, 1, 43, now); !errors.Is(err, ErrCabinetBusy) {
		t.Errorf("another shopper: %v", err)
	}
	if _, err := start(t, db, 2, 42, now); !errors.Is(err, ErrUserBusy) {
		t.Errorf("another cabinet: %v", err)
	}
	started(t, db, 2, 43, now)

	// Its time over, it makes room before any sweep.
	later := now.Add(OpenWithin)
	second := started(t, db, 1, 43+1, later)
	if got := stateOf(t, db, first.SessionID); got != "expired 0 0" {
		t.Errorf("the overdue one is %q", got)
	}
	if got := stateOf(t, db, second.SessionID); got != "opening 1 44" {
		t.Errorf("the next one is %q", got)
	}
	var actors []string
	if err := db.Read(t.Context()).Raw("SELECT actor FROM audit_log WHERE action = 'door_session.start'").Scan(&actors).Error; err != nil {
		t.Fatal(err)
	}
	if len(actors) != 3 || actors[0] != "the app" {
		t.Errorf("audit log %q", actors)
	}
}

func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	db, now := databasetest.New(t), database.Now()
	for name, of := range map[string]func(i int64) (deviceID, userID int64){
		"one cabinet": func(i int64) (int64, int64) { return 1, 100 + i },
		"one shopper": func(i int64) (int64, int64) { return 100 + i, 7 },
		"both":        func(int64) (int64, int64) { return 2, 8 },
	} {
		var wait sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			wait.Go(func() {
				device, user := of(int64(i))
				_, errs[i] = start(t, db, device, user, now)
			})
		}
		wait.Wait()
		opened := 0
		for _, err := range errs {
			switch {
			case err == nil:
				opened++
			case !errors.Is(err, ErrCabinetBusy) && !errors.Is(err, ErrUserBusy):
				t.Errorf("%s: %v", name, err)
			}
		}
		if opened != 1 {
			t.Errorf("%s: %d opened", name, opened)
		}
	}
}

func TestWhatACabinetReports(t *testing.T) {
	t.Parallel()
	db, now := databasetest.New(t), database.Now()
	for i, c := range []struct {
		name    string
		before  State // as it is when the report comes
		age     time.Duration
		foreign bool
		report  cabinet.DoorState
		want    string // D and U are what the session holds
	}{
		{"opened", Opening, 0, false, cabinet.DoorOpened, "open D U"},
		{"refused", Opening, 0, false, cabinet.DoorRefused, "refused 0 0"},
		{"not pulled", Opening, 0, false, cabinet.DoorNotPulled, "expired 0 0"},
		{"of another cabinet", Opening, 0, true, cabinet.DoorRefused, "opening D U"},
		{"opened too late", Opening, OpenWithin, false, cabinet.DoorOpened, "opening D U"},
		{"opened twice", Open, 0, false, cabinet.DoorOpened, "open D U"},
		{"refused after it was open", Open, 0, false, cabinet.DoorRefused, "open D U"},
		{"opened after it was refused", Refused, 0, false, cabinet.DoorOpened, "refused 0 0"},
		{"opened after it expired", Expired, 0, false, cabinet.DoorOpened, "expired 0 0"},
		{"opened after it was closed", Closed, 0, false, cabinet.DoorOpened, "closed 0 0"},
	} {
		device := int64(i + 1)
		s := started(t, db, device, device, now.Add(-c.age))
		if c.before != Opening {
			held := c.before == Open
			err := db.Read(t.Context()).Exec(`UPDATE door_sessions SET state = ?, open_device = IF(?, open_device, NULL),
				open_user = IF(?, open_user, NULL) WHERE session_id = ?`, c.before, held, held, s.SessionID).Error
			if err != nil {
				t.Fatal(err)
			}
		}
		reporter := device
		if c.foreign {
			reporter = 999
		}
		report := Report{DeviceID: reporter, DoorReport: cabinet.DoorReport{SessionID: s.SessionID, State: c.report}}
		if err := Apply(t.Context(), db, []Report{report}); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if want[len(want)-1] == 'U' {
			want = fmt.Sprint(want[:len(want)-4], " ", device, " ", device)
		}
		if got := stateOf(t, db, s.SessionID); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

func TestAnOpenDoorIsWaitedForLonger(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	s := started(t, db, 1, 42, database.Now().Add(-OpenWithin/2))
	reports := NewReports(db, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { reports.Run(ctx) })
	acked := make(chan struct{})
	reports.Offer(Report{1, cabinet.DoorReport{SessionID: "none", State: cabinet.DoorOpened}, func() {}})
	reports.Offer(Report{1, cabinet.DoorReport{SessionID: s.SessionID, State: cabinet.DoorOpened}, func() { close(acked) }})
	<-acked
	cancel()
	running.Wait()
	read, err := Read(t.Context(), db, s.SessionID)
	if left := time.Until(read.ExpiresAt); err != nil || read.State != Open || left < CloseWithin-time.Minute || left > CloseWithin {
		t.Errorf("%+v, %v", read, err)
	}
}

func TestTheSweepEndsWhatIsOverdue(t *testing.T) {
	t.Parallel()
	db, now := databasetest.New(t), database.Now()
	fresh := started(t, db, 1, 1, now)
	rows := make([][]any, sweepRows+100)
	for i := range rows {
		s, err := mint(Request{DeviceID: int64(1000 + i), UserID: int64(1000 + i), Kind: cabinet.KindSale}, now.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		state := Opening
		if i%2 == 1 {
			state = Open
		}
		rows[i] = []any{s.SessionID, s.DeviceID, s.CloseEventID, s.UserID, s.Kind, "", state, s.DeviceID, s.UserID, s.CreatedAt, s.ExpiresAt}
	}
	overdue := rows[0][0].(string)
	err := database.Insert(db.Read(t.Context()), "door_sessions", []string{
		"session_id", "device_id", "close_event_id", "user_id", "kind", "app", "state", "open_device", "open_user", "created_at", "expires_at",
	}, rows, "")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Read(t.Context(), db, overdue); err != nil || s.State != Expired {
		t.Errorf("read before the sweep: %+v, %v", s, err)
	}
	if swept, err := Sweep(t.Context(), db); err != nil || swept != int64(len(rows)) {
		t.Errorf("swept %d, %v", swept, err)
	}
	if got := stateOf(t, db, overdue); got != "expired 0 0" {
		t.Errorf("overdue: %q", got)
	}
	if got := stateOf(t, db, fresh.SessionID); got != "opening 1 1" {
		t.Errorf("fresh: %q", got)
	}
	if swept, err := Sweep(t.Context(), db); err != nil || swept != 0 {
		t.Errorf("the second sweep: %d, %v", swept, err)
	}
}

func TestASessionIsWithdrawn(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	s := started(t, db, 1, 42, database.Now())
	if err := Withdraw(t.Context(), db, s.SessionID); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, db, s.SessionID); got != "expired 0 0" {
		t.Errorf("%q", got)
	}
	started(t, db, 1, 42, database.Now())
	if _, err := Read(t.Context(), db, "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
}

func TestASessionEndsOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	db, now := databasetest.New(t), database.Now()
	overdue, young := started(t, db, 1, 42, now.Add(-OpenWithin)), started(t, db, 2, 43, now)
	for name, c := range map[string]struct {
		id    string
		due   time.Time
		state string
	}{
		"overdue":       {overdue.SessionID, time.Time{}, "expired 0 0"},
		"has time left": {young.SessionID, young.ExpiresAt, "opening 2 43"},
	} {
		for range 2 { // also a second time
			due, err := End(t.Context(), db, c.id)
			if err != nil || !due.Equal(c.due) {
				t.Errorf("%s: due %s, %v; want %s", name, due, err, c.due)
			}
			if got := stateOf(t, db, c.id); got != c.state {
				t.Errorf("%s is %q, want %q", name, got, c.state)
			}
		}
	}
	if due, err := End(t.Context(), db, "unknown"); err != nil || !due.IsZero() {
		t.Errorf("unknown: %s, %v", due, err)
	}
}

// Package door keeps door sessions: who may open which cabinet, from the unlock to the door-close event that ends it.
//
// A cabinet and a shopper have at most one open session each, which unique keys in the database decide. Every change of
// state is compare-and-set, so that of two writers one wins and what comes too late changes nothing.
package door

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/cabinet"
	"doortab/database"
)

const (
	// OpenWithin is how long a cabinet has to open its door, the shopper's way to it included.
	OpenWithin = 60 * time.Second
	// CloseWithin is how long an open door is waited for; an event that comes later settles all the same.
	CloseWithin = 30 * time.Minute
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound    = errors.New("no such door session")
	ErrCabinetBusy = errors.New("has an open door session already: wait until its door is closed")
	ErrUserBusy    = errors.New("has an open door session already: close that door first")
)

// State says how far a session is.
type State string

// The states: opening, then open, then one of the others. Closed is one whose event is settled, also where it had
// expired or was refused before.
const (
	Opening State = "opening" // the cabinet was told to unlock
	Open    State = "open"    // it said that the door is open
	Closed  State = "closed"  // its door-close event is settled
	Expired State = "expired" // nobody pulled the door, or the cabinet was not heard of again
	Refused State = "refused" // the cabinet would not open
)

// Session is one door session as it is kept.
type Session struct {
	SessionID      string
	DeviceID       int64
	CloseEventID   string // minted with the session, for the cabinet to report with
	UserID         int64  // a shopper's, or a member of staff's
	Kind           cabinet.Kind
	App            string // the name of the app that opened it; "" for staff
	State          State
	SettledEventID *string // the event that closed it; nil until then
	CreatedAt      time.Time
	ExpiresAt      time.Time
}

// pending: the session still holds its cabinet and its shopper, if its time is not over.
func (s Session) pending() bool { return s.State == Opening || s.State == Open }

func (s Session) overdue(now time.Time) bool { return s.pending() && !s.ExpiresAt.After(now) }

// Request says who wants to open what.
type Request struct {
	DeviceID int64
	UserID   int64
	Kind     cabinet.Kind
	App      string // "" for staff
}

const columns = `session_id, device_id, close_event_id, user_id, kind, app, state, settled_event_id, created_at, expires_at`

// Start begins a session in the caller's transaction, which has found that the cabinet exists and may open. It returns
// [ErrCabinetBusy] or [ErrUserBusy] where one is open, and ends those that are overdue. The caller publishes its
// [Session.Unlock] after COMMIT (R7).
func Start(tx *gorm.DB, r Request, now time.Time) (Session, error) {
	if err := makeRoom(tx, r, now); err != nil {
		return Session{}, err
	}
	s, err := mint(r, now)
	if err != nil {
		return Session{}, err
	}
	err = database.Insert(tx, "door_sessions",
		[]string{
			"session_id", "device_id", "close_event_id", "user_id", "kind", "app", "state", "open_device", "open_user",
			"created_at", "expires_at",
		},
		[][]any{{
			s.SessionID, s.DeviceID, s.CloseEventID, s.UserID, s.Kind, s.App, s.State, s.DeviceID, s.UserID,
			s.CreatedAt, s.ExpiresAt,
		}}, "")
	if database.IsDuplicate(err) { // somebody was first: the next run sees who
		return Session{}, fmt.Errorf("door session of cabinet %d: %w", r.DeviceID, database.ErrConflict)
	}
	if err != nil {
		return Session{}, err
	}
	return s, auditlog.Write(tx, auditlog.Entry{
		Action: "door_session.start", Target: "door session " + s.SessionID,
		After: map[string]any{"deviceId": s.DeviceID, "userId": s.UserID, "kind": s.Kind},
	}, now)
}

func mint(r Request, now time.Time) (Session, error) {
	session, err := uuid.NewV7()
	if err != nil {
		return Session{}, fmt.Errorf("door session id: %w", err)
	}
	event, err := uuid.NewV7()
	if err != nil {
		return Session{}, fmt.Errorf("close event id: %w", err)
	}
	return Session{
		SessionID: session.String(), DeviceID: r.DeviceID, CloseEventID: event.String(), UserID: r.UserID, Kind: r.Kind,
		App: r.App, State: Opening, CreatedAt: now, ExpiresAt: now.Add(OpenWithin),
	}, nil
}

// makeRoom ends what is overdue of the cabinet and the shopper, and refuses where something is left.
func makeRoom(tx *gorm.DB, r Request, now time.Time) error {
	var held []Session
	err := tx.Raw(`SELECT `+columns+` FROM door_sessions WHERE open_device = ?
		UNION SELECT `+columns+` FROM door_sessions WHERE open_user = ? ORDER BY session_id`, r.DeviceID, r.UserID).Scan(&held).Error
	if err != nil {
		return fmt.Errorf("read open door sessions: %w", err)
	}
	var overdue []string
	for _, s := range held {
		switch {
		case s.overdue(now):
			overdue = append(overdue, s.SessionID)
		case s.DeviceID == r.DeviceID:
			return fmt.Errorf("cabinet %d %w", r.DeviceID, ErrCabinetBusy)
		default:
			return fmt.Errorf("user %d %w", r.UserID, ErrUserBusy)
		}
	}
	_, err = expire(tx, overdue, now)
	return err
}

// Read reads one session, or returns [ErrNotFound]. One that is overdue is expired, whether it was swept yet or not.
func Read(ctx context.Context, db *database.DB, sessionID string) (Session, error) {
	var list []Session
	err := db.Read(ctx).Raw("SELECT "+columns+" FROM door_sessions WHERE session_id = ?", sessionID).Scan(&list).Error
	if err != nil {
		return Session{}, fmt.Errorf("read door session: %w", err)
	}
	if len(list) == 0 {
		return Session{}, ErrNotFound
	}
	if s := list[0]; !s.overdue(database.Now()) {
		return s, nil
	}
	list[0].State = Expired
	return list[0], nil
}

// Unlock is what the cabinet is told once the session is committed.
func (s Session) Unlock() cabinet.Unlock {
	return cabinet.Unlock{SessionID: s.SessionID, CloseEventID: s.CloseEventID, Kind: s.Kind, ExpiresAt: s.ExpiresAt}
}

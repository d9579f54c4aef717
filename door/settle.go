package door

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/database"
)

// Claim is what a door-close event says by which its session can be found (R11).
type Claim struct {
	DeviceID     int64
	CloseEventID string
	SessionID    string // "" for none
}

// Sessions are those that a group of events may belong to.
type Sessions struct {
	byID    map[string]Session
	byEvent map[eventKey]Session
}

type eventKey struct {
	deviceID     int64
	closeEventID string
}

// Of finds a claim's session: the one that minted the event's id, else the one that the event names. A session of another
// cabinet is not the event's; foreign tells that it names one, or one that its id does not belong to.
func (s Sessions) Of(c Claim) (found *Session, foreign bool) {
	own, isOwn := s.byEvent[eventKey{c.DeviceID, c.CloseEventID}]
	named, isNamed := s.byID[c.SessionID]
	switch {
	case isOwn:
		session := own // only where there is one is it worth memory
		return &session, isNamed && named.SessionID != own.SessionID
	case isNamed && named.DeviceID == c.DeviceID:
		session := named
		return &session, false
	default:
		return nil, isNamed
	}
}

// Find reads the sessions of claims, and none where no claim can have one: the ids of other systems are seldom UUIDs of version 7,
// which all of a session's ids are. Those that an event names are read only where the event is not of the session that it names.
func Find(tx *gorm.DB, claims []Claim) (Sessions, error) {
	found := Sessions{byID: map[string]Session{}, byEvent: map[eventKey]Session{}}
	var events [][]any
	for _, c := range claims {
		if minted(c.CloseEventID) {
			events = append(events, []any{c.DeviceID, c.CloseEventID})
		}
	}
	if err := found.readByEvent(tx, events); err != nil {
		return found, err
	}
	var ids []string
	for _, c := range claims {
		if _, known := found.byID[c.SessionID]; !known && minted(c.SessionID) {
			ids = append(ids, c.SessionID)
		}
	}
	return found, found.readByID(tx, ids)
}

func (s Sessions) readByEvent(tx *gorm.DB, events [][]any) error {
	if len(events) == 0 {
		return nil
	}
	rows, err := database.ReadEachBy(tx, "door_sessions", "door_sessions_event",
		[]database.Column{database.Int("device_id"), database.Code("close_event_id")}, strings.Split(columns, ", "), events)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var session Session
		if err := tx.ScanRows(rows, &session); err != nil {
			return fmt.Errorf("read a door session: %w", err)
		}
		s.add(session)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read door sessions: %w", err)
	}
	return nil
}

func (s Sessions) readByID(tx *gorm.DB, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	var list []Session
	if err := tx.Raw("SELECT "+columns+" FROM door_sessions WHERE session_id IN ?", ids).Scan(&list).Error; err != nil {
		return fmt.Errorf("read door sessions: %w", err)
	}
	for _, session := range list {
		s.add(session)
	}
	return nil
}

func (s Sessions) add(session Session) {
	s.byID[session.SessionID], s.byEvent[eventKey{session.DeviceID, session.CloseEventID}] = session, session
}

// minted tells whether an id may be one of ours, in the one way that they are written.
func minted(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.Version() == 7 && u.String() == id
}

// Closing says which event ends a session.
type Closing struct{ SessionID, CloseEventID string }

// Close closes the sessions of events that are settled in the same transaction, whatever state they are in but closed,
// and frees their cabinets and shoppers. It returns [database.ErrConflict] where another event closed one first.
func Close(tx *gorm.DB, list []Closing, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b Closing) int { return cmp.Compare(a.SessionID, b.SessionID) })
	rows := "SELECT ? AS id, ? AS event" + strings.Repeat(" UNION ALL SELECT ?, ?", len(list)-1)
	args := make([]any, 0, 2*len(list)+2)
	for _, c := range list {
		args = append(args, c.SessionID, c.CloseEventID)
	}
	// The derived table comes first, so that rows are locked in its order.
	result := tx.Exec(`UPDATE (`+rows+`) n STRAIGHT_JOIN door_sessions s ON s.session_id = CONVERT(n.id USING ascii) COLLATE ascii_bin
		SET s.state = ?, s.settled_event_id = n.event, s.ended_at = ?, s.open_device = NULL, s.open_user = NULL
		WHERE s.settled_event_id IS NULL`, append(args, Closed, now)...)
	if result.Error != nil {
		return fmt.Errorf("close door sessions: %w", result.Error)
	}
	if result.RowsAffected != int64(len(list)) {
		return fmt.Errorf("close door sessions: %d of %d: %w", result.RowsAffected, len(list), database.ErrConflict)
	}
	return nil
}

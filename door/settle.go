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

// Find reads the sessions of claims in one statement, and none where no claim can have one: the ids of other systems are
// seldom UUIDs of version 7, which all of a session's ids are.
func Find(tx *gorm.DB, claims []Claim) (Sessions, error) {
	found := Sessions{byID: map[string]Session{}, byEvent: map[eventKey]Session{}}
	ids, events := []string{}, [][]any{}
	for _, c := range claims {
		if minted(c.SessionID) {
			ids = append(ids, c.SessionID)
		}
		if minted(c.CloseEventID) {
			events = append(events, []any{c.DeviceID, c.CloseEventID})
		}
	}
	var parts []string
	var args []any
	if len(ids) > 0 {
		parts, args = append(parts, "SELECT "+columns+" FROM door_sessions WHERE session_id IN ?"), append(args, ids)
	}
	if len(events) > 0 {
		parts = append(parts, "SELECT "+columns+" FROM door_sessions WHERE (device_id, close_event_id) IN ?")
		args = append(args, events)
	}
	if len(parts) == 0 {
		return found, nil
	}
	var list []Session
	if err := tx.Raw(strings.Join(parts, " UNION "), args...).Scan(&list).Error; err != nil {
		return found, fmt.Errorf("read door sessions: %w", err)
	}
	for _, s := range list {
		found.byID[s.SessionID], found.byEvent[eventKey{s.DeviceID, s.CloseEventID}] = s, s
	}
	return found, nil
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

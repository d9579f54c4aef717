package settlement

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/door"
)

// enter finds the door session of every fresh event, and notes which of them it closes.
func (b *batch) enter(tx *gorm.DB, first []*item) error {
	claims := make([]door.Claim, len(first))
	for i, it := range first {
		claims[i] = door.Claim{DeviceID: it.key.deviceID, CloseEventID: it.key.closeEventID, SessionID: it.said.SessionID}
	}
	sessions, err := door.Find(tx, claims)
	if err != nil {
		return err
	}
	closing := map[string]bool{}
	for i, it := range first {
		session, foreign := sessions.Of(claims[i])
		it.session = session
		it.event = asOpened(it.said, session, foreign, session != nil && closing[session.SessionID])
		if session != nil && session.SettledEventID == nil && !closing[session.SessionID] {
			closing[session.SessionID] = true
			b.doors = append(b.doors, door.Closing{SessionID: session.SessionID, CloseEventID: it.key.closeEventID})
		}
	}
	return nil
}

// asOpened is the event with the kind and the user of its session, which win (R11). Where the event says otherwise, names
// another session, or comes for a session that another event has closed, it has an entry for a person to judge.
func asOpened(said *cabinet.Event, session *door.Session, foreign, taken bool) *cabinet.Event {
	if session == nil && !foreign {
		return said
	}
	e := *said
	e.Malformed = slices.Clone(said.Malformed)
	mismatch := func(where string, says, known any) {
		e.Malformed = append(e.Malformed, cabinet.MalformedEntry{
			Where: where, Reason: cabinet.ReasonSessionMismatch, Raw: marshal(map[string]any{"event": says, "session": known}),
		})
	}
	if foreign {
		mismatch("sessionId", said.SessionID, nil)
	}
	if session == nil {
		return &e
	}
	if taken || session.SettledEventID != nil {
		mismatch("closeEventId", said.CloseEventID, session.CloseEventID)
	}
	if said.Kind != session.Kind {
		mismatch("kind", said.Kind, session.Kind)
	}
	if said.UserID != 0 && said.UserID != session.UserID {
		mismatch("userId", said.UserID, session.UserID)
	}
	for i, entry := range e.Malformed {
		if entry.Where == "userId" { // not readable, yet not unattributed: the session has a user
			e.Malformed[i].Reason = cabinet.ReasonSessionMismatch
		}
	}
	e.Kind, e.UserID = session.Kind, session.UserID
	return &e
}

// pricedAt is when the prices of an event were in force: when its door was opened, else when it was received (R8).
func (it *item) pricedAt() time.Time {
	if it.session != nil {
		return it.session.CreatedAt
	}
	return it.ReceivedAt
}

// app is the app that opened the door; nil for none.
func (it *item) app() any {
	if it.session == nil || it.session.App == "" {
		return nil
	}
	return it.session.App
}

func (it *item) sessionID() any {
	if it.session == nil {
		return nil
	}
	return it.session.SessionID
}

// userID is who is charged; nil for nobody known.
func (it *item) userID() any {
	if it.event.UserID == 0 {
		return nil
	}
	return it.event.UserID
}

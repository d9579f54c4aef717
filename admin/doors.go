package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/cabinet"
	"doortab/door"
	"doortab/fleet"
	"doortab/settlement"
	"doortab/tasks"
)

type doorSessionView struct {
	SessionID    string          `json:"sessionId"`
	CloseEventID string          `json:"closeEventId" doc:"What the cabinet is told to report with."`
	DeviceID     int64           `json:"deviceId"`
	UserID       int64           `json:"userId"`
	Kind         cabinet.Kind    `json:"kind" enum:"sale,restock"`
	State        door.State      `json:"state" enum:"opening,open,closed,expired,refused"`
	ExpiresAt    time.Time       `json:"expiresAt" doc:"While opening: until when the cabinet opens. While open: until when it is waited for."`
	Receipt      json.RawMessage `json:"receipt" doc:"As the cabinet gets it; null until its event is settled."`
}

func viewDoorSession(s door.Session, receipt []byte) doorSessionView {
	return doorSessionView{
		SessionID: s.SessionID, CloseEventID: s.CloseEventID, DeviceID: s.DeviceID, UserID: s.UserID, Kind: s.Kind,
		State: s.State, ExpiresAt: s.ExpiresAt, Receipt: embedded(receipt),
	}
}

type openDoorInput struct {
	Body struct {
		DeviceID int64        `json:"deviceId" minimum:"1" maximum:"9007199254740991"`
		UserID   int64        `json:"userId" minimum:"1" maximum:"9007199254740991" doc:"The shopper's, or the member of staff's."`
		Kind     cabinet.Kind `json:"kind,omitempty" enum:"sale,restock" default:"sale"`
	}
}

func (in *openDoorInput) shopper() int64 { return in.Body.UserID }

type doorSessionPath struct {
	SessionID string `path:"sessionId" maxLength:"64"`
}

func (s *Server) doorRoutes() {
	changeRoute(s, Restocker, forApps(huma.Operation{
		OperationID: "openDoor", Method: http.MethodPost, Path: "/v1/door-sessions", DefaultStatus: http.StatusCreated,
		Summary: "Unlock a cabinet: apps for sales, restockers for restocks, operators for both",
		Errors:  []int{http.StatusNotFound},
	}), s.openDoor)
	route(s, Restocker, forApps(huma.Operation{
		OperationID: "getDoorSession", Method: http.MethodGet, Path: "/v1/door-sessions/{sessionId}",
		Summary: "How far a door is, and what came of it", Errors: []int{http.StatusNotFound},
	}), s.getDoorSession)
}

// openDoor: the unlock is sent once, by the request that made the session, and never by its repeats: by then the door may
// have been opened and closed again.
func (s *Server) openDoor(c change, in *openDoorInput) (*doorSessionView, error) {
	if !c.by.opens(in.Body.Kind) {
		return nil, fmt.Errorf("%s doors: %w", in.Body.Kind, errForbidden)
	}
	if err := fleet.MayOpen(c.tx, in.Body.DeviceID); err != nil {
		return nil, err
	}
	session, err := door.Start(c.tx, door.Request{
		DeviceID: in.Body.DeviceID, UserID: in.Body.UserID, Kind: in.Body.Kind, App: c.by.app(),
	}, c.now)
	if err != nil {
		return nil, err
	}
	c.afterCommit(func(ctx context.Context) {
		s.sendUnlock(ctx, session)
		s.tasks.Schedule(tasks.DoorSession, session.SessionID, session.ExpiresAt)
	})
	view := viewDoorSession(session, nil)
	return &view, nil
}

// opens: a restock door charges nobody, so it needs staff (R11).
func (p principal) opens(kind cabinet.Kind) bool {
	if kind == cabinet.KindRestock {
		return p.Role.covers(Restocker)
	}
	return p.Role == App || p.Role.covers(Operator)
}

// app names the app whose token it is; "" for staff. It is the token's name, so that its rights outlive a rotation.
func (p principal) app() string {
	if p.Role != App {
		return ""
	}
	return p.Name
}

// sees: an app sees the doors that it opened, a restocker those of staff, whoever is above all.
func (p principal) sees(s door.Session) bool {
	switch {
	case p.Role == App:
		return s.App == p.Name
	case p.Role.covers(Operator):
		return true
	default:
		return s.Kind == cabinet.KindRestock
	}
}

// sendUnlock ends the session at once where nobody will ever hear of it, so that another try need not wait for its end.
func (s *Server) sendUnlock(ctx context.Context, session door.Session) {
	payload, err := json.Marshal(session.Unlock())
	if err == nil {
		err = s.unlock(ctx, cabinet.UnlockTopic(session.DeviceID), payload)
	}
	if err == nil {
		return
	}
	s.log.Warn("Unlock was not sent; the session is over.", "session", session.SessionID, "device", session.DeviceID, "error", err)
	if err := door.Withdraw(ctx, s.db, session.SessionID); err != nil {
		s.log.Warn("Door session could not be ended and will expire.", "session", session.SessionID, "error", err)
	}
}

func (s *Server) getDoorSession(ctx context.Context, in *doorSessionPath) (*struct{ Body doorSessionView }, error) {
	if !cabinet.ValidID(in.SessionID) {
		return nil, door.ErrNotFound
	}
	session, err := door.Read(ctx, s.db, in.SessionID)
	if err != nil {
		return nil, err
	}
	if !principalOf(ctx).sees(session) {
		return nil, door.ErrNotFound
	}
	var receipt []byte
	if session.SettledEventID != nil {
		receipt, err = settlement.ReadReceipt(ctx, s.db, session.DeviceID, *session.SettledEventID)
	}
	return &struct{ Body doorSessionView }{viewDoorSession(session, receipt)}, err
}

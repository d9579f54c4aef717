package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"doortab/cabinet"
)

const (
	// appsAtOnce is how many shoppers wait for a door that the app opens; who comes beyond them uses the cabinet's own
	// reader.
	appsAtOnce = 32
	// unlockPatience is how long somebody stands before a door that doesn't open.
	unlockPatience = 5 * time.Second
)

// doorSession is what the app is told, and the cabinet too.
type doorSession struct {
	SessionID    string `json:"sessionId"`
	CloseEventID string `json:"closeEventId"`
}

// visitByApp lets a shopper open by a door session. Where Doortab refuses it, as it does while the cabinet or the shopper has
// another one, the cabinet's own reader does. Where the cabinet never hears of it, the shopper goes.
func (s *Simulator) visitByApp(ctx context.Context, d *device, v visit) {
	session, err := s.tap(ctx, d, v.userID)
	switch {
	case refusedWith(err, http.StatusConflict):
		s.visit(d, v, doorSession{})
	case err != nil:
		s.config.Logger.Debug("A door session can't be opened", "device", d.id, "error", err)
	case d.unlocked(ctx, session.SessionID):
		s.visit(d, v, session)
	}
}

func (s *Simulator) tap(ctx context.Context, d *device, userID int64) (session doorSession, err error) {
	err = s.api.do(ctx, call{
		method: http.MethodPost, path: "/v1/door-sessions", into: &session, key: fmt.Sprintf("%s-tap-%d", s.runID, s.taps.Add(1)),
		body: map[string]any{"deviceId": d.id, "userId": userID, "kind": cabinet.KindSale},
	})
	if err == nil {
		s.books.mint(eventKey{d.id, session.CloseEventID})
	}
	return session, err
}

// visit lets a shopper take goods and close the door.
func (s *Simulator) visit(d *device, v visit, session doorSession) {
	r, e := s.sell(d, v, session, time.Now())
	if session.SessionID != "" {
		s.sessions.Add(1)
	}
	s.books.open(e)
	d.post(&message{id: r.CloseEventID, payload: r.payload(), dueAt: r.ClosedAt})
}

// onUnlock runs between the network and the keep-alive of the connection: it only notes.
func (d *device) onUnlock(payload []byte) {
	var u doorSession
	if err := json.Unmarshal(payload, &u); err != nil {
		d.logger.Warn("An unlock can't be read", "device", d.id, "error", err)
		return
	}
	select {
	case d.unlocks <- u.SessionID:
	default: // nobody stands before the door
	}
}

// unlocked waits for the unlock of a session, and tells Doortab that the door is open. There is one open session at a time, so
// that what else comes is of one that is over.
func (d *device) unlocked(ctx context.Context, sessionID string) bool {
	ctx, cancel := context.WithTimeout(ctx, unlockPatience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return false
		case heard := <-d.unlocks:
			if heard == sessionID {
				d.say(fmt.Appendf(nil, `{"sessionId":%q,"state":"opened","at":%q}`, sessionID, time.Now().UTC().Format(time.RFC3339Nano)))
				return true
			}
		}
	}
}

// say publishes on the cabinet's door topic if there is a connection. It isn't said again.
func (d *device) say(payload []byte) {
	d.mu.Lock()
	l := d.link
	d.mu.Unlock()
	if l != nil {
		l.publish(cabinet.DoorTopic(d.id), false, payload)
	}
}

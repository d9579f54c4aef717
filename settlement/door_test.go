package settlement_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/door"
)

// openedAt is when doors are opened here: before the price of product 7 went from 500 to 650.
var openedAt = receivedAt.Add(-40 * time.Second)

// opened is a shop in which user 42 has opened cabinet 1001 and product 7 became dearer after.
func opened(t *testing.T, kind cabinet.Kind) (*shop, door.Session) {
	t.Helper()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	s.cabinet(1002)
	session := s.open(door.Request{DeviceID: 1001, UserID: 42, Kind: kind, App: "shopper"})
	s.catalogue("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, 650)", receivedAt.Add(-10*time.Second))
	return s, session
}

func (s *shop) open(r door.Request) door.Session { s.t.Helper(); return s.openAt(r, openedAt) }

func (s *shop) openAt(r door.Request, at time.Time) (session door.Session) {
	s.t.Helper()
	err := s.db.InTx(context.Background(), func(tx *gorm.DB) (err error) {
		session, err = door.Start(tx, r, at)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return session
}

func (s *shop) session(id string) string {
	s.t.Helper()
	return strings.Join(s.rows(`SELECT state, settled_event_id, open_device, open_user FROM door_sessions WHERE session_id = ?`, id), "")
}

// The session's kind, user and prices count, whatever the event says; what it says otherwise goes to review.
func TestAnEventOfADoorSession(t *testing.T) {
	t.Parallel()
	const two, user, other = `"items":[{"productId":7,"quantity":2}]`, `"userId":42`, `"userId":43`
	restock := `"kind":"restock"`
	for name, c := range map[string]struct {
		kind    cabinet.Kind
		ownID   bool // the event has an id of the cabinet's own and names the session
		members []string
		want    string // outcome, reasons, order: user and total, stock
	}{
		"by the id it was given":     {cabinet.KindSale, false, []string{two}, "settled [] 42 1000 8"},
		"by the session's id":        {cabinet.KindSale, true, []string{two}, "settled [] 42 1000 8"},
		"and the user":               {cabinet.KindSale, false, []string{two, user}, "settled [] 42 1000 8"},
		"another user":               {cabinet.KindSale, false, []string{two, other}, "review [session_mismatch] 42 1000 8"},
		"a user that can't be read":  {cabinet.KindSale, false, []string{two, `"userId":"x"`}, "review [session_mismatch] 42 1000 8"},
		"a session out of form":      {cabinet.KindSale, false, []string{two, `"sessionId":7`}, "review [session_mismatch] 42 1000 8"},
		"another kind":               {cabinet.KindSale, false, []string{two, restock}, "review [session_mismatch] 42 1000 8"},
		"nothing taken":              {cabinet.KindSale, false, []string{`"items":[]`}, "empty []  10"},
		"restock":                    {cabinet.KindRestock, false, []string{two, restock, user}, "restocked []  12"},
		"restock, found by session":  {cabinet.KindRestock, true, []string{two, restock}, "restocked []  12"},
		"sale in a restock":          {cabinet.KindRestock, false, []string{two, user}, "review [session_mismatch]  12"},
		"doubtful, of a known user":  {cabinet.KindSale, false, []string{`"items":[{"productId":99,"quantity":1}]`}, "review [unknown_product]  10"},
		"two differences, one cause": {cabinet.KindSale, true, []string{two, other, restock}, "review [session_mismatch] 42 1000 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, session := opened(t, c.kind)
			id, members := session.CloseEventID, c.members
			if c.ownID {
				id, members = "own-1", append(members, fmt.Sprintf(`"sessionId":%q`, session.SessionID))
			}
			payload := event(1001, id, members...)
			receipt := s.receipts(1001, payload)[0]
			order := strings.ReplaceAll(strings.Join(s.rows(`SELECT user_id, total_minor FROM orders WHERE app = 'shopper'`), ""), "|", " ")
			got := fmt.Sprintf("%s %v %s %s", receipt.Outcome, receipt.Reasons, order,
				s.rows("SELECT stock FROM device_stock WHERE device_id = 1001 AND product_id = 7")[0])
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got, want := s.session(session.SessionID), "closed|"+id+"||"; got != want {
				t.Errorf("session %q, want %q", got, want)
			}
			kept := s.rows(`SELECT kind, user_id, session_id, priced_at = ? FROM settlements`, openedAt)
			if want := fmt.Sprintf("%s|42|%s|1", c.kind, session.SessionID); !slices.Equal(kept, []string{want}) {
				t.Errorf("settlement has %v, want %s", kept, want)
			}
			if again := s.receipts(1001, payload)[0]; !again.Duplicate || again.Outcome != receipt.Outcome {
				t.Errorf("the repeat got %v", again)
			}
			s.audited()
		})
	}
}

func TestAnEventWithoutItsSession(t *testing.T) {
	t.Parallel()
	s, session := opened(t, cabinet.KindSale)
	unknown, of1001 := uuid.Must(uuid.NewV7()).String(), `"sessionId":"`+session.SessionID+`"`
	for _, c := range []struct {
		name    string
		device  int64
		members []string
		want    string
	}{
		{"a user is enough", 1001, []string{`"userId":7`}, "settled [] 7 1300"},
		{"an unknown session with a user", 1001, []string{`"userId":7`, `"sessionId":"` + unknown + `"`}, "settled [] 7 1300"},
		{"a session of another system", 1001, []string{`"userId":7`, `"sessionId":"local-1"`}, "settled [] 7 1300"},
		{"an unknown session without a user", 1001, []string{`"sessionId":"` + unknown + `"`}, "review [unattributed]  1300"},
		{"another cabinet's session", 1002, []string{of1001}, "review [session_mismatch shortfall unattributed]  1300"},
		{"another cabinet's session, with a user", 1002, []string{`"userId":7`, of1001}, "review [session_mismatch shortfall] 7 1300"},
		{"another cabinet's event id", 1002, []string{`"userId":7`, `"closeEventId":"` + session.CloseEventID + `"`}, "settled [shortfall] 7 1300"},
	} {
		id := uuid.Must(uuid.NewV7()).String()
		payload := event(c.device, id, append(c.members, items(7, 2))...)
		if strings.Contains(c.name, "event id") {
			id = session.CloseEventID
			payload = event(c.device, id, c.members[0], items(7, 2))
		}
		receipt := s.receipts(c.device, payload)[0]
		order := strings.ReplaceAll(s.rows(`SELECT user_id, total_minor FROM orders WHERE app IS NULL AND order_id = ?`, receipt.OrderID)[0], "|", " ")
		if got := fmt.Sprintf("%s %v %s", receipt.Outcome, receipt.Reasons, order); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := s.session(session.SessionID); got != "opening||1001|42" {
		t.Errorf("the session of nobody's event is %q", got)
	}
	s.audited()
}

// Whatever became of a session, its event settles and closes it.
func TestALateEventSettles(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, cabinet.KindSale)
	for i, state := range []door.State{door.Open, door.Expired, door.Refused} {
		device := int64(2001 + i)
		s.cabinet(device, 7, 10)
		session := s.open(door.Request{DeviceID: device, UserID: device, Kind: cabinet.KindSale})
		s.exec("UPDATE door_sessions SET state = ?, open_device = NULL, open_user = NULL WHERE session_id = ?", state, session.SessionID)
		receipt := s.receipts(device, event(device, session.CloseEventID, items(7, 1)))[0]
		if receipt.Outcome != cabinet.Settled || receipt.TotalMinor != 500 {
			t.Errorf("%s: %v", state, receipt)
		}
		if got, want := s.session(session.SessionID), "closed|"+session.CloseEventID+"||"; got != want {
			t.Errorf("%s: session %q, want %q", state, got, want)
		}
	}
	s.audited()
}

// A session is one door: what comes for it after its event is an event of its own, which a person looks at.
func TestASecondEventOfASession(t *testing.T) {
	t.Parallel()
	for name, together := range map[string]bool{"later": false, "in one group": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, session := opened(t, cabinet.KindSale)
			first := event(1001, session.CloseEventID, items(7, 2))
			second := event(1001, "own-1", `"sessionId":"`+session.SessionID+`"`, items(7, 1))
			var receipts []cabinet.Receipt
			if together {
				receipts = s.receipts(1001, first, second)
			} else {
				receipts = append(s.receipts(1001, first), s.receipts(1001, second)...)
			}
			if r := receipts[0]; r.Outcome != cabinet.Settled || r.TotalMinor != 1000 {
				t.Errorf("first %v", r)
			}
			if r := receipts[1]; r.Outcome != cabinet.Review || fmt.Sprint(r.Reasons) != "[session_mismatch]" || r.TotalMinor != 500 {
				t.Errorf("second %v", r)
			}
			if got, want := s.session(session.SessionID), "closed|"+session.CloseEventID+"||"; got != want {
				t.Errorf("session %q, want %q", got, want)
			}
			s.audited()
		})
	}
}

// The id that a session minted weighs more than the session that the event names.
func TestTwoSessionsOfOneEvent(t *testing.T) {
	t.Parallel()
	s, first := opened(t, cabinet.KindSale)
	s.exec("UPDATE door_sessions SET state = 'expired', open_device = NULL, open_user = NULL")
	second := s.open(door.Request{DeviceID: 1001, UserID: 43, Kind: cabinet.KindSale})
	receipt := s.receipts(1001, event(1001, second.CloseEventID, `"sessionId":"`+first.SessionID+`"`, items(7, 1)))[0]
	if fmt.Sprintln(receipt.Outcome, receipt.Reasons, s.rows("SELECT user_id FROM orders")) != "review [session_mismatch] [43]\n" {
		t.Errorf("receipt %v", receipt)
	}
	if a, b := s.session(first.SessionID), s.session(second.SessionID); a != "expired|||" || b != "closed|"+second.CloseEventID+"||" {
		t.Errorf("sessions %q and %q", a, b)
	}
}

// Two processes get two events of one session at one moment: one closes it, the other goes to review.
func TestTwoEventsOfASessionAtOnce(t *testing.T) {
	t.Parallel()
	s, session := opened(t, cabinet.KindSale)
	outcomes := make([]string, 8)
	var wait sync.WaitGroup
	for i := range outcomes {
		process := s.another(nil)
		wait.Go(func() {
			payload := event(1001, fmt.Sprint("own-", i), `"sessionId":"`+session.SessionID+`"`, items(7, 1))
			answer := process.settle(1001, payload)[0]
			if answer.Err != nil {
				t.Error(answer.Err)
				return
			}
			outcomes[i] = string(answer.Receipt.Outcome)
		})
	}
	wait.Wait()
	slices.Sort(outcomes)
	if want := append(slices.Repeat([]string{"review"}, 7), "settled"); !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %v", outcomes)
	}
	s.audited()
}

func TestAnEventAndTheSweepAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, cabinet.KindSale)
	stop, swept := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				swept <- nil
				return
			default:
			}
			if _, err := door.Sweep(context.Background(), s.db); err != nil {
				swept <- err
				return
			}
		}
	}()
	for i := range int64(30) {
		s.cabinet(3000+i, 7, 10)
		overdue := database.Now().Add(-2 * door.OpenWithin)
		session := s.openAt(door.Request{DeviceID: 3000 + i, UserID: 3000 + i, Kind: cabinet.KindSale}, overdue)
		receipt := s.receipts(3000+i, event(3000+i, session.CloseEventID, items(7, 1)))[0]
		if receipt.Outcome != cabinet.Settled || s.session(session.SessionID) != "closed|"+session.CloseEventID+"||" {
			t.Errorf("%v, session %s", receipt, s.session(session.SessionID))
		}
	}
	close(stop)
	if err := <-swept; err != nil {
		t.Error(err)
	}
}

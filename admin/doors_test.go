package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/database"
	"doortab/door"
)

// unlocks keeps what a server publishes to cabinets.
type unlocks struct {
	mu   sync.Mutex
	sent []string // topic and payload
	fail error
}

func (u *unlocks) publish(_ context.Context, topic string, payload []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent = append(u.sent, topic+" "+string(payload))
	return u.fail
}

func (u *unlocks) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	sent := u.sent
	u.sent = nil
	return sent
}

// newDoor is a shop whose cabinet 7 is online.
func newDoor(t testing.TB) (*harness, *unlocks) {
	t.Helper()
	h, u := newShop(t), &unlocks{}
	h.server.unlock = u.publish
	h.online(7)
	return h, u
}

func (h *harness) online(deviceID int64) {
	h.t.Helper()
	h.exec("UPDATE cabinets SET online = TRUE WHERE device_id = ?", deviceID)
}

func (h *harness) openDoor(role Role, key, body string) reply {
	return h.send(role, "POST", "/v1/door-sessions", body, header{keyHeader: key})
}

// token makes a further token and stands it in for the role's.
func (h *harness) token(name string, role Role) Role {
	h.t.Helper()
	token, err := CreateToken(h.t.Context(), h.db, name, role)
	if err != nil {
		h.t.Fatal(err)
	}
	as := Role(fmt.Sprint(role, " ", token.ID))
	h.tokens[as] = token.Secret
	return as
}

func (h *harness) doorSession(role Role, id any) map[string]any {
	h.t.Helper()
	return h.expect(200, h.send(role, "GET", fmt.Sprint("/v1/door-sessions/", id), "")).json(h.t)
}

// From the unlock to the receipt: the shopper's app opens, pays the price of that moment, and sees its own alone.
func TestADoorIsOpenedAndSettled(t *testing.T) {
	t.Parallel()
	h, u := newDoor(t)
	body := `{"deviceId":7,"userId":42,"kind":"sale"}`
	r := h.expect(http.StatusCreated, h.openDoor(App, "k", body))
	s := r.json(t)
	expires, err := time.Parse(time.RFC3339, s["expiresAt"].(string))
	if err != nil || time.Until(expires) > door.OpenWithin || time.Until(expires) < door.OpenWithin/2 {
		t.Errorf("expires %v, %v", s["expiresAt"], err)
	}
	want := map[string]any{
		"sessionId": s["sessionId"], "closeEventId": s["closeEventId"], "deviceId": 7.0, "userId": 42.0, "kind": "sale",
		"state": "opening", "expiresAt": s["expiresAt"], "receipt": nil,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	told := fmt.Sprintf(`v1/cabinets/7/unlock {"sessionId":%q,"closeEventId":%q,"kind":"sale","expiresAt":%q}`,
		s["sessionId"], s["closeEventId"], s["expiresAt"])
	if diff := cmp.Diff([]string{told}, u.take()); diff != "" {
		t.Error(diff)
	}

	// A repeat gets the answer again, and the cabinet hears nothing of it.
	again := h.expect(http.StatusCreated, h.openDoor(App, "k", body))
	if string(again.body) != string(r.body) || again.header.Get(replayedHeader) != "true" || len(u.take()) != 0 {
		t.Errorf("repeat: %s", again.body)
	}

	h.report(s["sessionId"], cabinet.DoorOpened)
	if got := h.doorSession(App, s["sessionId"]); got["state"] != "open" || got["receipt"] != nil {
		t.Errorf("after it was opened: %v", got)
	}
	h.expect(200, h.send(Operator, "PATCH", "/v1/products/7", `{"priceMinor":650}`))
	h.settle(event(s["closeEventId"].(string), `,"items":[{"productId":7,"quantity":2}]`), database.Now())
	closed := h.doorSession(App, s["sessionId"])
	receipt, _ := closed["receipt"].(map[string]any)
	if closed["state"] != "closed" || receipt["outcome"] != "settled" || receipt["totalMinor"] != 1000.0 {
		t.Fatalf("after it was closed: %v", closed)
	}
	h.settle(event("other", `,"userId":42,"items":[{"productId":7,"quantity":1}]`), database.Now())

	order := fmt.Sprint("/v1/orders/", receipt["orderId"])
	rotated, stranger, spaced := h.token("test app", App), h.token("other app", App), h.token("test app ", App)
	for as, sees := range map[Role]bool{App: true, rotated: true, stranger: false, spaced: false, Operator: true} {
		status := map[bool]int{true: 200, false: 404}[sees]
		h.expect(status, h.send(as, "GET", order, ""))
		h.expect(status, h.send(as, "GET", fmt.Sprint("/v1/door-sessions/", s["sessionId"]), ""))
	}
	for as, orders := range map[Role]int{App: 1, rotated: 1, stranger: 0, spaced: 0, Viewer: 2} {
		listed := h.expect(200, h.send(as, "GET", "/v1/orders?userId=42", "")).json(t)["items"].([]any)
		if len(listed) != orders {
			t.Errorf("%s is shown %d orders, not %d", as, len(listed), orders)
		}
	}
	h.expect(404, h.send(Restocker, "GET", fmt.Sprint("/v1/door-sessions/", s["sessionId"]), ""))
}

func (h *harness) report(sessionID any, state cabinet.DoorState) {
	h.t.Helper()
	err := door.Apply(h.t.Context(), h.db, []door.Report{{
		DeviceID: 7, DoorReport: cabinet.DoorReport{SessionID: sessionID.(string), State: state},
	}})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestARestockDoor(t *testing.T) {
	t.Parallel()
	h, _ := newDoor(t)
	s := h.expect(http.StatusCreated, h.openDoor(Restocker, "k", `{"deviceId":7,"userId":9,"kind":"restock"}`)).json(t)
	filled := event(s["closeEventId"].(string), `,"items":[{"productId":7,"quantity":5}]`)
	h.settle(strings.Replace(filled, "sale", "restock", 1), database.Now())
	closed := h.doorSession(Restocker, s["sessionId"])
	if closed["state"] != "closed" || closed["receipt"].(map[string]any)["outcome"] != "restocked" || h.stock() != 5.0 {
		t.Errorf("%v, stock %v", closed, h.stock())
	}
	h.expect(404, h.send(App, "GET", fmt.Sprint("/v1/door-sessions/", s["sessionId"]), ""))
}

func TestADoorThatMayNotBeOpened(t *testing.T) {
	t.Parallel()
	h, u := newDoor(t)
	for id := int64(8); id <= 11; id++ {
		h.cabinet(id)
	}
	h.online(9)
	h.online(10)
	h.online(11)
	h.exec("UPDATE cabinets SET locked = TRUE WHERE device_id = 9")
	h.expect(http.StatusCreated, h.openDoor(App, "first", `{"deviceId":7,"userId":42}`))
	u.take()
	for name, c := range map[string]struct {
		role   Role
		body   string
		key    string
		status int
		kind   string
	}{
		"offline":                {App, `{"deviceId":8,"userId":1}`, "k1", 409, "cabinet-offline"},
		"locked":                 {App, `{"deviceId":9,"userId":1}`, "k2", 409, "cabinet-locked"},
		"locked, for staff":      {Admin, `{"deviceId":9,"userId":1,"kind":"restock"}`, "k3", 409, "cabinet-locked"},
		"unknown":                {App, `{"deviceId":99,"userId":1}`, "k4", 404, "not-found"},
		"the cabinet is open":    {App, `{"deviceId":7,"userId":1}`, "k5", 409, "cabinet-busy"},
		"the shopper has one":    {App, `{"deviceId":10,"userId":42}`, "k6", 409, "user-busy"},
		"a viewer":               {Viewer, `{"deviceId":10,"userId":1}`, "k7", 403, "forbidden"},
		"a restocker's sale":     {Restocker, `{"deviceId":10,"userId":1}`, "k8", 403, "forbidden"},
		"an app's restock":       {App, `{"deviceId":10,"userId":1,"kind":"restock"}`, "k9", 403, "forbidden"},
		"no token":               {"", `{"deviceId":10,"userId":1}`, "k10", 401, "unauthorized"},
		"no key":                 {App, `{"deviceId":10,"userId":1}`, "", 400, "idempotency-key"},
		"the key of another":     {App, `{"deviceId":10,"userId":1}`, "first", 422, "idempotency-key-reused"},
		"no user":                {App, `{"deviceId":10}`, "k11", 422, "invalid"},
		"user 0":                 {App, `{"deviceId":10,"userId":0}`, "k12", 422, "invalid"},
		"another kind":           {App, `{"deviceId":10,"userId":1,"kind":"party"}`, "k13", 422, "invalid"},
		"an unknown member":      {App, `{"deviceId":10,"userId":1,"state":"open"}`, "k14", 422, "invalid"},
		"a cabinet out of range": {App, `{"deviceId":0,"userId":1}`, "k15", 422, "invalid"},
	} {
		r := h.openDoor(c.role, c.key, c.body)
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	if sent := u.take(); len(sent) != 0 {
		t.Errorf("cabinets were told %q", sent)
	}
	for _, id := range []string{"none", "é", strings.Repeat("x", 65), "0198f0c2-6a52-7e0b-9c53-0b8f2f6d9a11"} {
		r := h.send(App, "GET", "/v1/door-sessions/"+id, "")
		if r.status != 404 && r.status != 422 {
			t.Errorf("session %q: %d", id, r.status)
		}
	}
	for role, status := range map[Role]int{Operator: 201, Admin: 201} {
		device := map[Role]int{Operator: 10, Admin: 11}[role]
		h.expect(status, h.openDoor(role, "k", fmt.Sprintf(`{"deviceId":%d,"userId":%d}`, device, device)))
	}
}

func TestManyAtOneDoor(t *testing.T) {
	t.Parallel()
	h, u := newDoor(t)
	for id := int64(100); id < 120; id++ {
		h.cabinet(id)
		h.online(id)
	}
	for name, body := range map[string]string{
		"one cabinet": `{"deviceId":7,"userId":%d}`,
		"one shopper": `{"userId":7,"deviceId":%d}`,
	} {
		statuses := make([]int, 20)
		var wait sync.WaitGroup
		for i := range statuses {
			wait.Go(func() {
				statuses[i] = h.openDoor(App, fmt.Sprint(name[:3], name[4:], i), fmt.Sprintf(body, 100+i)).status
			})
		}
		wait.Wait()
		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}
		if sent := u.take(); count[201] != 1 || count[409] != 19 || len(sent) != 1 {
			t.Errorf("%s: %v, %d unlocks", name, count, len(sent))
		}
	}
}

// What nobody can hear is over at once; what a crash kept from being sent is over when its time is.
func TestAnUnlockThatIsNotSent(t *testing.T) {
	t.Parallel()
	h, u := newDoor(t)
	u.fail = errors.New("no connection")
	body := `{"deviceId":7,"userId":42}`
	s := h.expect(http.StatusCreated, h.openDoor(App, "a", body)).json(t)
	if got := h.doorSession(App, s["sessionId"]); got["state"] != "expired" {
		t.Errorf("%v", got)
	}

	// A process that is killed after COMMIT: nothing is sent, also not by the request's repeat.
	h.server.unlock = func(context.Context, string, []byte) error { panic("killed") }
	h.send(App, "POST", "/v1/door-sessions", body, header{keyHeader: "b"})
	h.server.unlock = u.publish
	u.take()
	s = h.expect(http.StatusCreated, h.openDoor(App, "b", body)).json(t)
	if sent := u.take(); s["state"] != "opening" || len(sent) != 0 {
		t.Errorf("the repeat: %v, sent %q", s, sent)
	}
	h.problem(h.expect(409, h.openDoor(App, "c", body)), "cabinet-busy")
	h.exec("UPDATE door_sessions SET expires_at = ? WHERE session_id = ?", database.Now(), s["sessionId"])
	if got := h.doorSession(App, s["sessionId"]); got["state"] != "expired" {
		t.Errorf("after its time: %v", got)
	}
	u.fail = nil
	next := h.expect(http.StatusCreated, h.openDoor(App, "d", body)).json(t)
	if sent := u.take(); len(sent) != 1 {
		t.Errorf("the next: %q", sent)
	}

	// Late, but not lost: the event of the session that expired.
	h.settle(event(s["closeEventId"].(string), `,"items":[{"productId":7,"quantity":1}]`), database.Now())
	if got := h.doorSession(App, s["sessionId"]); got["state"] != "closed" || got["receipt"] == nil {
		t.Errorf("the late one: %v", got)
	}
	if got := h.doorSession(App, next["sessionId"]); got["state"] != "opening" {
		t.Errorf("the one that is open: %v", got)
	}
}

func TestWhatTheCabinetSays(t *testing.T) {
	t.Parallel()
	h, _ := newDoor(t)
	for state, want := range map[cabinet.DoorState]string{cabinet.DoorRefused: "refused", cabinet.DoorNotPulled: "expired"} {
		s := h.expect(http.StatusCreated, h.openDoor(App, string(state), `{"deviceId":7,"userId":42}`)).json(t)
		h.report(s["sessionId"], state)
		if got := h.doorSession(App, s["sessionId"]); got["state"] != want {
			t.Errorf("%s: %v", state, got)
		}
	}
	h.expect(http.StatusCreated, h.openDoor(App, "next", `{"deviceId":7,"userId":42}`))
}

func TestAnUnlockIsSentOnceAlsoWhereTheAnswerToCommitIsLost(t *testing.T) {
	t.Parallel()
	h, armed := newDeafHarness(t)
	u := &unlocks{}
	h.server.unlock = u.publish
	h.online(7)
	h.expect(200, h.send(App, "GET", "/v1/orders", "")) // its token is known then
	armed.Store(true)
	r := h.expect(http.StatusCreated, h.openDoor(App, "k", `{"deviceId":7,"userId":42}`))
	sent := u.take()
	if armed.Load() || r.header.Get(replayedHeader) != "" || len(sent) != 1 {
		t.Fatalf("armed %t, replayed %q, sent %q", armed.Load(), r.header.Get(replayedHeader), sent)
	}
	var told cabinet.Unlock
	_, payload, _ := strings.Cut(sent[0], " ")
	if err := json.Unmarshal([]byte(payload), &told); err != nil || told.SessionID != r.json(t)["sessionId"] {
		t.Errorf("told %s, answered %s", payload, r.body)
	}
	if n := len(h.rowsOf("SELECT session_id FROM door_sessions")); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func (h *harness) rowsOf(query string) (texts []string) {
	h.t.Helper()
	if err := h.db.Read(h.t.Context()).Raw(query).Scan(&texts).Error; err != nil {
		h.t.Fatal(err)
	}
	return texts
}

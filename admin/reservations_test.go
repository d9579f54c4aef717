package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/database"
	"doortab/services/servicestest"
)

func (h *harness) reserve(role Role, key, body string) reply {
	return h.send(role, "POST", "/v1/reservations", body, header{keyHeader: key})
}

// keep asks for units of product 7 in cabinet 7 until a time from now.
func keep(userID, quantity int64, in time.Duration) string {
	return fmt.Sprintf(`{"deviceId":7,"userId":%d,"lines":[{"productId":7,"quantity":%d}],"until":%q}`,
		userID, quantity, database.Now().Add(in).Format(time.RFC3339Nano))
}

func reservationPathOf(r map[string]any) string {
	return fmt.Sprint("/v1/reservations/", r["reservationId"])
}

// newPantry is a shop whose cabinet 7 has five of product 7.
func newPantry(t testing.TB) *harness {
	t.Helper()
	h := newShop(t)
	h.expect(http.StatusCreated, h.restock("pantry", `{"lines":[{"productId":7,"quantity":5}]}`))
	return h
}

func TestAReservationFromTheAppToTheDoor(t *testing.T) {
	t.Parallel()
	h := newPantry(t)
	body := keep(42, 2, time.Hour)
	first := h.expect(http.StatusCreated, h.reserve(App, "k", body))
	r := first.json(t)
	want := map[string]any{
		"reservationId": r["reservationId"], "deviceId": 7.0, "userId": 42.0, "state": "held", "short": false,
		"lines": []any{map[string]any{"productId": 7.0, "quantity": 2.0, "left": 2.0, "short": 0.0}}, "until": r["until"], "createdAt": r["createdAt"],
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	if _, isText := r["reservationId"].(string); !isText {
		t.Errorf("reservationId %v is no string", r["reservationId"])
	}
	if again := h.expect(http.StatusCreated, h.reserve(App, "k", body)); string(again.body) != string(first.body) {
		t.Errorf("repeat: %s", again.body)
	}
	if h.stock() != 5.0 {
		t.Errorf("stock %v: a reservation moved it", h.stock())
	}
	h.problem(h.expect(409, h.reserve(App, "k2", keep(43, 4, time.Hour))), "too-little-stock")

	got := func(role Role) map[string]any {
		return h.expect(200, h.send(role, "GET", reservationPathOf(r), "")).json(t)
	}
	if diff := cmp.Diff(want, got(App)); diff != "" {
		t.Error(diff)
	}
	stranger := h.token("other app", App)
	h.problem(h.expect(404, h.send(stranger, "GET", reservationPathOf(r), "")), "not-found")
	h.problem(h.expect(404, h.send(stranger, "DELETE", reservationPathOf(r), "")), "not-found")
	for as, sees := range map[Role]int{App: 1, Operator: 1, stranger: 0} {
		for _, query := range []string{"", "?deviceId=7", "?userId=42", "?state=held", "?deviceId=7&userId=42&state=held"} {
			listed := h.expect(200, h.send(as, "GET", "/v1/reservations"+query, "")).json(t)["items"].([]any)
			if len(listed) != sees {
				t.Errorf("%s is shown %d at %q", as, len(listed), query)
			}
		}
	}
}

func TestAReservationEndsByATask(t *testing.T) {
	t.Parallel()
	h := newPantry(t)
	ended := make(chan string, 2)
	h.delayed(servicestest.Redis(t).URL(), func(_ context.Context, id string) (time.Time, error) {
		ended <- id
		return time.Time{}, nil
	})
	r := h.expect(http.StatusCreated, h.reserve(App, "k", keep(42, 2, 2*time.Second))).json(t)
	select {
	case id := <-ended:
		if id != r["reservationId"] {
			t.Errorf("%q is ended, not %v", id, r["reservationId"])
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing ended it")
	}
}

func TestAReservationIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	h := newPantry(t)
	r := h.expect(http.StatusCreated, h.reserve(App, "k", keep(42, 5, time.Hour))).json(t)
	for range 2 {
		back := h.expect(200, h.send(App, "DELETE", reservationPathOf(r), "")).json(t)
		if back["state"] != "returned" {
			t.Errorf("%v", back)
		}
	}
	if log := h.logged("reservation.return"); len(log) != 1 {
		t.Errorf("audit log %q", log)
	}
	r = h.expect(http.StatusCreated, h.reserve(Operator, "k", keep(42, 5, time.Hour))).json(t)
	h.problem(h.expect(404, h.send(App, "DELETE", reservationPathOf(r), "")), "not-found") // staff's, not the app's
	h.exec("UPDATE reservations SET until_at = created_at WHERE state = 'held'")
	h.problem(h.expect(409, h.send(Operator, "DELETE", reservationPathOf(r), "")), "reservation-over")
	for _, id := range []string{"0", "none", "-1", "7261559013842321408"} {
		h.problem(h.expect(404, h.send(Operator, "DELETE", "/v1/reservations/"+id, "")), "not-found")
		h.problem(h.expect(404, h.send(Operator, "GET", "/v1/reservations/"+id, "")), "not-found")
	}
}

func TestAReservationThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newPantry(t)
	until := database.Now().Add(time.Hour).Format(time.RFC3339)
	of := func(members string) string {
		return `{"deviceId":7,"userId":42,"until":"` + until + `",` + members + `}`
	}
	for name, c := range map[string]struct {
		role   Role
		body   string
		status int
		kind   string
	}{
		"a viewer":           {Viewer, keep(42, 1, time.Hour), 403, "forbidden"},
		"a restocker":        {Restocker, keep(42, 1, time.Hour), 403, "forbidden"},
		"nobody":             {"", keep(42, 1, time.Hour), 401, "unauthorized"},
		"over already":       {App, keep(42, 1, -time.Second), 422, "invalid"},
		"too far ahead":      {App, keep(42, 1, 7*24*time.Hour+time.Minute), 422, "invalid"},
		"none":               {App, keep(42, 0, time.Hour), 422, "invalid"},
		"below none":         {App, keep(42, -3, time.Hour), 422, "invalid"},
		"far too many":       {App, keep(42, 1e9, time.Hour), 422, "invalid"},
		"more than there is": {App, keep(42, 6, time.Hour), 409, "too-little-stock"},
		"a fraction":         {App, of(`"lines":[{"productId":7,"quantity":1.5}]`), 422, "invalid"},
		"no lines":           {App, of(`"lines":[]`), 422, "invalid"},
		"a product twice":    {App, of(`"lines":[{"productId":7,"quantity":1},{"productId":7,"quantity":1}]`), 422, "invalid"},
		"an unknown product": {App, of(`"lines":[{"productId":99,"quantity":1}]`), 422, "unknown-product"},
		"an unknown member":  {App, of(`"lines":[{"productId":7,"quantity":1}],"state":"held"`), 422, "invalid"},
		"no end":             {App, `{"deviceId":7,"userId":42,"lines":[{"productId":7,"quantity":1}]}`, 422, "invalid"},
		"an unknown cabinet": {App, `{"deviceId":8,"userId":42,"until":"` + until + `","lines":[{"productId":7,"quantity":1}]}`, 404, "not-found"},
	} {
		r := h.reserve(c.role, strings.ReplaceAll(name, " ", "-"), c.body)
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	h.problem(h.expect(400, h.reserve(App, "", keep(42, 1, time.Hour))), "idempotency-key")
	h.problem(h.expect(422, h.send(App, "GET", "/v1/reservations?state=gone", "")), "invalid")
	if listed := h.expect(200, h.send(Operator, "GET", "/v1/reservations", "")).json(t)["items"].([]any); len(listed) != 0 {
		t.Errorf("%v is there all the same", listed)
	}
}

// TestManyReserveTheLast: over REST too, of many at once as many get a unit as there are.
func TestManyReserveTheLast(t *testing.T) {
	t.Parallel()
	h := newPantry(t)
	statuses := make([]int, 30)
	var wait sync.WaitGroup
	for i := range statuses {
		wait.Go(func() {
			statuses[i] = h.reserve(App, fmt.Sprint("k", i), keep(int64(100+i), 1, time.Hour)).status
		})
	}
	wait.Wait()
	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}
	if count[201] != 5 || count[409] != 25 {
		t.Errorf("answers %v", count)
	}
	var reserved int64
	err := h.db.Read(context.Background()).Raw("SELECT SUM(reserved) FROM reserved_stock").Scan(&reserved).Error
	if err != nil || reserved != 5 {
		t.Errorf("%d reserved, %v", reserved, err)
	}
}

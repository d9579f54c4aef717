package admin

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"doortab/database"
)

// offer drafts a promotion of product 7, with more members of the body.
func (h *harness) offer(key string, quota, perUser int, more string) reply {
	now := database.Now()
	return h.send(Operator, "POST", "/v1/promotions", fmt.Sprintf(
		`{"name":"Cola for 1","productId":7,"priceMinor":100,"quota":%d,"perUser":%d,"startsAt":%q,"endsAt":%q%s}`,
		quota, perUser, now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), more), header{keyHeader: key})
}

func (h *harness) transition(id any, key, to string) reply {
	return h.send(Operator, "POST", fmt.Sprintf("/v1/promotions/%v/transitions", id), `{"to":"`+to+`"}`, header{keyHeader: key})
}

// live makes a promotion that gives units, and returns its id.
func (h *harness) live(quota, perUser int, more string) string {
	h.t.Helper()
	id := h.expect(http.StatusCreated, h.offer(uuid.NewString(), quota, perUser, more)).json(h.t)["promotionId"].(string)
	for _, to := range []string{"warming", "live"} {
		h.expect(200, h.transition(id, to, to))
	}
	return id
}

func TestAPromotionFromDraftToEnd(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.expect(http.StatusCreated, h.offer("k", 3, 1, "")).json(t)
	want := map[string]any{
		"promotionId": p["promotionId"], "name": "Cola for 1", "productId": 7.0, "priceMinor": 100.0, "quota": 3.0, "perUser": 1.0,
		"needsClaim": true, "site": "", "startsAt": p["startsAt"], "endsAt": p["endsAt"], "claimTtlSeconds": 900.0, "way": "database",
		"state": "draft", "taken": 0.0, "left": 3.0, "createdAt": p["createdAt"],
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	id := p["promotionId"]
	for i, to := range []string{"warming", "live", "paused", "live", "ended"} {
		if got := h.expect(200, h.transition(id, fmt.Sprint("t", i), to)).json(t); got["state"] != to {
			t.Errorf("%v instead of %s", got["state"], to)
		}
	}
	h.problem(h.expect(409, h.transition(id, "back", "live")), "bad-transition")
	h.problem(h.expect(404, h.transition("77", "none", "live")), "not-found")
	h.problem(h.expect(422, h.transition(id, "odd", "draft")), "invalid")

	if got := h.expect(200, h.send(Viewer, "GET", fmt.Sprint("/v1/promotions/", id), "")).json(t); got["state"] != "ended" {
		t.Errorf("%v", got)
	}
	for query, found := range map[string]int{"": 1, "?state=ended": 1, "?state=live": 0, "?productId=7": 1, "?productId=3": 0} {
		if list := h.expect(200, h.send(Viewer, "GET", "/v1/promotions"+query, "")).json(t)["items"].([]any); len(list) != found {
			t.Errorf("%q lists %d, not %d", query, len(list), found)
		}
	}
}

func TestPromotionsThatAreNone(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	times := `"startsAt":"2026-12-24T10:00:00Z","endsAt":"2026-12-24T12:00:00Z"`
	for name, body := range map[string]string{
		"no name":           `{"name":"","productId":7,"priceMinor":1,"quota":1,"perUser":1,` + times + `}`,
		"no product":        `{"name":"x","productId":99,"priceMinor":1,"quota":1,"perUser":1,` + times + `}`,
		"price below 0":     `{"name":"x","productId":7,"priceMinor":-1,"quota":1,"perUser":1,` + times + `}`,
		"quota of 0":        `{"name":"x","productId":7,"priceMinor":1,"quota":0,"perUser":1,` + times + `}`,
		"more than a quota": `{"name":"x","productId":7,"priceMinor":1,"quota":1000000001,"perUser":1,` + times + `}`,
		"limit of 0":        `{"name":"x","productId":7,"priceMinor":1,"quota":1,"perUser":0,` + times + `}`,
		"ends before": `{"name":"x","productId":7,"priceMinor":1,"quota":1,"perUser":1,
			"startsAt":"2026-12-24T10:00:00Z","endsAt":"2026-12-24T10:00:00Z"}`,
		"no end":        `{"name":"x","productId":7,"priceMinor":1,"quota":1,"perUser":1,"startsAt":"2026-12-24T10:00:00Z"}`,
		"another way":   `{"name":"x","productId":7,"priceMinor":1,"quota":1,"perUser":1,"way":"paper",` + times + `}`,
		"unknown field": `{"name":"x","productId":7,"priceMinor":1,"quota":1,"perUser":1,"colour":"red",` + times + `}`,
		"half a unit":   `{"name":"x","productId":7,"priceMinor":1,"quota":1.5,"perUser":1,` + times + `}`,
	} {
		if r := h.send(Operator, "POST", "/v1/promotions", body); r.status != 422 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if list := h.expect(200, h.send(Viewer, "GET", "/v1/promotions", "")).json(t)["items"].([]any); len(list) != 0 {
		t.Errorf("%d promotions of nothing", len(list))
	}
}

package admin

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/archive"
	"doortab/database"
)

func TestWhatIsArchivedIsShown(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":9}]}`))
	for _, id := range []string{"old", "older", "newer"} {
		h.settle(event(id, `,"userId":42,"items":[{"productId":7,"quantity":1}]`), database.Now())
	}
	h.settle(event("other", `,"userId":43,"items":[{"productId":7,"quantity":1}]`), database.Now())
	live, _ := h.walk("/v1/orders?")
	settlements, _ := h.walk("/v1/settlements?")
	movements, _ := h.walk("/v1/cabinets/7/movements?productId=7&")
	if _, err := archive.Run(t.Context(), h.db, archive.Options{Before: time.Now()}); err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string][]map[string]any{
		"/v1/settlements?": settlements, "/v1/cabinets/7/movements?productId=7&": movements,
		"/v1/orders?": {}, "/v1/cabinets/7/movements?": movements[:1],
	} {
		if got, _ := h.walk(path); len(got) != len(want) || len(want) > 0 && !cmp.Equal(want, got) {
			t.Errorf("%s: %s", path, cmp.Diff(want, got))
		}
	}
	for _, o := range live {
		o["archived"] = true
		if got := h.expect(200, h.send(Viewer, "GET", "/v1/orders/"+o["orderId"].(string), "")).json(t); !cmp.Equal(o, got) {
			t.Errorf("order: %s", cmp.Diff(o, got))
		}
	}
	for query, want := range map[string]int{
		"archived=true&deviceId=7": 4, "archived=true&userId=42": 3, "archived=true&userId=44": 0, "archived=false&deviceId=7": 0,
		"archived=true&userId=42&status=void": 0, "archived=true&deviceId=7&userId=43": 1,
	} {
		if got, _ := h.walk("/v1/orders?" + query + "&"); len(got) != want {
			t.Errorf("%s: %d orders, want %d", query, len(got), want)
		}
	}
	h.problem(h.send(Viewer, "GET", "/v1/orders?archived=true", ""), "invalid")
	h.problem(h.send(Viewer, "GET", "/v1/orders?archived=true&status=open", ""), "invalid")

	id := live[1]["orderId"].(string)
	h.expect(http.StatusCreated, h.send(Operator, "POST", "/v1/orders/"+id+"/reviews", `{"note":"Look again."}`, header{keyHeader: "k"}))
	if o := h.expect(200, h.send(Viewer, "GET", "/v1/orders/"+id, "")).json(t); o["archived"] != false || o["status"] != "review" {
		t.Errorf("reopened: %v", o)
	}
}

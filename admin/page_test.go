package admin

import (
	"net/http"
	"strings"
	"testing"
)

// A list without a limit answers with the whole table one day.
func TestEveryListHasALimitAndACursor(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	lists := 0
	for _, r := range h.server.routes {
		if r.method != http.MethodGet || !strings.HasPrefix(r.path, "/v1/") || strings.HasSuffix(r.path, "}") ||
			strings.HasSuffix(r.path, "/planogram") { // one thing, not a list
			continue
		}
		lists++
		path := strings.ReplaceAll(r.path, "{deviceId}", "7")
		answer := h.expect(200, h.send(Admin, "GET", path+"?limit=200", "")).json(t)
		if _, there := answer["nextCursor"]; !there || answer["items"] == nil {
			t.Errorf("%s answers %v", path, answer)
		}
		for _, bad := range []string{"limit=0", "limit=201", "limit=x", "limit=", "cursor=x", "cursor=e30", "limits=5", "limit=5&limit=6"} {
			if got := h.send(Admin, "GET", path+"?"+bad, ""); got.status != 422 {
				t.Errorf("%s?%s: %d", path, bad, got.status)
			} else {
				h.problem(got, "invalid")
			}
		}
	}
	if lists < 11 {
		t.Errorf("%d lists", lists)
	}
}

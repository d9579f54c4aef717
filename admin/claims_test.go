package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"doortab/services/servicestest"
)

func (h *harness) orderToken(role Role, id string, user int64) string {
	h.t.Helper()
	r := h.expect(http.StatusCreated, h.send(role, "POST", "/v1/order-tokens", fmt.Sprintf(`{"userId":%d,"promotionId":%q}`, user, id)))
	if got := r.header.Get("Cache-Control"); got != "no-store" {
		h.t.Errorf("a token may be kept by caches: %q", got)
	}
	return r.json(h.t)["token"].(string)
}

func (h *harness) claim(role Role, id, token string, user int64, quantity string) reply {
	return h.send(role, "POST", "/v1/promotions/"+id+"/claims", fmt.Sprintf(`{"token":%q,"userId":%d,"quantity":%s}`, token, user, quantity))
}

func (h *harness) taken(id string) any {
	return h.expect(200, h.send(Viewer, "GET", "/v1/promotions/"+id, "")).json(h.t)["taken"]
}

func TestAClaimFromTheButtonToItsReturn(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	id := h.live(3, 1, "")
	token := h.orderToken(App, id, 42)
	first := h.expect(http.StatusCreated, h.claim(App, id, token, 42, "1"))
	c := first.json(t)
	if c["state"] != "held" || c["quantity"] != 1.0 || c["left"] != 1.0 || c["userId"] != 42.0 || c["promotionId"] != id {
		t.Errorf("%v", c)
	}
	if again := h.expect(http.StatusCreated, h.claim(App, id, token, 42, "1")); string(again.body) != string(first.body) {
		t.Errorf("the same token again: %s", again.body)
	}
	h.problem(h.expect(409, h.claim(App, id, token, 42, "2")), "token-used")
	h.problem(h.expect(409, h.claim(App, id, h.orderToken(App, id, 42), 42, "1")), "limit-reached")

	path := fmt.Sprint("/v1/claims/", c["claimId"])
	stranger := h.token("other app", App)
	for _, method := range []string{"GET", "DELETE"} {
		h.problem(h.expect(404, h.send(stranger, method, path, "")), "not-found")
		h.problem(h.expect(404, h.send(App, method, "/v1/claims/77", "")), "not-found")
	}
	for range 2 {
		if back := h.expect(200, h.send(App, "DELETE", path, "")).json(t); back["state"] != "returned" {
			t.Errorf("%v", back)
		}
	}
	if h.taken(id) != 0.0 {
		t.Errorf("%v units are taken after the only one came back", h.taken(id))
	}
	h.expect(http.StatusCreated, h.claim(App, id, h.orderToken(App, id, 42), 42, "1"))
}

func TestClaimsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	id, other := h.live(3, 1000, ""), h.live(3, 1000, "")
	token := h.orderToken(App, id, 42)
	for _, quantity := range []string{"0", "-3", "1000000000", "1.5", `"1"`, "null"} {
		if r := h.claim(App, id, token, 42, quantity); r.status != 422 {
			t.Errorf("quantity %s: %d %s", quantity, r.status, r.body)
		}
	}
	h.problem(h.expect(409, h.claim(App, id, token, 42, "4")), "sold-out")
	h.problem(h.expect(409, h.claim(App, id, token, 43, "1")), "order-token-invalid")
	h.problem(h.expect(409, h.claim(App, other, token, 42, "1")), "order-token-invalid")
	h.problem(h.expect(409, h.claim(h.token("other app", App), id, token, 42, "1")), "order-token-invalid")
	h.problem(h.expect(409, h.claim(App, id, strings.ToUpper(token), 42, "1")), "order-token-invalid")
	h.problem(h.expect(409, h.claim(App, id, "", 42, "1")), "order-token-invalid")
	h.problem(h.expect(404, h.claim(App, "77", token, 42, "1")), "not-found")
	if h.taken(id) != 0.0 {
		t.Errorf("%v units are taken by nobody", h.taken(id))
	}
	h.expect(http.StatusCreated, h.claim(App, id, token, 42, "3")) // refusals left the token unused

	atDoor := h.live(3, 1, `,"needsClaim":false`)
	h.problem(h.expect(409, h.send(App, "POST", "/v1/order-tokens", fmt.Sprintf(`{"userId":42,"promotionId":%q}`, atDoor))), "no-claim-needed")
	paused := h.live(3, 1, "")
	h.expect(200, h.transition(paused, "pause", "paused"))
	late := h.orderToken(App, paused, 42)
	h.problem(h.expect(409, h.claim(App, paused, late, 42, "1")), "not-live")
}

func TestAClaimEndsByATask(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	ended := make(chan string, 2)
	h.delayed(servicestest.Redis(t).URL(), func(_ context.Context, id string) (time.Time, error) {
		ended <- id
		return time.Time{}, nil
	})
	id := h.live(3, 1, `,"claimTtlSeconds":1`)
	c := h.expect(http.StatusCreated, h.claim(App, id, h.orderToken(App, id, 42), 42, "1")).json(t)
	select {
	case subject := <-ended:
		if subject != c["claimId"] {
			t.Errorf("%q is ended, not %v", subject, c["claimId"])
		}
	case <-time.After(20 * time.Second):
		t.Error("nothing ended it")
	}
}

func TestACrowdGetsEachUnitOnce(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	const users, presses, units, atOnce = 300, 3, 20, 50
	id := h.live(units, 1, "")
	var mu sync.Mutex
	won := map[int64]int{}
	var crowd errgroup.Group
	crowd.SetLimit(atOnce)
	for n := range users * presses {
		crowd.Go(func() error {
			user := int64(1 + n%users)
			switch r := h.claim(App, id, h.orderToken(App, id, user), user, "1"); r.status {
			case http.StatusCreated:
				mu.Lock()
				won[user]++
				mu.Unlock()
				return nil
			case http.StatusConflict:
				return nil
			default:
				return errors.New(string(r.body))
			}
		})
	}
	if err := crowd.Wait(); err != nil {
		t.Fatal(err)
	}
	for user, n := range won {
		if n != 1 {
			t.Errorf("user %d was told %d times", user, n)
		}
	}
	if len(won) != units || h.taken(id) != float64(units) {
		t.Errorf("%d users have a unit and %v are taken, of %d", len(won), h.taken(id), units)
	}
}

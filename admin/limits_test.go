package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"doortab/ratelimit"
	"doortab/services/servicestest"
)

// few of each may come at once, and no more for an hour.
func few(n int) ratelimit.Limit { return ratelimit.Limit{Rate: 1, Burst: n, Period: time.Hour} }

func (h *harness) limit(c ratelimit.Config) {
	h.t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	limits, err := ratelimit.New(c)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = limits.Close() })
	h.server.limits = limits
}

func (h *harness) refusedTooMany(r reply) {
	h.t.Helper()
	h.expect(http.StatusTooManyRequests, r)
	h.problem(r, "too-many-requests")
	if r.header.Get("Retry-After") != "3600" {
		h.t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
}

func TestAShopperWhoOpensTooOftenIsToldToWait(t *testing.T) {
	t.Parallel()
	h, u := newDoor(t)
	h.limit(ratelimit.Config{User: few(3)})
	body := `{"deviceId":7,"userId":42}`
	first := h.expect(201, h.openDoor(App, "one", body))
	h.expect(201, h.openDoor(App, "one", body)) // repeats count
	h.expect(409, h.openDoor(App, "two", body))
	h.refusedTooMany(h.openDoor(App, "three", body))
	h.refusedTooMany(h.openDoor(Operator, "one", body)) // whoever asks for the shopper
	if again := h.openDoor(App, "one", body); again.status != http.StatusTooManyRequests {
		t.Errorf("a known key of a shopper who comes too often: %d %s", again.status, again.body)
	}
	reserve := `{"deviceId":7,"userId":42,"lines":[{"productId":7,"quantity":1}],"until":"2026-01-01T00:00:00Z"}`
	h.refusedTooMany(h.send(App, "POST", "/v1/reservations", reserve, header{keyHeader: "five"}))
	h.expect(409, h.openDoor(App, "four", `{"deviceId":7,"userId":43}`))
	h.expect(200, h.send(App, "GET", fmt.Sprint("/v1/door-sessions/", first.json(t)["sessionId"]), ""))
	if n := len(u.take()); n != 1 {
		t.Errorf("%d unlocks, want 1", n)
	}
}

func TestAShopperWhoClaimsTooOftenIsToldToWait(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	id := h.live(5, 5, "")
	h.limit(ratelimit.Config{User: few(3)})
	token := h.orderToken(App, id, 42)
	h.expect(201, h.claim(App, id, token, 42, "1"))
	h.expect(201, h.claim(App, id, token, 42, "1"))
	h.refusedTooMany(h.claim(App, id, token, 42, "1"))
	h.refusedTooMany(h.send(App, "POST", "/v1/order-tokens", fmt.Sprintf(`{"userId":42,"promotionId":%q}`, id)))
	h.expect(201, h.claim(App, id, h.orderToken(App, id, 43), 43, "1"))
	if n := h.taken(id); n != 2.0 {
		t.Errorf("%v units taken, want 2", n)
	}
}

// Nothing of a request that comes too often is looked at, so none of it is kept: its key stays good.
func TestARefusedRequestLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	h, _ := newDoor(t)
	body := `{"deviceId":7,"userId":42}`
	h.limit(ratelimit.Config{User: few(1)})
	h.expect(404, h.openDoor(App, "lost", `{"deviceId":99,"userId":42}`))
	h.refusedTooMany(h.openDoor(App, "key", body))
	h.server.limits = nil
	if r := h.expect(201, h.openDoor(App, "key", body)); r.header.Get(replayedHeader) != "" {
		t.Error("a refusal was kept under its key")
	}
}

func TestATokenIsLimitedOnEveryCallAndAnAddressOnOpens(t *testing.T) {
	t.Parallel()
	h, _ := newDoor(t)
	h.limit(ratelimit.Config{Token: few(3)})
	for range 3 {
		h.expect(200, h.send(Viewer, "GET", "/v1/products", ""))
	}
	h.refusedTooMany(h.send(Viewer, "GET", "/v1/cabinets", ""))
	h.expect(200, h.send(Operator, "GET", "/v1/products", ""))
	h.expect(401, h.send("", "GET", "/v1/products", ""))
	h.expect(200, h.send(Viewer, "GET", "/metrics", "")) // who watches must see it
	h.expect(200, h.send("", "GET", "/healthz", ""))

	h.limit(ratelimit.Config{Address: few(2)})
	for range 5 {
		h.expect(200, h.send(Viewer, "GET", "/v1/products", ""))
	}
	h.expect(404, h.openDoor(App, "a", `{"deviceId":99,"userId":1}`))
	h.expect(404, h.openDoor(App, "b", `{"deviceId":99,"userId":2}`))
	h.refusedTooMany(h.openDoor(App, "c", `{"deviceId":99,"userId":3}`))
	h.refusedTooMany(h.openDoor(App, "d", `{"deviceId":99,"userId":4}`))
	h.refusedTooMany(h.send(App, "POST", "/v1/door-sessions", "{", header{keyHeader: "e"})) // before the body is read
}

func TestServersThatShareARedisLimitTogether(t *testing.T) {
	t.Parallel()
	one, _ := newDoor(t)
	two := &harness{t: t, db: one.db, tokens: one.tokens, server: New(Config{
		DB: one.db, Settlement: one.server.settlement, Currency: "CNY", Logger: slog.New(slog.DiscardHandler),
	})}
	shared := ratelimit.Config{
		User: few(4), RedisURL: servicestest.Redis(t).URL(), RedisBudget: 10 * time.Second, Installation: uuid.NewString(),
	}
	one.limit(shared)
	two.limit(shared)
	served := map[int]int{}
	for n := range 8 {
		h := []*harness{one, two}[n%2]
		served[h.openDoor(App, fmt.Sprint("key-", n), `{"deviceId":99,"userId":42}`).status]++
	}
	if served[404] != 4 || served[429] != 4 {
		t.Errorf("answers by status: %v", served)
	}
}

func TestTheClientsAddress(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                       {"203.0.113.5:4711", nil, "203.0.113.5"},
		"a stranger's header":            {"203.0.113.5:4711", []string{"198.51.100.1"}, "203.0.113.5"},
		"behind a proxy":                 {"10.1.2.3:80", []string{"198.51.100.1"}, "198.51.100.1"},
		"behind two":                     {"10.1.2.3:80", []string{"198.51.100.1, 10.9.9.9"}, "198.51.100.1"},
		"in two headers":                 {"10.1.2.3:80", []string{"198.51.100.1", "10.9.9.9"}, "198.51.100.1"},
		"what the client made up":        {"10.1.2.3:80", []string{"192.0.2.66, 198.51.100.1"}, "198.51.100.1"},
		"a proxy that forwards nobody":   {"10.1.2.3:80", nil, "10.1.2.3"},
		"not an address":                 {"10.1.2.3:80", []string{"198.51.100.1, unknown"}, "10.1.2.3"},
		"IPv6 counts by its network":     {"[2001:db8:1:2:3:4:5:6]:80", nil, "2001:db8:1:2::/64"},
		"IPv6 proxy":                     {"[fd00::1]:80", []string{"2001:db8:1:2::9"}, "2001:db8:1:2::/64"},
		"IPv4 in IPv6":                   {"[::ffff:10.1.2.3]:80", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		"a zone is no part of who it is": {"[fe80::1%eth0]:80", nil, "fe80::/64"},
		"a socket":                       {"@", []string{"198.51.100.1"}, "@"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Header[forwardedHeader] = c.peer, c.forwarded
		if got := clientAddress(r, proxies); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheDocumentSaysThatARequestMayComeTooOften(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for path, item := range h.server.api.OpenAPI().Paths {
		if item.Get != nil && item.Get.Responses["429"] == nil || item.Post != nil && item.Post.Responses["429"] == nil {
			t.Errorf("%s has no 429", path)
		}
		if strings.HasPrefix(path, "/v1/door-sessions") && item.Post != nil && item.Post.Responses["429"].Headers["Retry-After"] == nil {
			t.Errorf("%s: 429 has no Retry-After", path)
		}
	}
}

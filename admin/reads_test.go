package admin

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/database"
	"doortab/settlement"
)

// settle hands one payload of cabinet 7 to the product.
func (h *harness) settle(payload string, at time.Time) settlement.Answer {
	h.t.Helper()
	answer := h.server.settlement.Settle(h.t.Context(), []settlement.Delivery{{
		DeviceID: 7, Topic: "v1/cabinets/7/door-closed", Payload: []byte(payload), ReceivedAt: at,
	}})[0]
	if answer.Err != nil {
		h.t.Fatal(answer.Err)
	}
	for settled := database.Now(); !database.Now().After(settled); { // ids of one millisecond come in no order
	}
	return answer
}

func event(id, rest string) string {
	return fmt.Sprintf(`{"closeEventId":%q,"deviceId":7,"kind":"sale","closedAt":%q%s}`, id, time.Now().Format(time.RFC3339Nano), rest)
}

func TestASettlementIsShownWithAllThatBelongsToIt(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":1}]}`))
	at := database.Now()
	h.settle(event("a:b", `,"userId":42,"items":[{"productId":7,"quantity":3}]`), at)
	h.settle(event("a:b", `,"userId":42,"items":[{"productId":7,"quantity":2}]`), at)

	listed, _ := h.walk("/v1/settlements?")
	for _, path := range []string{"/v1/settlements/7/a:b", "/v1/settlements/7/a%3Ab"} {
		s := h.expect(200, h.send(Viewer, "GET", path, "")).json(t)
		if diff := cmp.Diff(listed, []map[string]any{s}); diff != "" {
			t.Errorf("listed and read alone differ:\n%s", diff)
		}
		if s["outcome"] != "settled" || s["closeEventId"] != "a:b" || s["deviceId"] != 7.0 {
			t.Errorf("%s: %v", path, s)
		}
		if diff := cmp.Diff([]any{"shortfall"}, s["reasons"]); diff != "" {
			t.Error(diff)
		}
		if line := s["lines"].([]any)[0].(map[string]any); line["quantity"] != 3.0 || line["evidence"].(map[string]any)["source"] != "items" {
			t.Errorf("line %v", line)
		}
		if s["event"].(map[string]any)["userId"] != 42.0 || s["receipt"].(map[string]any)["orderId"] != s["orderId"] {
			t.Errorf("event %v, receipt %v", s["event"], s["receipt"])
		}
		conflicts := s["conflicts"].([]any)
		if len(conflicts) != 1 || conflicts[0].(map[string]any)["event"].(map[string]any)["closeEventId"] != "a:b" {
			t.Errorf("conflicts %v", conflicts)
		}
		o := h.expect(200, h.send(Viewer, "GET", "/v1/orders/"+s["orderId"].(string), "")).json(t)
		if o["totalMinor"] != 1500.0 || o["status"] != "open" || o["userId"] != 42.0 || o["currency"] != "CNY" || len(o["lines"].([]any)) != 1 {
			t.Errorf("order %v", o)
		}
	}
	differences, _ := h.walk("/v1/discrepancies?")
	if len(differences) != 1 || differences[0]["kind"] != "shortfall" || differences[0]["quantity"] != 2.0 || differences[0]["ref"] != "a:b" {
		t.Errorf("discrepancies %v", differences)
	}
	reviews, _ := h.walk("/v1/reviews?")
	if len(reviews) != 1 || reviews[0]["status"] != "open" || reviews[0]["orderId"] != nil {
		t.Fatalf("reviews %v", reviews)
	}
	review := h.expect(200, h.send(Viewer, "GET", "/v1/reviews/"+reviews[0]["reviewId"].(string), "")).json(t)
	if diff := cmp.Diff([]any{"conflict"}, review["reasons"]); diff != "" || review["evidence"] == nil {
		t.Errorf("review %v %s", review, diff)
	}
}

func TestListsAreWalkedToTheEndNewestFirst(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":3}]}`))
	at := database.Now().Add(-time.Hour)
	for i := range 7 { // every two in one millisecond
		h.settle(event(fmt.Sprint("e", i), `,"userId":42,"items":[{"productId":7,"quantity":1}]`), at.Add(time.Duration(i/2)*time.Second))
	}
	for i := range 3 {
		h.settle(event(fmt.Sprint("r", i), fmt.Sprintf(`,"items":[{"productId":%d,"quantity":1}]`, 99+i)), at.Add(-time.Minute))
	}
	for i := range 3 {
		h.settle(fmt.Sprint("garbage ", i), at)
	}
	moment := url.QueryEscape(at.Add(time.Second).Format(time.RFC3339Nano))
	for path, want := range map[string]struct {
		field string
		items []string
	}{
		"/v1/settlements?":                                {"closeEventId", []string{"e6", "e5", "e4", "e3", "e2", "e1", "e0", "r2", "r1", "r0"}},
		"/v1/settlements?deviceId=7&outcome=review":       {"closeEventId", []string{"r2", "r1", "r0"}},
		"/v1/settlements?deviceId=8":                      {"closeEventId", nil},
		"/v1/settlements?from=" + moment:                  {"closeEventId", []string{"e6", "e5", "e4", "e3", "e2"}},
		"/v1/settlements?outcome=settled&to=" + moment:    {"closeEventId", []string{"e1", "e0"}},
		"/v1/orders?deviceId=7":                           {"closeEventId", []string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}},
		"/v1/orders?userId=42&status=open&from=" + moment: {"closeEventId", []string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}},
		"/v1/orders?status=paid":                          {"closeEventId", nil},
		"/v1/orders?userId=43":                            {"closeEventId", nil},
		"/v1/orders?to=" + moment:                         {"closeEventId", nil},
		"/v1/reviews?":                                    {"closeEventId", []string{"r0", "r1", "r2"}},
		"/v1/discrepancies?":                              {"ref", []string{"e6", "e5", "e4", "e3"}},
		"/v1/cabinets/7/movements?productId=7":            {"balance", []string{"0", "0", "0", "0", "0", "1", "2", "3"}},
		"/v1/dead-letters?":                               {"payload", []string{"garbage 2", "garbage 1", "garbage 0"}},
		"/v1/tokens?":                                     {"role", []string{"app", "admin", "operator", "restocker", "viewer"}},
	} {
		items, pages := h.walk(path)
		var got []string
		for _, item := range items {
			got = append(got, fmt.Sprint(item[want.field]))
		}
		if diff := cmp.Diff(want.items, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if least := max(1, (len(want.items)+1)/2); pages != least {
			t.Errorf("%s took %d pages, want %d", path, pages, least)
		}
	}
	h.exec("UPDATE reviews SET status = 'waived' WHERE close_event_id = 'r0'")
	items, _ := h.walk("/v1/reviews?")
	var got []any
	for _, item := range items {
		got = append(got, item["closeEventId"])
	}
	if !slices.Equal(got, []any{"r1", "r2", "r0"}) {
		t.Errorf("reviews with the first decided: %v", got)
	}
}

func TestABadPageIsRefused(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	of := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, query := range []string{
		"limit=0", "limit=201", "limit=-1", "limit=x", "limit=1.5", "cursor=x", "cursor=%00", "cursor=" + of("null"), "cursor=" + of("{}"),
		"cursor=" + of(`{"id":"7"}`), "cursor=" + of(`{"id":7,"x":1}`), "cursor=" + of(`{"id": 7}`), "cursor=" + strings.Repeat("A", 513),
	} {
		h.problem(h.expect(422, h.send(Viewer, "GET", "/v1/products?"+query, "")), "invalid")
	}
	for _, path := range []string{
		"/v1/settlements?outcome=lost", "/v1/settlements?from=yesterday", "/v1/settlements?deviceId=0", "/v1/orders?status=x",
		"/v1/orders?userId=9007199254740992", "/v1/cabinets/7/movements?productId=x", "/v1/settlements?cursor=" + of(`{"id":7}`),
		"/v1/orders?userid=42", "/v1/orders?userId=42&userId=43", "/v1/products/7?limit=1", "/v1/products?unknown=",
		"/v1/settlements?from=0000-12-31T00:00:00Z", "/v1/orders?to=9999-12-31T23:59:59-01:00", "/v1/orders?deviceId=", "/v1/orders?limit=",
		"/v1/settlements?cursor=" + of(`{"receivedAt":"2026-11-30T10:00:00.000Z","deviceId":7,"closeEventId":"é"}`),
		"/v1/discrepancies?cursor=" + of(`{"createdAt":"0000-11-30T10:00:00.000Z","deviceId":7,"productId":7,"version":1}`),
	} {
		h.problem(h.expect(422, h.send(Viewer, "GET", path, "")), "invalid")
	}
	h.expect(200, h.send(Viewer, "GET", "/v1/products?limit=200&cursor=", ""))
}

func TestWhatDoesNotExistIs404(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	for _, path := range []string{
		"/v1/products/9", "/v1/cabinets/9", "/v1/cabinets/9/stock", "/v1/cabinets/9/movements", "/v1/settlements/7/x", "/v1/settlements/9/x",
		"/v1/orders/1", "/v1/orders/x", "/v1/orders/007", "/v1/orders/99999999999999999999", "/v1/reviews/1", "/v1/reviews/-1", "/v1/nothing", "/",
		"/v1/products/", "/docs/other", "/v1/settlements/7/%C3%A9", "/v1/settlements/7/%FF",
	} {
		h.problem(h.expect(404, h.send(Viewer, "GET", path, "")), "not-found")
	}
	h.expect(404, h.send(Operator, "POST", "/v1/dead-letters/1/retry", ""))
	h.expect(404, h.send(Operator, "DELETE", "/v1/dead-letters/1", ""))
	h.expect(404, h.send(Operator, "PATCH", "/v1/cabinets/9", `{}`))
	h.expect(404, h.send(Admin, "POST", "/v1/cabinets/9/credentials", ""))
	for _, id := range []string{"9", "%C3%A9", "%FF", "019387b4-0000-7000-8000-000000000000"} {
		h.expect(404, h.send(Admin, "DELETE", "/v1/tokens/"+id, ""))
	}
}

func TestADeadLetterIsRetriedOrDiscarded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.product(cola)
	at := database.Now()
	h.settle(event("early", `,"userId":42,"items":[{"productId":7,"quantity":1}]`), at)
	h.settle("\xff\x00", at)
	items, _ := h.walk("/v1/dead-letters?")
	if len(items) != 2 || items[0]["encoding"] != "base64" || items[0]["payload"] != "/wA=" || items[1]["reason"] != "unknown_cabinet" {
		t.Fatalf("dead letters %v", items)
	}
	if items[1]["topic"] != "v1/cabinets/7/door-closed" || items[1]["encoding"] != nil || items[1]["copies"] != 1.0 {
		t.Errorf("dead letter %v", items[1])
	}
	early, garbage := "/v1/dead-letters/"+items[1]["id"].(string), "/v1/dead-letters/"+items[0]["id"].(string)
	h.problem(h.expect(409, h.send(Operator, "POST", early+"/retry", "")), "still-dead")
	h.problem(h.expect(409, h.send(Operator, "POST", garbage+"/retry", "")), "still-dead")
	h.cabinet(7)
	answer := h.expect(200, h.send(Operator, "POST", early+"/retry", "")).json(t)
	if answer["outcome"] != "settled" || answer["receipt"].(map[string]any)["closeEventId"] != "early" {
		t.Errorf("retried: %v", answer)
	}
	h.expect(404, h.send(Operator, "POST", early+"/retry", ""))
	if r := h.expect(204, h.send(Operator, "DELETE", garbage, "")); len(r.body) != 0 {
		t.Errorf("204 with a body: %s", r.body)
	}
	if items, _ = h.walk("/v1/dead-letters?"); len(items) != 0 {
		t.Errorf("left: %v", items)
	}
}

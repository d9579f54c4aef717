package admin

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/database"
)

// doubtful settles an event of which two units of product 7 are sure and three more are proposed, and returns its review.
func (h *harness) doubtful(id string) map[string]any {
	h.t.Helper()
	h.settle(event(id, `,"userId":42,"items":[{"productId":7,"quantity":2},{"productId":8,"quantity":3,"confidence":0.5}]`), database.Now())
	items, _ := h.walk("/v1/reviews?")
	for _, item := range items {
		if item["closeEventId"] == id {
			return item
		}
	}
	h.t.Fatalf("%s has no review", id)
	return nil
}

func newReviewShop(t testing.TB) *harness {
	t.Helper()
	h := newShop(t)
	h.product(`{"productId":8,"sku":"TEA","name":"Tea","priceMinor":300}`)
	h.expect(http.StatusCreated, h.restock("fill", `{"lines":[{"productId":7,"quantity":100},{"productId":8,"quantity":100}]}`))
	return h
}

func resolutionOf(reviewID any) string { return fmt.Sprintf("/v1/reviews/%v/resolution", reviewID) }

func (h *harness) resolve(reviewID any, key, body string) reply {
	h.t.Helper()
	return h.send(Operator, "POST", resolutionOf(reviewID), body, header{keyHeader: key})
}

func TestAReviewIsDecidedAndTheOrderShowsIt(t *testing.T) {
	t.Parallel()
	h := newReviewShop(t)
	open := h.doubtful("e")
	orderID := open["orderId"].(string)
	for field, want := range map[string]any{"status": "open", "decision": nil, "note": "", "resolvedBy": nil, "resolvedAt": nil} {
		if got, there := open[field]; got != want || !there {
			t.Errorf("open review: %s is %v", field, got)
		}
	}
	first := h.expect(200, h.resolve(open["reviewId"], "k", `{"decision":"amend","lines":[{"productId":8,"quantity":1}],"note":"看过录像"}`))
	decided := first.json(t)
	at, err := time.Parse("2006-01-02T15:04:05.000Z", fmt.Sprint(decided["resolvedAt"]))
	if err != nil || time.Since(at) > time.Minute || decided["resolvedBy"] == "" || decided["resolvedBy"] == nil {
		t.Errorf("resolvedBy %v, resolvedAt %v", decided["resolvedBy"], decided["resolvedAt"])
	}
	want := maps.Clone(open)
	maps.Copy(want, map[string]any{
		"status": "amended", "decision": "amend", "note": "看过录像", "resolvedBy": decided["resolvedBy"], "resolvedAt": decided["resolvedAt"],
	})
	for name, got := range map[string]map[string]any{
		"answer": decided, "read": h.expect(200, h.send(Viewer, "GET", "/v1/reviews/"+open["reviewId"].(string), "")).json(t),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	o := h.expect(200, h.send(Viewer, "GET", "/v1/orders/"+orderID, "")).json(t)
	var lines []string
	for _, l := range o["lines"].([]any) {
		line := l.(map[string]any)
		lines = append(lines, fmt.Sprint(line["origin"], line["productId"], " ", line["quantity"], " ", line["unitPriceMinor"], " ", line["amountMinor"]))
	}
	corrected := []string{"settlement7 2 500 1000", "review7 -2 500 -1000", "review8 1 300 300"}
	if diff := cmp.Diff(corrected, lines); diff != "" || o["status"] != "open" || o["totalMinor"] != 300.0 {
		t.Errorf("order %v: %s", o, diff)
	}
	s := h.expect(200, h.send(Viewer, "GET", "/v1/settlements/7/e", "")).json(t)
	receipt := s["receipt"].(map[string]any)
	if diff := cmp.Diff([]any{want}, s["reviews"]); diff != "" || len(s["lines"].([]any)) != 3 || receipt["totalMinor"] != 1000.0 {
		t.Errorf("settlement %v: %s", s, diff)
	}
	moved, _ := h.walk("/v1/cabinets/7/movements?productId=8")
	if moved[0]["kind"] != "review" || moved[0]["delta"] != -1.0 || moved[0]["ref"] != open["reviewId"] {
		t.Errorf("movement %v", moved[0])
	}
	again := h.expect(200, h.resolve(open["reviewId"], "k", `{"decision":"amend","lines":[{"productId":8,"quantity":1}],"note":"看过录像"}`))
	if string(again.body) != string(first.body) || again.header.Get(replayedHeader) != "true" {
		t.Errorf("repeat %s", again.body)
	}
	h.problem(h.expect(409, h.resolve(open["reviewId"], "l", `{"decision":"waive","note":"x"}`)), "decided")
}

func TestAnOrderIsReopened(t *testing.T) {
	t.Parallel()
	h := newReviewShop(t)
	h.settle(event("e", `,"userId":42,"items":[{"productId":7,"quantity":2}]`), database.Now())
	orders, _ := h.walk("/v1/orders?")
	path := fmt.Sprintf("/v1/orders/%v/reviews", orders[0]["orderId"])
	r := h.expect(201, h.send(Operator, "POST", path, `{"note":"complains"}`, header{keyHeader: "k"})).json(t)
	evidence := r["evidence"].([]any)[0].(map[string]any)["entry"].(map[string]any)
	if r["status"] != "open" || r["orderId"] != orders[0]["orderId"] || len(r["reasons"].([]any))+len(r["proposed"].([]any)) != 0 ||
		r["note"] != "complains" || evidence["note"] != "complains" || evidence["reopenedBy"] == "" {
		t.Errorf("review %v", r)
	}
	if o := h.expect(200, h.send(Viewer, "GET", "/v1/orders/"+r["orderId"].(string), "")).json(t); o["status"] != "review" {
		t.Errorf("order %v", o)
	}
	h.problem(h.expect(409, h.send(Operator, "POST", path, `{"note":"again"}`, header{keyHeader: "l"})), "under-review")
	decided := h.expect(200, h.resolve(r["reviewId"], "m", `{"decision":"amend","lines":[],"note":"nothing"}`)).json(t)
	if decided["note"] != "nothing" || decided["status"] != "amended" {
		t.Errorf("review %v", decided)
	}
	if o := h.expect(200, h.send(Viewer, "GET", "/v1/orders/"+r["orderId"].(string), "")).json(t); o["status"] != "void" || o["totalMinor"] != 0.0 {
		t.Errorf("order %v", o)
	}
	h.expect(201, h.send(Operator, "POST", path, `{"note":"once more"}`, header{keyHeader: "n"}))
	h.exec("UPDATE reviews SET status = 'waived'")
	h.exec("UPDATE orders SET status = 'paid'")
	h.problem(h.expect(409, h.send(Operator, "POST", path, `{"note":"again"}`, header{keyHeader: "o"})), "order-closed")
	for name, c := range map[string]struct {
		path, body, key string
		status          int
		kind            string
	}{
		"no note":       {path, `{}`, "x", 422, "invalid"},
		"empty note":    {path, `{"note":""}`, "x", 422, "invalid"},
		"long note":     {path, `{"note":"` + strings.Repeat("é", 501) + `"}`, "x", 422, "invalid"},
		"unknown field": {path, `{"note":"a","lines":[]}`, "x", 422, "invalid"},
		"no key":        {path, `{"note":"a"}`, "", 400, "idempotency-key"},
		"no such order": {"/v1/orders/1/reviews", `{"note":"a"}`, "x", 404, "not-found"},
		"no order id":   {"/v1/orders/x/reviews", `{"note":"a"}`, "x", 404, "not-found"},
	} {
		r := h.send(Operator, "POST", c.path, c.body, header{keyHeader: c.key})
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %.300s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
}

func TestAResolutionOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	h := newReviewShop(t)
	id := h.doubtful("e")["reviewId"]
	path := resolutionOf(id)
	line := func(text string) string { return `{"decision":"amend","note":"n","lines":[` + text + `]}` }
	for name, c := range map[string]struct {
		path, body, key string
		status          int
		kind            string
	}{
		"no decision":        {path, `{"note":"n"}`, "k", 422, "invalid"},
		"another decision":   {path, `{"decision":"refund","note":"n"}`, "k", 422, "invalid"},
		"no note":            {path, `{"decision":"accept"}`, "k", 422, "invalid"},
		"empty note":         {path, `{"decision":"accept","note":""}`, "k", 422, "invalid"},
		"long note":          {path, `{"decision":"accept","note":"` + strings.Repeat("x", 501) + `"}`, "k", 422, "invalid"},
		"accept with lines":  {path, `{"decision":"accept","note":"n","lines":[{"productId":7,"quantity":1}]}`, "k", 422, "invalid"},
		"waive with lines":   {path, `{"decision":"waive","note":"n","lines":[{"productId":7,"quantity":1}]}`, "k", 422, "invalid"},
		"amend without":      {path, `{"decision":"amend","note":"n"}`, "k", 422, "invalid"},
		"amend with null":    {path, `{"decision":"amend","note":"n","lines":null}`, "k", 422, "invalid"},
		"quantity 0":         {path, line(`{"productId":7,"quantity":0}`), "k", 422, "invalid"},
		"quantity -1":        {path, line(`{"productId":7,"quantity":-1}`), "k", 422, "invalid"},
		"quantity 1001":      {path, line(`{"productId":7,"quantity":1001}`), "k", 422, "invalid"},
		"quantity 1.5":       {path, line(`{"productId":7,"quantity":1.5}`), "k", 422, "invalid"},
		"no quantity":        {path, line(`{"productId":7}`), "k", 422, "invalid"},
		"a product twice":    {path, line(`{"productId":7,"quantity":1},{"productId":7,"quantity":1}`), "k", 422, "invalid"},
		"an unknown product": {path, line(`{"productId":99,"quantity":1}`), "k", 422, "unknown-product"},
		"unknown field":      {path, `{"decision":"accept","note":"n","x":1}`, "k", 422, "invalid"},
		"no key":             {path, `{"decision":"accept","note":"n"}`, "", 400, "idempotency-key"},
		"no such review":     {resolutionOf(1), `{"decision":"accept","note":"n"}`, "k", 404, "not-found"},
		"no review id":       {resolutionOf("x"), `{"decision":"accept","note":"n"}`, "k", 404, "not-found"},
	} {
		r := h.send(Operator, "POST", c.path, c.body, header{keyHeader: c.key})
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %.300s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	if got := h.expect(200, h.send(Viewer, "GET", fmt.Sprintf("/v1/reviews/%v", id), "")).json(t); got["status"] != "open" {
		t.Errorf("a refused resolution left %v", got)
	}
	// A refusal leaves the key free; a note of 500 characters of any script and 1,000 units are taken.
	body := `{"decision":"amend","lines":[{"productId":7,"quantity":1000}],"note":"` + strings.Repeat("早", 500) + `"}`
	h.expect(200, h.resolve(id, "k", body))
}

func TestOneOfManyOperatorsIsAnsweredWithTheReview(t *testing.T) {
	t.Parallel()
	h := newReviewShop(t)
	id := h.doubtful("e")["reviewId"]
	var mu sync.Mutex
	var wait sync.WaitGroup
	statuses := map[int]int{}
	for n := range 8 {
		wait.Go(func() {
			r := h.resolve(id, fmt.Sprint("k", n), `{"decision":"accept","note":"n"}`)
			mu.Lock()
			defer mu.Unlock()
			if statuses[r.status]++; r.status != 200 {
				h.problem(r, "decided")
			}
		})
	}
	wait.Wait()
	if diff := cmp.Diff(map[int]int{200: 1, 409: 7}, statuses); diff != "" {
		t.Error(diff)
	}
	if stock := h.stock(); stock != 98.0 {
		t.Errorf("stock %v", stock)
	}
}

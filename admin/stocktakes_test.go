package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const stocktakesOf7 = "/v1/cabinets/7/stocktakes"

func (h *harness) stocktake(key, body string) reply {
	return h.send(Restocker, "POST", stocktakesOf7, body, header{keyHeader: key})
}

// sell settles an event of cabinet 7 with a seq, of one unit of product 7.
func (h *harness) sell(seq int) {
	h.t.Helper()
	h.settle(event(fmt.Sprint("seq", seq), fmt.Sprintf(`,"userId":42,"seq":%d,"items":[{"productId":7,"quantity":1}]`, seq)), time.Now())
}

// logged lists what the audit log says was done, the oldest first.
func (h *harness) logged(action string) []string {
	h.t.Helper()
	var list []string
	err := h.db.Read(h.t.Context()).Raw(`SELECT CONCAT_WS('|', target, COALESCE(before_change, ''), after_change)
		FROM audit_log WHERE action = ? ORDER BY entry_id`, action).Scan(&list).Error
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

func TestAStocktakeSetsUnitsAndRecordsDifferences(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.product(`{"productId":3,"sku":"TEA","name":"Tea","priceMinor":1}`)
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":12},{"productId":3,"quantity":5}]}`))
	h.sell(1)
	h.sell(2)
	body := `{"asOfSeq":1,"lines":[{"productId":7,"counted":9},{"productId":3,"counted":5}]}`
	r := h.expect(http.StatusCreated, h.stocktake("k", body))
	answer := r.json(t)
	tea, cola := answer["movements"].([]any)[0].(map[string]any), answer["movements"].([]any)[1].(map[string]any)
	if tea["productId"] != 3.0 || tea["kind"] != "stocktake" || tea["delta"] != 0.0 || tea["balance"] != 5.0 {
		t.Errorf("movement of what was right: %v", tea)
	}
	if cola["productId"] != 7.0 || cola["delta"] != -2.0 || cola["balance"] != 8.0 || cola["version"] != 4.0 || cola["ref"] != tea["ref"] {
		t.Errorf("movement of what was counted before seq 2: %v", cola)
	}
	want := []any{map[string]any{
		"deviceId": 7.0, "productId": 7.0, "kind": "stocktake", "quantity": -2.0, "ref": cola["ref"], "createdAt": cola["createdAt"],
	}}
	if diff := cmp.Diff(want, answer["discrepancies"]); diff != "" {
		t.Errorf("discrepancies %s", diff)
	}
	listed, _ := h.walk("/v1/discrepancies?")
	if diff := cmp.Diff(want[0], any(listed[0])); diff != "" || len(listed) != 1 {
		t.Errorf("%d listed: %s", len(listed), diff)
	}
	ledger, _ := h.walk("/v1/cabinets/7/movements?productId=7")
	if diff := cmp.Diff(cola, ledger[0]); diff != "" {
		t.Errorf("ledger %s", diff)
	}
	again := h.expect(http.StatusCreated, h.stocktake("k", body))
	if string(again.body) != string(r.body) || again.header.Get(replayedHeader) != "true" {
		t.Errorf("repeat %s", again.body)
	}
	if log := h.logged("stocktake.create"); len(log) != 1 || !strings.HasPrefix(log[0], fmt.Sprintf("cabinet 7 stocktake %s|", cola["ref"])) ||
		!strings.Contains(log[0], `"counted":9`) {
		t.Errorf("audit log %q", log)
	}
	right := h.expect(http.StatusCreated, h.stocktake("right", `{"lines":[{"productId":7,"counted":8}]}`)).json(t)
	if list, there := right["discrepancies"].([]any); !there || len(list) != 0 {
		t.Errorf("discrepancies of a count that was right: %v", right["discrepancies"])
	}
}

func TestAStocktakeOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	one := func(seq string) string { return `{` + seq + `"lines":[{"productId":7,"counted":1}]}` }
	h.problem(h.expect(422, h.stocktake("early", one(`"asOfSeq":0,`))), "beyond-sequence")
	h.sell(5)
	h.expect(http.StatusCreated, h.stocktake("first", one(`"asOfSeq":4,`)))
	for name, c := range map[string]struct {
		path, body, key string
		status          int
		kind            string
	}{
		"no lines":        {stocktakesOf7, `{"lines":[]}`, "k", 422, "invalid"},
		"missing lines":   {stocktakesOf7, `{"asOfSeq":5}`, "k", 422, "invalid"},
		"counted -1":      {stocktakesOf7, `{"lines":[{"productId":7,"counted":-1}]}`, "k", 422, "invalid"},
		"counted 100001":  {stocktakesOf7, `{"lines":[{"productId":7,"counted":100001}]}`, "k", 422, "invalid"},
		"not counted":     {stocktakesOf7, `{"lines":[{"productId":7}]}`, "k", 422, "invalid"},
		"a product twice": {stocktakesOf7, `{"lines":[{"productId":7,"counted":1},{"productId":7,"counted":1}]}`, "k", 422, "invalid"},
		"unknown product": {stocktakesOf7, `{"lines":[{"productId":9,"counted":1}]}`, "k", 422, "unknown-product"},
		"unknown field":   {stocktakesOf7, one(`"x":1,`), "k", 422, "invalid"},
		"seq -1":          {stocktakesOf7, one(`"asOfSeq":-1,`), "k", 422, "invalid"},
		"seq 1.5":         {stocktakesOf7, one(`"asOfSeq":1.5,`), "k", 422, "invalid"},
		"seq beyond":      {stocktakesOf7, one(`"asOfSeq":6,`), "k", 422, "beyond-sequence"},
		"seq before":      {stocktakesOf7, one(`"asOfSeq":3,`), "before", 409, "counted-later"},
		"unknown cabinet": {"/v1/cabinets/8/stocktakes", one(""), "k", 404, "not-found"},
		"no key":          {stocktakesOf7, one(""), "", 400, "idempotency-key"},
	} {
		r := h.send(Restocker, "POST", c.path, c.body, header{keyHeader: c.key})
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %.300s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	if r := h.stocktake("before", one(`"asOfSeq":3,`)); r.status != 409 || r.header.Get(replayedHeader) != "true" {
		t.Errorf("a count too late, again: %d, replayed %q", r.status, r.header.Get(replayedHeader))
	}
	h.expect(http.StatusCreated, h.stocktake("same", `{"asOfSeq":4,"lines":[{"productId":7,"counted":100000}]}`))
	h.expect(http.StatusCreated, h.stocktake("k", `{"asOfSeq":5,"lines":[{"productId":7,"counted":0}]}`))
}

func TestAReplacedControllerStartsANewSequence(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	replace := func(want float64) {
		t.Helper()
		r := h.expect(http.StatusCreated, h.send(Operator, "POST", "/v1/cabinets/7/controller-replacements", "")).json(t)
		if diff := cmp.Diff(map[string]any{"deviceId": 7.0, "epoch": want}, r); diff != "" {
			t.Error(diff)
		}
	}
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":10}]}`))
	h.sell(918)
	h.expect(http.StatusCreated, h.stocktake("old", `{"lines":[{"productId":7,"counted":10}]}`))
	replace(1)
	replace(1) // the answer to the first was lost
	h.sell(1)
	if stock := h.stock(); stock != 9.0 {
		t.Errorf("stock %v after the new controller's first sale: the old count has swallowed it", stock)
	}
	h.expect(http.StatusCreated, h.stocktake("new", `{"asOfSeq":1,"lines":[{"productId":7,"counted":9}]}`))
	replace(2)
	if log := h.logged("controller.replace"); len(log) != 2 || !strings.Contains(log[0], "918") {
		t.Errorf("audit log %q", log)
	}
	h.problem(h.expect(404, h.send(Operator, "POST", "/v1/cabinets/8/controller-replacements", "")), "not-found")
}

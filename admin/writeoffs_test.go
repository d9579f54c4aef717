package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/database"
)

func (h *harness) writeOff(key, body string) reply {
	return h.send(Restocker, "POST", "/v1/cabinets/7/writeoffs", body, header{keyHeader: key})
}

func TestAWriteoffTakesUnitsAndNotMoreThanThereAre(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	write := h.writeOff
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":5}]}`))
	r := h.expect(http.StatusCreated, write("a", `{"lines":[{"productId":7,"quantity":2}],"reason":"過期"}`))
	m := r.json(t)["movements"].([]any)[0].(map[string]any)
	if m["kind"] != "writeoff" || m["delta"] != -2.0 || m["balance"] != 3.0 {
		t.Errorf("movement %v", m)
	}
	h.expect(http.StatusCreated, write("b", `{"lines":[{"productId":7,"quantity":4}],"reason":"spoiled"}`))
	if stock := h.stock(); stock != 0.0 {
		t.Errorf("stock %v", stock)
	}
	listed, _ := h.walk("/v1/discrepancies?")
	if len(listed) != 1 || listed[0]["kind"] != "shortfall" || listed[0]["quantity"] != 1.0 {
		t.Errorf("discrepancies %v", listed)
	}
	if log := h.logged("writeoff.create"); len(log) != 2 || !strings.Contains(log[0], "過期") {
		t.Errorf("audit log %q", log)
	}
	for name, body := range map[string]string{
		"no reason":   `{"lines":[{"productId":7,"quantity":1}]}`,
		"empty":       `{"lines":[{"productId":7,"quantity":1}],"reason":""}`,
		"long reason": `{"lines":[{"productId":7,"quantity":1}],"reason":"` + strings.Repeat("a", 501) + `"}`,
		"nothing":     `{"lines":[{"productId":7,"quantity":0}],"reason":"x"}`,
		"too much":    `{"lines":[{"productId":7,"quantity":100001}],"reason":"x"}`,
		"twice":       `{"lines":[{"productId":7,"quantity":1},{"productId":7,"quantity":1}],"reason":"x"}`,
	} {
		if r := write("k", body); r.status != 422 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	h.problem(h.expect(422, write("k", `{"lines":[{"productId":9,"quantity":1}],"reason":"x"}`)), "unknown-product")
	h.problem(h.expect(400, write("", `{"lines":[{"productId":7,"quantity":1}],"reason":"x"}`)), "idempotency-key")
	r = h.send(Restocker, "POST", "/v1/cabinets/8/writeoffs", `{"lines":[{"productId":7,"quantity":1}],"reason":"x"}`, header{keyHeader: "k"})
	h.problem(h.expect(404, r), "not-found")
}

// tags lists where the books have each tag, and with which document.
func (h *harness) tags() []string {
	h.t.Helper()
	var list []string
	err := h.db.Read(h.t.Context()).Raw("SELECT CONCAT_WS(' ', epc, state, close_event_id) FROM epcs ORDER BY epc").Scan(&list).Error
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

func TestAWriteoffThatNamesTagsLosesThem(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.product(`{"productId":8,"sku":"TEA","name":"Tea","priceMinor":1}`)
	for epc, product := range map[string]int{"AAAA": 7, "BBBB": 7, "CCCC": 7, "DDDD": 8} {
		h.expect(http.StatusOK, h.send(Operator, "PUT", "/v1/epcs/"+epc, fmt.Sprintf(`{"productId":%d}`, product)))
	}
	staff := strings.Replace(event("in", `,"rfid":{"before":[],"after":["AAAA","BBBB","CCCC","DDDD"]}`), "sale", "restock", 1)
	h.settle(staff, database.Now())
	h.settle(event("out", `,"userId":42,"rfid":{"before":["CCCC"],"after":[]}`), database.Now())

	of := func(quantity int, epcs string) string {
		return fmt.Sprintf(`{"lines":[{"productId":7,"quantity":%d,"epcs":[%s]}],"reason":"spoiled"}`, quantity, epcs)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		kind   string
	}{
		"more tags than units": {of(1, `"AAAA","BBBB"`), 422, "invalid"},
		"a tag twice":          {of(2, `"AAAA","aaaa"`), 422, "invalid"},
		"no hex":               {of(1, `"tag"`), 422, "invalid"},
		"not a text":           {of(1, `7`), 422, "invalid"},
		"of another product":   {of(1, `"DDDD"`), 409, "tag-not-here"},
		"sold":                 {of(2, `"AAAA","CCCC"`), 409, "tag-not-here"},
		"never seen":           {of(1, `"EEEE"`), 409, "tag-not-here"},
	} {
		r := h.writeOff(strings.ReplaceAll(name, " ", "-"), c.body)
		if r.status != c.status {
			t.Errorf("%s: %d %s", name, r.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	if h.stock() != 2.0 {
		t.Fatalf("stock %v: a refused write-off left something", h.stock())
	}

	m := h.expect(http.StatusCreated, h.writeOff("one-of-two", of(2, `"aaaa"`))).json(t)["movements"].([]any)[0].(map[string]any)
	want := []string{fmt.Sprint("AAAA lost ", m["ref"]), "BBBB in_cabinet in", "CCCC sold out", "DDDD in_cabinet in"}
	if diff := cmp.Diff(want, h.tags()); diff != "" || m["delta"] != -2.0 {
		t.Errorf("delta %v, tags %s", m["delta"], diff)
	}
	if log := h.logged("writeoff.create"); len(log) != 1 || !strings.Contains(log[0], `"epcs":["aaaa"]`) {
		t.Errorf("audit log %q", log)
	}
	h.problem(h.expect(409, h.writeOff("again", of(1, `"AAAA"`))), "tag-not-here")
}

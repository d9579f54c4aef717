package admin

import (
	"strings"
	"testing"
	"time"

	"doortab/database/databasetest"
)

type auditLine struct {
	EntryID                              int64
	Actor, Action, Target, Before, After string
}

// auditLog reads the lines that are not among those seen, and adds them there.
func (h *harness) auditLog(seen map[int64]bool) []auditLine {
	h.t.Helper()
	var all, fresh []auditLine
	err := h.db.Read(h.t.Context()).Raw("SELECT entry_id, actor, action, target, COALESCE(before_change, '') AS `before`, " +
		"COALESCE(after_change, '') AS `after` FROM audit_log ORDER BY entry_id").Scan(&all).Error
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range all {
		if !seen[line.EntryID] {
			fresh = append(fresh, line)
			seen[line.EntryID] = true
		}
	}
	return fresh
}

// audited are changes in an order in which each can be made; none of the second list may leave a line.
var audited = []struct {
	name, method, path, body      string
	action, target, before, after string
}{
	{"product", "POST", "/v1/products", `{"productId":8,"sku":"A","name":"水","priceMinor":1}`,
		"product.create", "product 8", "", `"name":"水"`},
	{"price", "PATCH", "/v1/products/7", `{"priceMinor":501}`, "product.patch", "product 7", `"priceMinor":500`, `"priceMinor":501`},
	{"cabinet", "POST", "/v1/cabinets", `{"deviceId":8,"name":"c","site":"HQ"}`, "cabinet.create", "cabinet 8", "", `"site":"HQ"`},
	{"site", "PATCH", "/v1/cabinets/8", `{"site":"d"}`, "cabinet.patch", "cabinet 8", `"site":"HQ"`, `"site":"d"`},
	{"lock", "PATCH", "/v1/cabinets/8", `{"locked":true}`, "cabinet.patch", "cabinet 8", `"locked":false`, `"locked":true`},
	{"secret", "POST", "/v1/cabinets/8/credentials", "", "credentials.create", "cabinet 8", "", `{"username":"8"}`},
	{"planogram", "PUT", "/v1/cabinets/7/planogram", `{"lanes":[{"lane":1,"productId":7,"capacity":5,"parLevel":2}]}`,
		"planogram.put", "cabinet 7 planogram", `[]`, `"capacity":5`},
	{"tag", "PUT", "/v1/epcs/abcd", `{"productId":7}`, "epc.put", "epc ABCD", "", `{"productId":7}`},
	{"tag again", "PUT", "/v1/epcs/abcd", `{"productId":8}`, "epc.put", "epc ABCD", `{"productId":7}`, `{"productId":8}`},
	{"tag off", "DELETE", "/v1/epcs/abcd", "", "epc.delete", "epc ABCD", `{"productId":8}`, ""},
	{"restock", "POST", "/v1/cabinets/7/restocks", `{"lines":[{"productId":7,"quantity":5}],"note":"早"}`,
		"restock.create", "cabinet 7 restock ", "", `"note":"早"`},
	{"token", "POST", "/v1/tokens", `{"name":"Ann","role":"viewer"}`, "token.create", "token ", "", `"name":"Ann"`},
}

// unaudited change nothing: they are refused, repeat what is so already, or only read.
var unaudited = []struct{ method, path, body string }{
	{"POST", "/v1/products", `{"productId":8,"sku":"B","name":"b","priceMinor":1}`},
	{"POST", "/v1/products", `{"productId":9,"sku":"A","name":"b","priceMinor":1}`},
	{"PATCH", "/v1/products/7", `{}`},
	{"PATCH", "/v1/products/7", `{"priceMinor":501}`},
	{"PATCH", "/v1/products/7", `{"sku":"A"}`},
	{"PATCH", "/v1/products/99", `{"priceMinor":1}`},
	{"POST", "/v1/cabinets", `{"deviceId":8,"name":"c"}`},
	{"PATCH", "/v1/cabinets/8", `{"name":""}`},
	{"PATCH", "/v1/cabinets/8", `{"site":"d"}`},
	{"POST", "/v1/cabinets/99/credentials", ""},
	{"PUT", "/v1/cabinets/7/planogram", `{"lanes":[{"lane":1,"productId":7,"capacity":5,"parLevel":2}]}`},
	{"PUT", "/v1/cabinets/7/planogram", `{"lanes":[{"lane":1,"productId":99,"capacity":5,"parLevel":2}]}`},
	{"PUT", "/v1/epcs/abcd", `{"productId":99}`},
	{"DELETE", "/v1/epcs/abcd", ""},
	{"POST", "/v1/cabinets/7/restocks", `{"lines":[{"productId":7,"quantity":5}],"note":"早"}`}, // a repeat of the key
	{"POST", "/v1/cabinets/99/restocks", `{"lines":[{"productId":7,"quantity":5}]}`},
	{"POST", "/v1/tokens", `{"name":"Ann","role":"king"}`},
	{"DELETE", "/v1/tokens/0198f0c2-6a52-7e0b-9c53-0b8f2f6d9a11", ""},
	{"DELETE", "/v1/dead-letters/7", ""},
	{"POST", "/v1/dead-letters/7/retry", ""},
	{"GET", "/v1/products", ""},
}

func TestEachChangeLeavesOneLineOfTheAuditLog(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	actor := "token:" + h.tokenID("test admin")
	seen := map[int64]bool{}
	h.auditLog(seen)
	one := func(name string, want auditLine) auditLine {
		t.Helper()
		lines := h.auditLog(seen)
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines %v, want one", name, len(lines), lines)
		}
		got := lines[0]
		if got.Actor != actor || got.Action != want.Action || !strings.HasPrefix(got.Target, want.Target) ||
			!strings.Contains(got.Before, want.Before) || (want.Before == "") != (got.Before == "") ||
			!strings.Contains(got.After, want.After) || (want.After == "") != (got.After == "") {
			t.Errorf("%s: %+v, want %+v by %s", name, got, want, actor)
		}
		return got
	}
	var shown []string
	for _, c := range audited {
		raised := databasetest.Raised(t, h.db)
		r := h.send(Admin, c.method, c.path, c.body, header{keyHeader: "k"})
		if r.status >= 300 {
			t.Fatalf("%s: %d %s", c.name, r.status, r.body)
		}
		one(c.name, auditLine{0, "", c.action, c.target, c.before, c.after})
		raised(c.name)
		for _, secret := range []string{"secret", "token"} {
			if r.status == 201 && strings.Contains(string(r.body), `"`+secret+`":`) {
				shown = append(shown, r.json(t)[secret].(string))
			}
		}
	}
	for _, c := range unaudited {
		raised := databasetest.Raised(t, h.db)
		r := h.send(Admin, c.method, c.path, c.body, header{keyHeader: "k"})
		if lines := h.auditLog(seen); len(lines) != 0 {
			t.Errorf("%s %s %s: %d, and lines %v", c.method, c.path, c.body, r.status, lines)
		}
		if raised(c.path) {
			t.Errorf("%s %s %s raised the catalogue's mark", c.method, c.path, c.body)
		}
	}
	token := h.tokenID("Ann")
	h.expect(204, h.send(Admin, "DELETE", "/v1/tokens/"+token, ""))
	one("delete a token", auditLine{0, "", "token.delete", "token " + token, `"name":"Ann"`, ""})
	for _, line := range h.auditLog(map[int64]bool{}) {
		for _, secret := range shown {
			if strings.Contains(line.Before+line.After, secret) {
				t.Errorf("%s tells a secret: %s", line.Action, line.After)
			}
		}
	}
	if len(shown) != 2 {
		t.Errorf("%d secrets were shown", len(shown))
	}
}

func (h *harness) tokenID(name string) string {
	h.t.Helper()
	var id string
	if err := h.db.Read(h.t.Context()).Raw("SELECT token_id FROM api_tokens WHERE name = ?", name).Scan(&id).Error; err != nil {
		h.t.Fatal(err)
	}
	return id
}

func TestDeadLettersGoIntoTheAuditLog(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.exec("UPDATE cabinets SET device_id = 9 WHERE device_id = 7")
	h.settle(event("early", `,"userId":42,"items":[{"productId":7,"quantity":1}]`), time.Now())
	h.settle("door closed!", time.Now())
	h.exec("UPDATE cabinets SET device_id = 7 WHERE device_id = 9")
	letters, _ := h.walk("/v1/dead-letters?")
	seen := map[int64]bool{}
	h.auditLog(seen)
	for _, l := range letters {
		id := l["id"].(string)
		if l["reason"] == "unknown_cabinet" {
			h.expect(200, h.send(Operator, "POST", "/v1/dead-letters/"+id+"/retry", ""))
		} else {
			h.expect(409, h.send(Operator, "POST", "/v1/dead-letters/"+id+"/retry", ""))
			h.expect(204, h.send(Operator, "DELETE", "/v1/dead-letters/"+id, ""))
		}
	}
	lines := map[string]auditLine{}
	written := h.auditLog(seen)
	for _, line := range written {
		lines[line.Action] = line
	}
	retried, discarded := lines["dead_letter.retry"], lines["dead_letter.discard"]
	if len(written) != 2 || !strings.Contains(retried.Before, "unknown_cabinet") || !strings.Contains(retried.After, `"outcome":"settled"`) ||
		!strings.Contains(discarded.Before, "malformed") || discarded.After != "" || retried.Actor != "token:"+h.tokenID("test operator") {
		t.Errorf("lines %+v", written)
	}
}

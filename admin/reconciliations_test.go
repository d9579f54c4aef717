package admin

import (
	"fmt"
	"testing"

	"doortab/reconcile"
)

func TestReconciliationsAreAskedForAndRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec(`INSERT INTO promotions (promotion_id, name, product_id, price_minor, quota, per_user, needs_claim, site, starts_at, ends_at, claim_ttl_s,
		way, state, created_at, updated_at)
		VALUES (5, 'Cola', 7, 100, 10, 1, TRUE, '', NOW(), NOW() + INTERVAL 1 DAY, 900, 'database', 'live', NOW(), NOW())`)
	h.exec("INSERT INTO promotion_quota (promotion_id, quota, taken) VALUES (5, 10, 3)")

	ask := func(key, body string) reply {
		return h.send(Operator, "POST", "/v1/reconciliations", body, header{keyHeader: key})
	}
	first := h.expect(202, ask("one", `{"repair":true}`)).json(t)
	if again := h.expect(202, ask("one", `{"repair":true}`)).json(t); again["reconciliationId"] != first["reconciliationId"] {
		t.Errorf("the same key asks for another run: %v, %v", first, again)
	}
	h.expect(422, ask("one", `{"repair":false}`))
	h.expect(422, ask("two", `{"repair":"yes"}`))
	path := fmt.Sprint("/v1/reconciliations/", first["reconciliationId"])
	if r := h.expect(200, h.send(Viewer, "GET", path, "")).json(t); r["state"] != "waiting" || r["repair"] != true || r["startedAt"] != nil {
		t.Errorf("before a process takes it: %v", r)
	}

	if err := reconcile.New(reconcile.Config{DB: h.db}).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := h.expect(200, h.send(Viewer, "GET", path, "")).json(t)
	if r["state"] != "done" || r["differences"] != 1.0 || r["repaired"] != 1.0 || r["endedAt"] == nil {
		t.Errorf("after it has run: %v", r)
	}
	want := `[map[cause:quota_drift counted:3 due:0 promotionId:5 repaired:true target:promotion_quota promotion=5]]`
	if got := fmt.Sprint(r["items"]); got != want {
		t.Errorf("items %s, not %s", got, want)
	}
	if got := fmt.Sprint(r["causes"]); got != "[map[cause:quota_drift found:1 repaired:1]]" {
		t.Errorf("causes %s", got)
	}
	if got := h.logged("reconcile.repair"); len(got) != 1 {
		t.Errorf("audit log: %q", got)
	}
	if list, _ := h.walk("/v1/reconciliations?"); len(list) != 1 || list[0]["origin"] != "request" {
		t.Errorf("list: %v", list)
	}
	h.expect(404, h.send(Viewer, "GET", "/v1/reconciliations/17", ""))
	h.expect(404, h.send(Viewer, "GET", "/v1/reconciliations/x", ""))
}

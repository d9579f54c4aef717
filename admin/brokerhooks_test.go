package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"doortab/fleet"
)

const hookSecret = "the broker's shared secret"

func (h *harness) ask(path, secret, body string) reply {
	return h.send("", "POST", path, body, header{"Authorization": "Bearer " + secret})
}

func (h *harness) verdict(path, body string) string {
	h.t.Helper()
	answer := h.expect(http.StatusOK, h.ask(path, hookSecret, body)).json(h.t)
	if answer["is_superuser"] != false || len(answer) != 2 {
		h.t.Errorf("%s %s: answer %v", path, body, answer)
	}
	return fmt.Sprint(answer["result"])
}

func TestABrokerAsksWhoMayConnect(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.cabinet(1001)
	h.cabinet(1002)
	secret, err := fleet.NewRegistry(h.db).RotateSecret(t.Context(), 1001)
	if err != nil {
		t.Fatal(err)
	}
	body := func(username, password, clientID string) string {
		return fmt.Sprintf(`{"username":%q,"password":%q,"clientid":%q,"peerhost":"10.0.0.1"}`, username, password, clientID)
	}
	for name, c := range map[string]struct{ body, want string }{
		"a cabinet":                    {body("1001", secret, "1001"), "allow"},
		"wrong secret":                 {body("1001", "x"+secret, "1001"), "deny"},
		"no secret":                    {body("1001", "", "1001"), "deny"},
		"another's secret":             {body("1002", secret, "1002"), "deny"},
		"another's client id":          {body("1001", secret, "1002"), "deny"},
		"a worker's client id":         {body("1001", secret, "doortab-host-8080"), "deny"},
		"a longer client id":           {body("1001", secret, "1001-b"), "deny"},
		"no client id":                 {body("1001", secret, ""), "deny"},
		"anonymous":                    {body("", "", "1001"), "deny"},
		"nobody":                       {`{"clientid":"1001"}`, "deny"},
		"null":                         {`{"username":null,"password":null,"clientid":null}`, "deny"},
		"a second spelling":            {body("01001", secret, "01001"), "deny"},
		"a worker":                     {body("workers", "workers' password", "doortab-host-8080"), "allow"},
		"a worker that ends a cabinet": {body("workers", "workers' password", "1001"), "allow"},
		"a worker's wrong password":    {body("workers", secret, "doortab-host-8080"), "deny"},
		"a cabinet as a worker":        {body("workers", "", "1001"), "deny"},
		"a form":                       {"username=1001&clientid=1001", "deny"},
		"nothing":                      {" ", "deny"},
		"another type":                 {`{"username":1001,"password":"x","clientid":"1001"}`, "deny"},
		"too much":                     {body("1001", strings.Repeat("x", maxHookBody), "1001"), "deny"},
	} {
		if got := h.verdict("/mqtt/auth", c.body); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestABrokerAsksAboutTopics(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, c := range map[string]struct{ username, clientID, action, topic, want string }{
		"own event":               {"1001", "1001", "publish", "v1/cabinets/1001/door-closed", "allow"},
		"own receipts":            {"1001", "1001", "subscribe", "v1/cabinets/1001/receipts", "allow"},
		"another's event":         {"1001", "1001", "publish", "v1/cabinets/1002/door-closed", "deny"},
		"another's receipts":      {"1001", "1001", "subscribe", "v1/cabinets/1002/receipts", "deny"},
		"a forged receipt":        {"1001", "1001", "publish", "v1/cabinets/1001/receipts", "deny"},
		"all receipts":            {"1001", "1001", "subscribe", "v1/cabinets/+/receipts", "deny"},
		"the workers' events":     {"1001", "1001", "subscribe", "$share/doortab/v1/cabinets/+/door-closed", "deny"},
		"as EMQX shows them":      {"1001", "1001", "subscribe", "v1/cabinets/+/door-closed", "deny"},
		"under another client id": {"1001", "1002", "publish", "v1/cabinets/1001/door-closed", "deny"},
		"a worker's events":       {"workers", "w", "subscribe", "$share/doortab/v1/cabinets/+/door-closed", "allow"},
		"a worker's, unshared":    {"workers", "w", "subscribe", "v1/cabinets/+/door-closed", "allow"},
		"a worker's statuses":     {"workers", "w", "subscribe", "v1/cabinets/+/status", "allow"},
		"everything":              {"workers", "w", "subscribe", "#", "deny"},
		"a receipt":               {"workers", "w", "publish", "v1/cabinets/1001/receipts", "allow"},
		"an unlock":               {"workers", "w", "publish", "v1/cabinets/1001/unlock", "allow"},
		"a worker's event":        {"workers", "w", "publish", "v1/cabinets/1001/door-closed", "deny"},
		"a receipt for all":       {"workers", "w", "publish", "v1/cabinets/+/receipts", "deny"},
		"another action":          {"1001", "1001", "all", "v1/cabinets/1001/door-closed", "deny"},
		"somebody else":           {"monitor", "m", "subscribe", "v1/cabinets/1001/receipts", "deny"},
		"nobody":                  {"", "", "publish", "v1/cabinets/1001/door-closed", "deny"},
	} {
		body := fmt.Sprintf(`{"username":%q,"clientid":%q,"topic":%q,"action":%q,"qos":1,"retain":false}`, c.username, c.clientID, c.topic, c.action)
		if got := h.verdict("/mqtt/acl", body); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestOnlyTheBrokerMayAsk(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	without := New(Config{DB: h.db, Settlement: h.server.settlement, Currency: "CNY"})
	for _, path := range []string{"/mqtt/auth", "/mqtt/acl"} {
		for _, secret := range []string{"", "x", hookSecret + "x", h.tokens[Admin]} {
			h.problem(h.expect(http.StatusUnauthorized, h.ask(path, secret, "{}")), "unauthorized")
		}
		h.expect(http.StatusOK, h.ask(path, hookSecret, "{}"))
		silent := &harness{t: t, server: without}
		for _, secret := range []string{"", hookSecret} {
			silent.problem(silent.expect(http.StatusNotFound, silent.ask(path, secret, "{}")), "not-found")
		}
	}
}

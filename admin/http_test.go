package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/settlement"
)

func TestEveryErrorIsAProblem(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.server.echo.GET("/panic", func(echo.Context) error { panic("secret text") })
	h.server.echo.GET("/broken", func(echo.Context) error { return errors.New("secret text") })
	for name, c := range map[string]struct {
		r      reply
		status int
		kind   string
	}{
		"no such path":        {h.send(Viewer, "GET", "/nothing", ""), 404, "not-found"},
		"no such method":      {h.send(Viewer, "DELETE", "/v1/products", ""), 405, "method-not-allowed"},
		"HEAD":                {h.send(Viewer, "PUT", "/healthz", ""), 405, "method-not-allowed"},
		"form":                {h.send(Operator, "POST", "/v1/products", "sku=a", header{"Content-Type": "application/x-www-form-urlencoded"}), 415, "unsupported-media-type"},
		"text":                {h.send(Operator, "POST", "/v1/products", "{}", header{"Content-Type": "text/plain"}), 415, "unsupported-media-type"},
		"no scheme":           {h.send("", "GET", "/v1/products", "", header{"Authorization": h.tokens[Viewer]}), 401, "unauthorized"},
		"basic":               {h.send("", "GET", "/v1/products", "", header{"Authorization": "Basic " + h.tokens[Viewer]}), 401, "unauthorized"},
		"wrong token":         {h.send("", "GET", "/v1/products", "", header{"Authorization": "Bearer x" + h.tokens[Viewer]}), 401, "unauthorized"},
		"long token":          {h.send("", "GET", "/v1/products", "", header{"Authorization": "Bearer " + strings.Repeat("x", 9999)}), 401, "unauthorized"},
		"401 comes first":     {h.send("", "POST", "/v1/products", "{"), 401, "unauthorized"},
		"403 comes next":      {h.send(Viewer, "POST", "/v1/products", "{"), 403, "forbidden"},
		"metrics, no token":   {h.send("", "GET", "/metrics", ""), 401, "unauthorized"},
		"metrics of an app":   {h.send(App, "GET", "/metrics", ""), 403, "forbidden"},
		"a panic":             {h.send("", "GET", "/panic", ""), 500, "internal"},
		"an unexpected error": {h.send("", "GET", "/broken", ""), 500, "internal"},
	} {
		if c.r.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, c.r.status, c.status, c.r.body)
		}
		h.problem(c.r, c.kind)
		if strings.Contains(string(c.r.body), "secret") || strings.Contains(string(c.r.body), h.tokens[Viewer]) {
			t.Errorf("%s shows too much: %s", name, c.r.body)
		}
		if c.r.header.Get(requestIDHeader) == "" {
			t.Errorf("%s has no %s", name, requestIDHeader)
		}
	}
	if allow := h.send(Viewer, "DELETE", "/v1/products", "").header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
		t.Errorf("Allow is %q", allow)
	}
	bearer := h.send("", "GET", "/v1/products", "", header{"Authorization": "bearer " + h.tokens[Viewer]})
	h.expect(200, bearer)
	// A value that was refused isn't sent back.
	r := h.expect(422, h.send(Operator, "POST", "/v1/products", `{"sku":"a","name":7,"priceMinor":-5,"colour":"red"}`)).json(t)
	list, _ := r["errors"].([]any)
	if len(list) != 3 {
		t.Errorf("errors %v", list)
	}
	for _, detail := range list {
		d := detail.(map[string]any)
		if d["value"] != nil || !strings.HasPrefix(d["location"].(string), "body.") {
			t.Errorf("detail %v", d)
		}
	}
}

func TestARequestKeepsItsID(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for given, kept := range map[string]bool{"abc-1.2:3_4": true, "": false, "a b": false, strings.Repeat("x", 65): false, "a\nb": false} {
		got := h.send("", "GET", "/healthz", "", header{requestIDHeader: given}).header.Get(requestIDHeader)
		if (got == given) != kept || got == "" {
			t.Errorf("%s %q became %q", requestIDHeader, given, got)
		}
	}
}

func TestMetricsCountByRoute(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.send(Viewer, "GET", "/v1/products/7", "")
	h.send(Viewer, "GET", "/v1/products/8", "")
	h.send(Viewer, "GET", "/v1/anything", "")
	h.send(Viewer, "BREW", "/v1/products", "")
	text := string(h.expect(200, h.send(Viewer, "GET", "/metrics", "")).body)
	for _, line := range []string{
		`doortab_http_requests_total{method="GET",route="/v1/products/:productId",status="404"} 2`,
		`doortab_http_requests_total{method="other",route="other",status="404"} 1`,
		`doortab_http_requests_total{method="other",route="other",status="405"} 1`,
		`doortab_http_request_duration_seconds_count{method="GET",route="/v1/products/:productId"} 2`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	if strings.Contains(text, "BREW") || strings.Contains(text, "anything") {
		t.Error("metrics have labels that a stranger chose")
	}
}

func TestADatabaseThatIsDownIs503(t *testing.T) {
	t.Parallel()
	db, err := database.Open(database.Config{DSN: "x:y@unix(/nowhere/at/all)/z"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	quiet := slog.New(slog.DiscardHandler)
	h := &harness{t: t, db: db, tokens: map[Role]string{Viewer: "x"}, server: New(Config{
		DB: db, Currency: "CNY", Logger: quiet, Settlement: settlement.New(settlement.Config{DB: db, Logger: quiet, Metrics: prometheus.NewRegistry()}),
	})}
	h.expect(200, h.send("", "GET", "/healthz", ""))
	for _, path := range []string{"/readyz", "/v1/products"} {
		r := h.expect(503, h.send(Viewer, "GET", path, ""))
		h.problem(r, "unavailable")
		if r.header.Get("Retry-After") == "" || strings.Contains(string(r.body), "nowhere") {
			t.Errorf("%s: Retry-After %q, %s", path, r.header.Get("Retry-After"), r.body)
		}
	}
}

func TestReadyFollowsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.expect(200, h.send("", "GET", "/readyz", ""))
	h.server.ready = func(context.Context) error { return errors.New("broker is away") }
	h.problem(h.expect(503, h.send("", "GET", "/readyz", "")), "unavailable")
}

func TestServeAnswersWhatIsRunningBeforeItReturns(t *testing.T) {
	t.Parallel()
	server := New(Config{DB: databasetest.New(t), Currency: "CNY", Logger: slog.New(slog.DiscardHandler)})
	arrived, release := make(chan struct{}), make(chan struct{})
	server.echo.GET("/slow", func(c echo.Context) error {
		close(arrived)
		<-release
		return c.NoContent(http.StatusNoContent)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, got := make(chan error, 1), make(chan int, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	client := &http.Client{Timeout: 10 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	go func() {
		answer, err := client.Get("http://" + listener.Addr().String() + "/slow")
		if err != nil {
			got <- 0
			return
		}
		_ = answer.Body.Close()
		got <- answer.StatusCode
	}()
	<-arrived
	cancel()
	select {
	case err := <-served:
		t.Fatalf("Serve returned before the answer: %v", err)
	default:
	}
	close(release)
	if status := <-got; status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := client.Get("http://" + listener.Addr().String() + "/healthz"); err == nil {
		t.Error("still listening after Serve returned")
	}
}

func TestADeletedTokenStops(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	r := h.expect(http.StatusCreated, h.send(Admin, "POST", "/v1/tokens", `{"name":"Büro","role":"operator"}`))
	made := r.json(t)
	if r.header.Get("Cache-Control") != "no-store" || made["role"] != "operator" || made["name"] != "Büro" || len(made["token"].(string)) != 43 {
		t.Errorf("made %v", made)
	}
	h.tokens["mine"] = made["token"].(string)
	h.expect(200, h.send("mine", "GET", "/v1/dead-letters", ""))
	listed := h.expect(200, h.send(Admin, "GET", "/v1/tokens?limit=1", "")).json(t)["items"].([]any)[0].(map[string]any)
	if listed["id"] != made["id"] || listed["token"] != nil {
		t.Errorf("listed %v", listed)
	}
	var stored []byte
	if err := h.db.Read(t.Context()).Raw("SELECT CAST(CONCAT_WS(',', name, role, HEX(token_hash)) AS CHAR) FROM api_tokens WHERE token_id = ?", made["id"]).
		Row().Scan(&stored); err != nil || strings.Contains(string(stored), h.tokens["mine"]) {
		t.Errorf("stored %s, %v", stored, err)
	}
	// Deleted behind this process's back, it works for the length of the cache at most.
	h.exec("DELETE FROM api_tokens WHERE token_id = ?", made["id"])
	begun := time.Now()
	h.waitFor("the token is refused", func() bool { return h.send("mine", "GET", "/v1/dead-letters", "").status == 401 })
	if took := time.Since(begun); took > tokenFor+2*time.Second {
		t.Errorf("it took %s", took)
	}
	made = h.expect(http.StatusCreated, h.send(Admin, "POST", "/v1/tokens", `{"name":"b","role":"viewer"}`)).json(t)
	h.tokens["mine"] = made["token"].(string)
	h.expect(200, h.send("mine", "GET", "/v1/products", ""))
	h.expect(204, h.send(Admin, "DELETE", "/v1/tokens/"+made["id"].(string), ""))
	h.expect(401, h.send("mine", "GET", "/v1/products", ""))
	for _, body := range []string{`{"name":"a","role":"owner"}`, `{"name":"","role":"viewer"}`, `{"name":"a"}`, `{"name":"a","role":"viewer","token":"x"}`} {
		h.expect(422, h.send(Admin, "POST", "/v1/tokens", body))
	}
}

func TestCabinets(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	made := h.expect(http.StatusCreated, h.send(Operator, "POST", "/v1/cabinets", `{"deviceId":1001,"name":"Lobby","site":"HQ"}`)).json(t)
	if made["deviceId"] != 1001.0 || made["site"] != "HQ" || made["online"] != false || made["lastSeenAt"] != nil {
		t.Errorf("made %v", made)
	}
	h.problem(h.expect(409, h.send(Operator, "POST", "/v1/cabinets", `{"deviceId":1001,"name":"Lobby"}`)), "duplicate")
	patched := h.expect(200, h.send(Operator, "PATCH", "/v1/cabinets/1001", `{"site":""}`)).json(t)
	if patched["name"] != "Lobby" || patched["site"] != "" {
		t.Errorf("patched %v", patched)
	}
	for _, body := range []string{`{"deviceId":0,"name":"a"}`, `{"deviceId":9007199254740992,"name":"a"}`, `{"deviceId":1,"name":""}`, `{"name":"a"}`, `{"deviceId":"1","name":"a"}`, `{"deviceId":1,"name":"a","online":true}`} {
		h.expect(422, h.send(Operator, "POST", "/v1/cabinets", body))
	}
	for _, body := range []string{`{"name":null}`, `{"name":""}`, `{"deviceId":2}`, `{"site":"` + strings.Repeat("a", 201) + `"}`} {
		h.expect(422, h.send(Operator, "PATCH", "/v1/cabinets/1001", body))
	}
	r := h.expect(http.StatusCreated, h.send(Admin, "POST", "/v1/cabinets/1001/credentials", ""))
	secret, _ := r.json(t)["secret"].(string)
	if r.json(t)["username"] != "1001" || len(secret) != 43 || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("credentials %s", r.body)
	}
	items, _ := h.walk("/v1/cabinets?")
	if len(items) != 1 || items[0]["secret"] != nil {
		t.Errorf("cabinets %v", items)
	}
}

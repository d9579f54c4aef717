package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
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
	form := header{"Content-Type": "application/x-www-form-urlencoded"}
	text := header{"Content-Type": "text/plain"}
	authorization := func(value string) reply { return h.send("", "GET", "/v1/products", "", header{"Authorization": value}) }
	for name, c := range map[string]struct {
		r      reply
		status int
		kind   string
	}{
		"no such path":        {h.send(Viewer, "GET", "/nothing", ""), 404, "not-found"},
		"no such method":      {h.send(Viewer, "DELETE", "/v1/products", ""), 405, "method-not-allowed"},
		"PUT":                 {h.send(Viewer, "PUT", "/healthz", ""), 405, "method-not-allowed"},
		"form":                {h.send(Operator, "POST", "/v1/products", "sku=a", form), 415, "unsupported-media-type"},
		"text":                {h.send(Operator, "POST", "/v1/products", "{}", text), 415, "unsupported-media-type"},
		"no scheme":           {authorization(h.tokens[Viewer]), 401, "unauthorized"},
		"basic":               {authorization("Basic " + h.tokens[Viewer]), 401, "unauthorized"},
		"wrong token":         {authorization("Bearer x" + h.tokens[Viewer]), 401, "unauthorized"},
		"long token":          {authorization("Bearer " + strings.Repeat("x", 9999)), 401, "unauthorized"},
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
	allow := h.send(Viewer, "DELETE", "/v1/products", "").header.Get("Allow")
	if !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
		t.Errorf("Allow is %q", allow)
	}
	h.expect(200, authorization("bearer "+h.tokens[Viewer]))
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

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	web := httptest.NewServer(h.server.Handler())
	t.Cleanup(web.Close)
	ask := func(method, path string) reply {
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.tokens[Viewer])
		answer, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return reply{answer.StatusCode, answer.Header, body}
	}
	for _, path := range []string{"/healthz", "/metrics", "/openapi.json", "/docs", "/v1/products/7", "/v1/products/99", "/mqtt/auth"} {
		head, get := ask("HEAD", path), ask("GET", path)
		if len(head.body) > 0 || head.status != get.status || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d %v with %d bytes, GET %d %v", path, head.status, head.header, len(head.body), get.status, get.header)
		}
	}
	if allow := ask("DELETE", "/v1/products").header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "HEAD") {
		t.Errorf("Allow: %s", allow)
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
	registry := prometheus.NewRegistry()
	h := &harness{t: t, db: db, tokens: map[Role]string{Viewer: "x"}, server: New(Config{
		DB: db, Currency: "CNY", Logger: quiet, Metrics: registry,
		Settlement: settlement.New(settlement.Config{DB: db, Logger: quiet, Metrics: registry}),
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
	r := h.expect(503, h.send("", "GET", "/readyz", ""))
	h.problem(r, "unavailable")
	if text := string(r.body); !strings.Contains(text, "database or broker") || strings.Contains(text, "away") {
		t.Errorf("readyz says %s", text)
	}
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
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("still listening after Serve returned")
	}
}

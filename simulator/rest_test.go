package simulator

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve answers the calls of one test with one status after the other; the last one stays.
func serve(t *testing.T, header http.Header, statuses ...int) (c *client, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(calls.Add(1))
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(statuses[min(n, len(statuses))-1])
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	c = newClient(server.URL, "token", nil)
	t.Cleanup(c.http.CloseIdleConnections)
	return c, calls
}

func TestCallsAreRepeatedUntilTheyAreAnswered(t *testing.T) {
	t.Parallel()
	replayed := http.Header{"Idempotency-Replayed": {"true"}}
	tests := map[string]struct {
		header   http.Header
		key      string
		statuses []int
		calls    int64
		refused  int // 0 for an answer
	}{
		"answered at once":           {nil, "", []int{201}, 1, 0},
		"busy, then answered":        {nil, "", []int{503, 429, 500, 201}, 4, 0},
		"refused":                    {nil, "", []int{422}, 1, 422},
		"exists":                     {nil, "", []int{409}, 1, 409},
		"first try is still running": {nil, "key", []int{409, 201}, 2, 0},
		"the kept answer is 409":     {replayed, "key", []int{409}, 1, 409},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, calls := serve(t, tt.header, tt.statuses...)
			err := c.do(t.Context(), call{method: http.MethodPost, path: "/x", key: tt.key, body: map[string]int{"a": 1}})
			if calls.Load() != tt.calls || (err == nil) != (tt.refused == 0) || tt.refused != 0 && !refusedWith(err, tt.refused) {
				t.Errorf("%d calls and %v, want %d and %d", calls.Load(), err, tt.calls, tt.refused)
			}
		})
	}
}

func TestCallsOutliveARestart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c := newClient("http://"+address, "token", nil)
	t.Cleanup(c.http.CloseIdleConnections)
	done := make(chan error, 1)
	go func() { done <- c.do(t.Context(), call{method: http.MethodGet, path: "/"}) }()
	started := make(chan *http.Server, 1)
	time.AfterFunc(200*time.Millisecond, func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
		}
		s := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
		started <- s
		_ = s.Serve(l)
	})
	if err := <-done; !refusedWith(err, http.StatusNotFound) {
		t.Errorf("got %v, want the answer of the server that came up later", err)
	}
	_ = (<-started).Close()
}

func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, nil, 503)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.do(ctx, call{method: http.MethodGet, path: "/x"})
	if err == nil || !strings.Contains(err.Error(), "GET /x: no answer") {
		t.Errorf("got %v, want what was called and that it had no answer", err)
	}
}

func TestWalkFollowsTheCursor(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"": `{"items":[1,2],"nextCursor":"b"}`, "b": `{"items":[3],"nextCursor":null}`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("limit") != "200" || q.Get("from") != "x" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = w.Write([]byte(pages[q.Get("cursor")]))
	}))
	t.Cleanup(server.Close)
	c := newClient(server.URL+"/", "token", nil)
	t.Cleanup(c.http.CloseIdleConnections)
	query, sum := url.Values{"from": {"x"}}, 0
	err := walk(t.Context(), c, "/list", query, func(page []int) bool {
		for _, n := range page {
			sum += n
		}
		return true
	})
	if err != nil || sum != 6 || len(query) != 1 {
		t.Errorf("sum %d, query %v, %v; want 6 and the query untouched", sum, query, err)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	right := Config{BaseURL: "http://127.0.0.1:1", BrokerURL: "tcp://127.0.0.1", Token: "t"}
	tests := map[string]struct {
		change func(*Config)
		says   string
	}{
		"nothing":      {func(*Config) {}, ""},
		"no token":     {func(c *Config) { c.Token = "" }, "doortab token create"},
		"no API":       {func(c *Config) { c.BaseURL = "127.0.0.1:80" }, "http://127.0.0.1:8080"},
		"no broker":    {func(c *Config) { c.BrokerURL = "" }, "tcp://127.0.0.1:1883"},
		"wrong scheme": {func(c *Config) { c.BrokerURL = "ws://127.0.0.1" }, `begins with "ws"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := right
			tt.change(&config)
			_, err := New(config)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q in it", err, tt.says)
			}
		})
	}
	for raw, want := range map[string]endpoint{
		"tcp://h":        {"h:1883", "h", false, nil},
		"mqtt://h:99":    {"h:99", "h", false, nil},
		"mqtts://h":      {"h:8883", "h", true, nil},
		"tls://[::1]:77": {"[::1]:77", "::1", true, nil},
	} {
		if got, err := parseBroker(raw); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

package simulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Doortab may be restarted in the middle of a run: a call outlives that.
const (
	callTimeout  = 10 * time.Second
	callPatience = time.Minute
	firstRetry   = 50 * time.Millisecond
	lastRetry    = 2 * time.Second
	maxAnswer    = 64 << 20
)

// client calls the REST API.
type client struct {
	base, token string
	http        *http.Client
	seconds     atomic.Int64 // of the newest Date header
}

// newClient trusts the authorities given; nil means the system's.
func newClient(base, token string, roots *x509.CertPool) *client {
	transport := &http.Transport{
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	return &client{
		base: strings.TrimSuffix(base, "/"), token: token,
		http: &http.Client{Timeout: callTimeout, Transport: transport},
	}
}

// refusal is an answer outside 2xx.
type refusal struct {
	call   string
	status int
	detail string
	passes bool // another try may be answered otherwise
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: answered %d: %s", r.call, r.status, r.detail)
}

func refusedWith(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

// call is one request. A POST without a key must bear to be made twice.
type call struct {
	method, path string
	key          string // Idempotency-Key
	body         any    // nil for none
	into         any    // filled from the answer; nil to ignore it
}

func (c call) String() string { return c.method + " " + c.path }

// do makes the call until Doortab answers it, ctx ends, or it has been unreachable for callPatience.
func (c *client) do(ctx context.Context, req call) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		again, err := c.once(ctx, req)
		if !again {
			return err
		}
		if !pause(ctx, jitter(wait)) {
			return fmt.Errorf("%s: no answer: %w", req, err)
		}
	}
}

// once reports whether the call should be made again.
func (c *client) once(ctx context.Context, req call) (again bool, err error) {
	out, err := c.request(ctx, req)
	if err != nil {
		return false, err
	}
	answer, err := c.http.Do(out)
	if err != nil {
		return true, err
	}
	defer func() { _ = answer.Body.Close() }()
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.seconds.Store(date.Unix())
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return true, err
	}
	if answer.StatusCode/100 != 2 {
		refused := &refusal{
			call: req.String(), status: answer.StatusCode, passes: passing(answer, req),
			detail: strings.TrimSpace(string(body[:min(len(body), 300)])),
		}
		return refused.passes, refused
	}
	if req.into == nil {
		return false, nil
	}
	if err := json.Unmarshal(body, req.into); err != nil {
		return false, fmt.Errorf("%s: read the answer: %w", req, err)
	}
	return false, nil
}

// clock is the time at which Doortab last answered, by its own clock, which the filters of its lists go by.
func (c *client) clock() time.Time {
	if seconds := c.seconds.Load(); seconds > 0 {
		return time.Unix(seconds, 0)
	}
	return time.Now()
}

// passing says whether the refusal may be gone at the next try. With a key, 409 means that the first try is still running,
// unless it is the kept answer of that try.
func passing(answer *http.Response, req call) bool {
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusInternalServerError:
		return true
	case http.StatusConflict:
		return req.key != "" && answer.Header.Get("Idempotency-Replayed") == ""
	default:
		return false
	}
}

func (c *client) request(ctx context.Context, req call) (*http.Request, error) {
	var body io.Reader
	if req.body != nil {
		text, err := json.Marshal(req.body)
		if err != nil {
			return nil, fmt.Errorf("%s: write the body: %w", req, err)
		}
		body = bytes.NewReader(text)
	}
	out, err := http.NewRequestWithContext(ctx, req.method, c.base+req.path, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req, err)
	}
	out.Header.Set("Authorization", "Bearer "+c.token)
	if req.body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	if req.key != "" {
		out.Header.Set("Idempotency-Key", req.key)
	}
	return out, nil
}

// walk reads a list to its end, or until each returns false for a page.
func walk[T any](ctx context.Context, c *client, path string, query url.Values, each func(page []T) bool) error {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", strconv.Itoa(200))
	for {
		var page struct {
			Items      []T     `json:"items"`
			NextCursor *string `json:"nextCursor"`
		}
		if err := c.do(ctx, call{method: http.MethodGet, path: path + "?" + query.Encode(), into: &page}); err != nil {
			return err
		}
		if !each(page.Items) || page.NextCursor == nil || *page.NextCursor == "" {
			return nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// pause reports whether the time passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// jitter spreads a wait over half to one and a half of it.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)+1)) //nolint:gosec // spreads load
}

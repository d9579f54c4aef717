package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/claims"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/fleet"
	"doortab/settlement"
)

// harness is a server on a schema of its own, with a token of each role.
type harness struct {
	t      testing.TB
	db     *database.DB
	dsn    string
	server *Server
	tokens map[Role]string
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	db, dsn := databasetest.NewWithDSN(t)
	registry := prometheus.NewRegistry()
	quiet := slog.New(slog.DiscardHandler)
	service := claims.New(claims.Config{DB: db, Logger: quiet})
	t.Cleanup(service.Close)
	h := &harness{t: t, db: db, dsn: dsn, tokens: map[Role]string{}, server: New(Config{
		DB: db, Metrics: registry, Currency: "CNY", Logger: quiet,
		Hooks: BrokerHooks{
			Secret: hookSecret, Username: "workers", Password: "workers' password", Authenticate: fleet.NewAuthenticator(db, quiet).Authenticate,
		},
		Settlement: settlement.New(settlement.Config{DB: db, Currency: "CNY", Logger: quiet, Metrics: registry}),
		Claims:     service,
	})}
	for _, role := range []Role{Viewer, Restocker, Operator, Admin, App} {
		token, err := CreateToken(t.Context(), db, "test "+string(role), role)
		if err != nil {
			t.Fatal(err)
		}
		h.tokens[role] = token.Secret
	}
	return h
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("answer %d is not a JSON object: %v: %s", r.status, err, r.body)
	}
	return v
}

type header map[string]string

func (h *harness) send(role Role, method, path, body string, headers ...header) reply {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request := httptest.NewRequest(method, path, reader)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if role != "" {
		request.Header.Set("Authorization", "Bearer "+h.tokens[role])
	}
	for _, more := range headers {
		for name, value := range more {
			request.Header.Set(name, value)
		}
	}
	recorder := httptest.NewRecorder()
	h.server.Handler().ServeHTTP(recorder, request)
	return reply{recorder.Code, recorder.Header(), bytes.Clone(recorder.Body.Bytes())}
}

func (h *harness) expect(status int, r reply) reply {
	h.t.Helper()
	if r.status != status {
		h.t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	if status >= 400 {
		h.problem(r, "")
	}
	return r
}

// problem checks the shape of an error (RFC 9457), and its type where one is given.
func (h *harness) problem(r reply, kind string) {
	h.t.Helper()
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		h.t.Errorf("Content-Type of a %d is %q: %s", r.status, got, r.body)
	}
	v := r.json(h.t)
	if v["status"] != float64(r.status) || v["title"] == "" {
		h.t.Errorf("problem has status %v and title %v, answer is %d", v["status"], v["title"], r.status)
	}
	got, _ := v["type"].(string)
	if !strings.HasPrefix(got, typePrefix) || kind != "" && got != typePrefix+kind {
		h.t.Errorf("problem has type %q, want %q", got, typePrefix+kind)
	}
}

func (h *harness) product(body string) map[string]any {
	h.t.Helper()
	return h.expect(http.StatusCreated, h.send(Operator, "POST", "/v1/products", body)).json(h.t)
}

func (h *harness) cabinet(deviceID int64) {
	h.t.Helper()
	if _, err := fleet.NewRegistry(h.db).Register(h.t.Context(), fleet.Cabinet{DeviceID: deviceID, Name: "Lobby"}); err != nil {
		h.t.Fatal(err)
	}
}

var errRollback = errors.New("roll back")

func errJoin(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (h *harness) exec(statement string, args ...any) {
	h.t.Helper()
	if err := h.db.Read(h.t.Context()).Exec(statement, args...).Error; err != nil {
		h.t.Fatal(err)
	}
}

// waitFor polls a condition that only the database can tell.
func (h *harness) waitFor(what string, holds func() bool) {
	h.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			h.t.Fatalf("still not so after 20 s: %s", what)
		}
	}
}

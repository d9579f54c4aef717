package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"doortab/services"
	"doortab/services/servicestest"
	"doortab/tasks"
)

// delayed gives the server tasks that run.
func (h *harness) delayed(redisURL string, handler tasks.Handler) (*tasks.Queue, *prometheus.Registry) {
	h.t.Helper()
	registry := prometheus.NewRegistry()
	q, err := tasks.New(tasks.Config{
		RedisURL: redisURL, Installation: uuid.NewString(), DB: h.db, Pauses: []time.Duration{}, Logger: slog.New(slog.DiscardHandler),
		Handlers: map[tasks.Kind]tasks.Handler{tasks.DoorSession: handler, tasks.Claim: handler, tasks.Reservation: handler}, Metrics: registry,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := q.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			h.t.Error(err)
		}
	})
	h.server.tasks = q
	return q, registry
}

func TestFailedTasksAreListedRetriedAndDiscarded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var mended atomic.Bool
	q, _ := h.delayed(servicestest.Redis(t).URL(), func(context.Context, string) (time.Time, error) {
		if mended.Load() {
			return time.Time{}, nil
		}
		return time.Time{}, errors.New("the trigger says no")
	})
	for n := range 3 {
		q.Schedule(tasks.DoorSession, fmt.Sprint("session-", n), time.Now().Add(-time.Minute))
	}
	var items []map[string]any
	h.waitFor("three have failed", func() bool {
		items, _ = h.walk("/v1/failed-tasks?")
		return len(items) == 3
	})
	for _, f := range items {
		if f["kind"] != "door-session" || f["attempts"] != 1.0 || f["subject"] == "" || f["dueAt"] == "" {
			t.Errorf("%v", f)
		}
	}
	path := func(n int) string { return fmt.Sprint("/v1/failed-tasks/", items[n]["id"]) }
	h.problem(h.expect(409, h.send(Operator, "POST", path(0)+"/retry", "")), "still-fails")
	mended.Store(true)
	if r := h.expect(200, h.send(Operator, "POST", path(0)+"/retry", "")); r.json(t)["outcome"] != "done" {
		t.Errorf("retry: %s", r.body)
	}
	h.expect(204, h.send(Operator, "DELETE", path(1), ""))
	h.expect(404, h.send(Operator, "POST", path(0)+"/retry", ""))
	h.expect(404, h.send(Operator, "DELETE", path(1), ""))
	if left, _ := h.walk("/v1/failed-tasks?"); len(left) != 1 || left[0]["id"] != items[2]["id"] {
		t.Errorf("left: %v", left)
	}
	h.expect(422, h.send(Operator, "GET", "/v1/failed-tasks?cursor=x", ""))
}

func TestWithoutRedisThereAreNoFailedTasks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if r := h.expect(200, h.send(Operator, "GET", "/v1/failed-tasks", "")); string(r.body) != `{"items":[],"nextCursor":null}` {
		t.Errorf("%s", r.body)
	}
	h.expect(404, h.send(Operator, "POST", "/v1/failed-tasks/claim.1.1/retry", ""))
	h.expect(404, h.send(Operator, "DELETE", "/v1/failed-tasks/claim.1.1", ""))

	r := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
	h.delayed(r.URL(), nil)
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	h.problem(h.expect(503, h.send(Operator, "GET", "/v1/failed-tasks", "")), "unavailable")
}

// The queue hears of a door session once it is committed, with the moment at which nobody will pull its door any more.
func TestADoorSessionGetsATaskForItsEnd(t *testing.T) {
	t.Parallel()
	h, _ := newDoor(t)
	var ran atomic.Int64
	_, registry := h.delayed(servicestest.Redis(t).URL(), func(context.Context, string) (time.Time, error) {
		ran.Add(1)
		return time.Time{}, nil
	})
	h.expect(201, h.openDoor(App, "one", `{"deviceId":7,"userId":42}`))
	h.expect(201, h.openDoor(App, "one", `{"deviceId":7,"userId":42}`))
	h.expect(409, h.openDoor(App, "two", `{"deviceId":7,"userId":43}`))
	h.waitForTasks(registry, 1)
	if n := ran.Load(); n != 0 {
		t.Errorf("%d tasks ran a minute too early", n)
	}
}

func (h *harness) waitForTasks(registry *prometheus.Registry, want float64) {
	h.t.Helper()
	h.waitFor(fmt.Sprint(want, " tasks wait for their time"), func() bool {
		families, err := registry.Gather()
		if err != nil {
			h.t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "doortab_tasks_waiting" {
				return f.GetMetric()[0].GetGauge().GetValue() == want
			}
		}
		return false
	})
}

func TestAClaimGetsATaskForItsEnd(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	_, registry := h.delayed(servicestest.Redis(t).URL(), nil)
	id := h.live(2, 1, "")
	for user := range int64(3) {
		token := h.orderToken(App, id, user+1)
		want := 201
		if user == 2 { // sold out
			want = 409
		}
		h.expect(want, h.claim(App, id, token, user+1, "1"))
		h.expect(want, h.claim(App, id, token, user+1, "1")) // the same answer again
	}
	h.waitForTasks(registry, 2)
}

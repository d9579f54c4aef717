package tasks

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"doortab/auditlog"
	"doortab/database/databasetest"
	"doortab/services/servicestest"
)

// A task that can't be done is tried again, archived, and then waits for a person.
func TestAFailedTaskIsListedRetriedAndDiscarded(t *testing.T) {
	t.Parallel()
	db, registry := databasetest.New(t), prometheus.NewRegistry()
	var ran runs
	var mended atomic.Bool
	q := started(t, Config{
		RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString(), DB: db, Metrics: registry,
		Handlers: handled(func(subject string) (time.Time, error) {
			ran.note(subject)
			if mended.Load() {
				return time.Time{}, nil
			}
			return time.Time{}, errors.New("the trigger says no")
		}),
	})
	due := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	for n := range 3 {
		q.Schedule(Claim, fmt.Sprint(n), due)
	}
	q.Schedule(Claim, "waits", time.Now().Add(time.Hour))
	eventually(t, "three are archived", func() bool { return gauge(t, registry, "doortab_failed_tasks") == 3 })
	if n := gauge(t, registry, "doortab_tasks_waiting"); n != 1 {
		t.Errorf("%v tasks wait", n)
	}
	if n := len(ran.of("1")); n != 2 {
		t.Errorf("tried %d times", n)
	}

	var listed []FailedTask
	for after := (*Place)(nil); ; { // one a page
		page, err := q.ListFailed(t.Context(), after, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		listed = append(listed, page...)
		place := page[0].Place()
		after = &place
	}
	if len(listed) != 3 {
		t.Fatalf("listed %+v", listed)
	}
	for _, f := range listed {
		if f.Kind != Claim || !f.DueAt.Equal(due) || f.Attempts != 2 || !strings.Contains(f.Error, "the trigger says no") ||
			time.Since(f.FailedAt) > time.Minute || f.ID != fmt.Sprintf("claim.%s.%d", f.Subject, task{due: due}.second().Unix()) {
			t.Errorf("%+v", f)
		}
	}

	ctx := auditlog.WithActor(t.Context(), "Ann")
	if _, err := q.Retry(ctx, listed[0].ID); !errors.Is(err, ErrStillFails) {
		t.Errorf("retry: %v", err)
	}
	mended.Store(true)
	if outcome, err := q.Retry(ctx, listed[0].ID); err != nil || outcome != Done {
		t.Errorf("retry: %s %v", outcome, err)
	}
	if err := q.Discard(ctx, listed[1].ID); err != nil {
		t.Errorf("discard: %v", err)
	}
	for _, id := range []string{listed[0].ID, listed[1].ID, "claim.waits", "", fmt.Sprintf("claim.waits.%d", time.Now().Unix())} {
		if _, err := q.Retry(ctx, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("retry %q again: %v", id, err)
		}
		if err := q.Discard(ctx, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("discard %q again: %v", id, err)
		}
	}
	if left, err := q.ListFailed(ctx, nil, 10); err != nil || len(left) != 1 || left[0].ID != listed[2].ID {
		t.Errorf("left: %+v, %v", left, err)
	}
	var lines []string
	if err := db.Read(t.Context()).Raw("SELECT CONCAT(actor, ' ', action, ' ', target) FROM audit_log ORDER BY action").Scan(&lines).Error; err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]string{"Ann failed_task.discard failed task " + listed[1].ID, "Ann failed_task.retry failed task " + listed[0].ID})
	if fmt.Sprint(lines) != want {
		t.Errorf("audit log %v, want %s", lines, want)
	}
}

// A task that waits is nobody's to discard, whoever knows its id.
func TestOnlyFailedTasksCanBeDiscarded(t *testing.T) {
	t.Parallel()
	q := started(t, Config{RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString(), Handlers: handled(nil)})
	waits := task{Claim, "waits", time.Now().Add(time.Hour)}
	q.Schedule(waits.kind, waits.subject, waits.due)
	eventually(t, "it waits", func() bool {
		waiting, _, err := q.sizes()
		return err == nil && waiting == 1
	})
	if err := q.Discard(t.Context(), waits.id()); !errors.Is(err, ErrNotFound) {
		t.Errorf("discard: %v", err)
	}
	if _, err := q.Retry(t.Context(), waits.id()); !errors.Is(err, ErrNotFound) {
		t.Errorf("retry: %v", err)
	}
}

// A process that is older than the one that scheduled a task doesn't lose it.
func TestATaskOfAnUnknownKindFails(t *testing.T) {
	t.Parallel()
	q := started(t, Config{RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString()})
	q.Schedule(Reservation, "1", time.Now())
	eventually(t, "it is archived", func() bool {
		list, err := q.ListFailed(t.Context(), nil, 10)
		return err == nil && len(list) == 1 && strings.Contains(list[0].Error, `kind "reservation"`)
	})
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

func TestMetricsBeginAtZero(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	if _, err := New(Config{Handlers: handled(nil), Metrics: registry}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"doortab_failed_tasks": 1, "doortab_tasks_waiting": 1, "doortab_tasks_total": 3, "doortab_tasks_unscheduled_total": 1,
	} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != want {
			t.Errorf("%s: %d series, want %d: %v", name, n, want, err)
		}
	}
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/door"
	"doortab/services"
	"doortab/services/servicestest"
)

// runs notes when a handler ran for which thing.
type runs struct {
	mu  sync.Mutex
	all map[string][]time.Time
}

func (r *runs) note(subject string) (before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string][]time.Time{}
	}
	r.all[subject] = append(r.all[subject], time.Now())
	return len(r.all[subject]) - 1
}

func (r *runs) of(subject string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[subject])
}

// queue is one that starts and stops with the test, and fails quickly.
func queue(t *testing.T, c Config) *Queue {
	t.Helper()
	c.Logger, c.Pauses = slog.New(slog.DiscardHandler), []time.Duration{time.Millisecond}
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := q.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return q
}

func started(t *testing.T, c Config) *Queue {
	t.Helper()
	q := queue(t, c)
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	return q
}

func handled(do func(subject string) (time.Time, error)) map[Kind]Handler {
	return map[Kind]Handler{Claim: func(_ context.Context, subject string) (time.Time, error) { return do(subject) }}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still not so after 30 s: %s", what)
		}
	}
}

func TestAThingEndsAtItsSecondAndNotBefore(t *testing.T) {
	t.Parallel()
	var ran runs
	now := time.Now()
	due := map[string]time.Time{
		"soon": now.Add(900 * time.Millisecond), "later": now.Add(2300 * time.Millisecond), "past": now.Add(-time.Hour),
		"whole": now.Add(2 * time.Second).Truncate(time.Second),
	}
	q := started(t, Config{
		RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString(),
		Handlers: handled(func(subject string) (time.Time, error) {
			ran.note(subject)
			return time.Time{}, nil
		}),
	})
	for subject, at := range due {
		q.Schedule(Claim, subject, at)
	}
	for subject, at := range due {
		eventually(t, subject+" has run", func() bool { return len(ran.of(subject)) == 1 })
		if first := ran.of(subject)[0]; first.Before(at) {
			t.Errorf("%s ran %s too early", subject, at.Sub(first))
		}
	}
	eventually(t, "four are done", func() bool { return testutil.ToFloat64(q.metrics.ran.WithLabelValues("claim", "done")) == 4 })
	eventually(t, "nothing is left in Redis", func() bool {
		waiting, failed, err := q.sizes()
		return err == nil && waiting+failed == 0
	})
}

func TestAThingThatGotMoreTimeEndsAtTheEndOfThat(t *testing.T) {
	t.Parallel()
	var ran runs
	again := time.Now().Add(1500 * time.Millisecond)
	q := started(t, Config{
		RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString(),
		Handlers: handled(func(subject string) (time.Time, error) {
			if ran.note(subject) == 0 {
				return again, nil
			}
			return time.Time{}, nil
		}),
	})
	q.Schedule(Claim, "a", time.Now())
	eventually(t, "it ran twice", func() bool { return len(ran.of("a")) == 2 })
	if second := ran.of("a")[1]; second.Before(again) {
		t.Errorf("again %s too early", again.Sub(second))
	}
	eventually(t, "both outcomes are counted", func() bool {
		return testutil.ToFloat64(q.metrics.ran.WithLabelValues("claim", "later")) == 1 &&
			testutil.ToFloat64(q.metrics.ran.WithLabelValues("claim", "done")) == 1
	})
}

func TestProcessesScheduleAThingOnceAndInstallationsStayApart(t *testing.T) {
	t.Parallel()
	var ours, theirs runs
	c := Config{RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString()}
	other := c
	other.Installation = uuid.NewString()
	noting := func(r *runs) map[Kind]Handler {
		return handled(func(subject string) (time.Time, error) {
			r.note(subject)
			return time.Time{}, nil
		})
	}
	c.Handlers, other.Handlers = noting(&ours), noting(&theirs)
	one, two := started(t, c), started(t, c)
	started(t, other)
	due := time.Now().Add(1200 * time.Millisecond)
	for range 3 {
		one.Schedule(Claim, "a", due)
		two.Schedule(Claim, "a", due)
	}
	one.Schedule(Claim, "last", due.Add(2*time.Second))
	eventually(t, "the last has run", func() bool { return len(ours.of("last")) == 1 })
	if n := len(ours.of("a")); n != 1 {
		t.Errorf("ran %d times", n)
	}
	if n := len(theirs.of("a")) + len(theirs.of("last")); n != 0 {
		t.Errorf("another installation ran %d tasks", n)
	}
}

func TestADoorSessionEndsByItsTask(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	q := started(t, Config{
		RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString(), DB: db,
		Handlers: map[Kind]Handler{DoorSession: func(ctx context.Context, id string) (time.Time, error) { return door.End(ctx, db, id) }},
	})
	var session door.Session
	err := db.InTx(t.Context(), func(tx *gorm.DB) (err error) {
		began := database.Now().Add(-door.OpenWithin + 700*time.Millisecond)
		session, err = door.Start(tx, door.Request{DeviceID: 1, UserID: 42, Kind: cabinet.KindSale}, began)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	q.Schedule(DoorSession, session.SessionID, session.ExpiresAt)
	eventually(t, "it is expired", func() bool {
		var state string
		if err := db.SQL().QueryRow("SELECT state FROM door_sessions WHERE session_id = ?", session.SessionID).Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state == "expired"
	})
}

// While the database is away a task waits for it, however long that takes.
func TestADatabaseThatIsAwaySpeaksAgainstNoTask(t *testing.T) {
	t.Parallel()
	var ran runs
	q := started(t, Config{
		RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString(),
		Handlers: handled(func(subject string) (time.Time, error) {
			if ran.note(subject) < 3 { // more than it may fail
				return time.Time{}, fmt.Errorf("away: %w", database.ErrConflict)
			}
			return time.Time{}, nil
		}),
	})
	q.Schedule(Claim, "a", time.Now())
	eventually(t, "it is done", func() bool { return testutil.ToFloat64(q.metrics.ran.WithLabelValues("claim", "done")) == 1 })
	if list, err := q.ListFailed(t.Context(), nil, 10); err != nil || len(list) != 0 {
		t.Errorf("failed: %+v, %v", list, err)
	}
}

// counting counts the commands to Redis.
type counting struct{ n atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, command)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestARedisThatDiesIsDoneWithoutAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	r := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
	var ran runs
	q := started(t, Config{RedisURL: r.URL(), Installation: "a", Handlers: handled(func(subject string) (time.Time, error) {
		ran.note(subject)
		return time.Time{}, nil
	})})
	asked := &counting{}
	q.redis.AddHook(asked)
	q.Schedule(Claim, "before", time.Now())
	eventually(t, "one ran", func() bool { return len(ran.of("before")) == 1 })
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	lost := func() float64 { return testutil.ToFloat64(q.metrics.lost.WithLabelValues("claim")) }
	began := time.Now()
	for n := range 2 * waiting {
		q.Schedule(Claim, fmt.Sprint("meanwhile-", n), time.Now())
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("scheduling without Redis took %s", took)
	}
	eventually(t, "all of them are let go", func() bool { return lost() == 2*waiting })
	if _, err := q.ListFailed(t.Context(), nil, 10); !errors.Is(err, ErrUnavailable) {
		t.Errorf("list without Redis: %v", err)
	}
	if n := asked.n.Load(); n > 200 {
		t.Errorf("%d commands while Redis was away for %s", n, time.Since(began))
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis is seen again", func() bool { return !q.outage.lasts() })
	eventually(t, "a task runs again", func() bool {
		q.Schedule(Claim, "after", time.Now())
		return len(ran.of("after")) > 0
	})
	if list, err := q.ListFailed(t.Context(), nil, 10); err != nil || len(list) != 0 {
		t.Errorf("an emptied Redis has %v, %v", list, err)
	}
}

// Somebody who asks for the list and goes must not have tasks let go as if Redis were away.
func TestACallerWhoHasGoneIsNoOutage(t *testing.T) {
	t.Parallel()
	q := queue(t, Config{RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString()})
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := q.ListFailed(gone, nil, 10); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if q.outage.lasts() {
		t.Error("Redis counts as away")
	}
}

func TestStopWaitsForWhatRunsAndSchedulesWhatWaits(t *testing.T) {
	t.Parallel()
	c := Config{RedisURL: servicestest.Redis(t).URL(), Installation: uuid.NewString()}
	running, release := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	c.Handlers = handled(func(string) (time.Time, error) {
		close(running)
		<-release
		finished.Store(true)
		return time.Time{}, nil
	})
	q := started(t, c)
	q.Schedule(Claim, "slow", time.Now())
	<-running
	for n := range 50 {
		q.Schedule(Claim, fmt.Sprint("waits-", n), time.Now().Add(time.Hour))
	}
	stopped := make(chan error, 1)
	go func() { stopped <- q.Stop(context.Background()) }()
	<-q.stopping
	close(release)
	if err := <-stopped; err != nil || !finished.Load() {
		t.Errorf("stopped with %v, handler finished: %t", err, finished.Load())
	}
	q.Schedule(Claim, "too late", time.Now()) // harms nobody
	if waiting, _, err := queue(t, c).sizes(); err != nil || waiting != 50 {
		t.Errorf("%d tasks wait in Redis, want 50: %v", waiting, err)
	}
}

func TestStopEndsAlthoughRedisHangs(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*services.Redis) error{
		"hanging": func(r *services.Redis) error { return r.Pause() }, "killed": func(r *services.Redis) error { return r.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
			var ran runs
			q := started(t, Config{RedisURL: r.URL(), Installation: "a", Handlers: handled(func(subject string) (time.Time, error) {
				ran.note(subject)
				return time.Time{}, nil
			})})
			q.Schedule(Claim, "a", time.Now())
			eventually(t, "it runs", func() bool { return len(ran.of("a")) == 1 })
			if err := trouble(r); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			began := time.Now()
			if err := q.Stop(ctx); err != nil || time.Since(began) > 6*time.Second {
				t.Errorf("stopped after %s: %v", time.Since(began), err)
			}
			if name == "hanging" {
				if err := r.Continue(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestWithoutRedisThereAreNoTasks(t *testing.T) {
	t.Parallel()
	none, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*Queue{"none": nil, "without Redis": none} {
		q.Schedule(Claim, "a", time.Now())
		if err := q.Start(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := q.ListFailed(t.Context(), nil, 10); err != nil || len(list) != 0 {
			t.Errorf("%s: %v %v", name, list, err)
		}
		if _, err := q.Retry(t.Context(), "claim.a.1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: retry %v", name, err)
		}
		if err := q.Discard(t.Context(), "claim.a.1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: discard %v", name, err)
		}
		if err := errors.Join(q.Stop(t.Context()), q.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if waiting, failed, err := none.sizes(); waiting+failed != 0 || err != nil {
		t.Errorf("%d %d %v", waiting, failed, err)
	}
}

func TestAWrongURLIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	_, err := New(Config{RedisURL: "localhost:6379:secret"})
	if err == nil || !strings.Contains(err.Error(), "redis://") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

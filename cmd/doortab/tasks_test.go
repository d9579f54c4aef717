package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"doortab/services"
	"doortab/services/servicestest"
	"doortab/settlement"
	"doortab/tasks"
)

// archive makes failed tasks for door sessions, as a process does whose handler fails.
func (in *installation) archive(redisURL string, sessions ...string) {
	in.t.Helper()
	installation, err := settlement.Installation(in.t.Context(), in.db)
	if err != nil {
		in.t.Fatal(err)
	}
	queue, err := tasks.New(tasks.Config{
		RedisURL: redisURL, Installation: installation, DB: in.db, Pauses: []time.Duration{}, Logger: slog.New(slog.DiscardHandler),
		Handlers: map[tasks.Kind]tasks.Handler{tasks.DoorSession: func(context.Context, string) (time.Time, error) {
			return time.Time{}, errors.New("the trigger says no")
		}},
	})
	if err != nil {
		in.t.Fatal(err)
	}
	if err := queue.Start(); err != nil {
		in.t.Fatal(err)
	}
	for _, id := range sessions {
		queue.Schedule(tasks.DoorSession, id, time.Now())
	}
	eventually(in.t, 20*time.Second, "the tasks have failed", func() bool {
		list, err := queue.ListFailed(in.t.Context(), nil, 100)
		return err == nil && len(list) == len(sessions)
	})
	if err := queue.Stop(in.t.Context()); err != nil {
		in.t.Error(err)
	}
}

func TestFailedTasksCommand(t *testing.T) {
	t.Parallel()
	in, redis := newInstallation(t, 1), servicestest.Redis(t).URL()
	failed := func(want int, args ...string) []string {
		t.Helper()
		status, stdout, stderr := command(t, append(append([]string{"failed-tasks"}, args...), "--database-dsn="+in.dsn, "--redis-url="+redis)...)
		if status != want {
			t.Fatalf("failed-tasks %v: status %d, want %d: %s%s", args, status, want, stdout, stderr)
		}
		return strings.Split(strings.TrimSpace(stdout+stderr), "\n")
	}
	if lines := failed(0, "list"); lines[0] != "" {
		t.Errorf("nothing has failed: %q", lines)
	}
	in.exec(`INSERT INTO door_sessions (session_id, device_id, close_event_id, user_id, kind, app, state, open_device, open_user, created_at, expires_at)
		VALUES ('stuck', 1001, 'e', 42, 'sale', '', 'opening', 1001, 42, NOW(3), '2026-01-01')`)
	in.exec("CREATE TRIGGER broken BEFORE UPDATE ON door_sessions FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'never'")
	in.archive(redis, "stuck", "gone")
	ids := map[string]string{}
	for _, line := range failed(0, "list") {
		id, rest, _ := strings.Cut(line, " ")
		if !strings.Contains(rest, "the trigger says no") {
			t.Errorf("line %q", line)
		}
		ids[strings.Split(id, ".")[1]] = id
	}
	if lines := failed(1, "retry", ids["stuck"]); !strings.Contains(lines[0], "still fails") || !strings.Contains(lines[0], "never") {
		t.Errorf("%q", lines)
	}
	in.exec("DROP TRIGGER broken")
	if lines := failed(0, "retry", ids["stuck"]); lines[0] != "done "+ids["stuck"] {
		t.Errorf("%q", lines)
	}
	if n := in.count("SELECT COUNT(*) FROM door_sessions WHERE state = 'expired'"); n != 1 {
		t.Errorf("%d sessions expired", n)
	}
	failed(0, "discard", ids["gone"])
	if lines := failed(1, "discard", ids["gone"]); !strings.Contains(lines[0], "no such failed task") {
		t.Errorf("%q", lines)
	}
	if n := in.count("SELECT COUNT(*) FROM audit_log WHERE actor = 'command' AND action LIKE 'failed_task.%'"); n != 2 {
		t.Errorf("%d lines in the audit log", n)
	}
	if status, stdout, stderr := command(t, "failed-tasks", "list", "--database-dsn="+in.dsn); status != 1 || !strings.Contains(stderr, "--redis-url") {
		t.Errorf("without Redis: %d %s%s", status, stdout, stderr)
	}
}

// A process that serves schedules the end of what it opens, and ends in good order with it.
func TestServeSchedulesTheEndOfADoorSession(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	s := in.serve("--redis-url=" + servicestest.Redis(t).URL())
	in.exec("UPDATE cabinets SET online = TRUE")
	in.client.do(http.MethodPost, s.http+"/v1/door-sessions", `{"deviceId":1001,"userId":42}`, http.StatusCreated, nil)
	eventually(t, 10*time.Second, "a task waits for the session's end", func() bool {
		_, text, err := in.client.request(http.MethodGet, s.http+"/metrics", "")
		return err == nil && strings.Contains(string(text), "\ndoortab_tasks_waiting 1\n")
	})
	began := time.Now()
	s.signal(syscall.SIGTERM)
	if status := s.status(stopLimit); status != 0 {
		t.Errorf("exit status %d after %s: %s", status, time.Since(began), s.stderr)
	}
}

func TestStopWithoutARedis(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*services.Redis) error{
		"killed":  func(r *services.Redis) error { return r.Kill() },
		"hanging": func(r *services.Redis) error { return r.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
			in := newInstallation(t, 1)
			s := in.serve("--redis-url=" + redis.URL())
			in.exec("UPDATE cabinets SET online = TRUE")
			if err := trouble(redis); err != nil {
				t.Fatal(err)
			}
			in.client.do(http.MethodPost, s.http+"/v1/door-sessions", `{"deviceId":1001,"userId":42}`, http.StatusCreated, nil)
			if status := in.client.status(s.http + "/v1/failed-tasks"); status != http.StatusServiceUnavailable {
				t.Errorf("failed tasks without Redis: %d", status)
			}
			began := time.Now()
			s.signal(syscall.SIGTERM)
			if status := s.status(stopLimit); status != 0 {
				t.Errorf("exit status %d: %s", status, s.stderr)
			}
			t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
			if name == "hanging" {
				if err := redis.Continue(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/archive"
	"doortab/database"
)

const day = 24 * time.Hour

// attic is a shop with old and new rows of all that a janitor removes.
func attic(t *testing.T) *shop {
	t.Helper()
	s := newShop(t)
	ago := func(d time.Duration) time.Time { return database.Now().Add(-d) }
	for i, age := range []time.Duration{time.Hour, 71 * time.Hour, 73 * time.Hour, 100 * day} {
		s.exec(`INSERT INTO idempotency_keys (token_id, scope_hash, request_hash, status, answer, created_at)
			VALUES ('t', UNHEX(SHA2(?, 256)), '', 201, '{}', ?)`, fmt.Sprint(i), ago(age))
	}
	for _, d := range []struct {
		id, state string
		event     any
		expires   time.Duration
		ended     any
	}{
		{"closed", "closed", "sold", 100 * day, ago(100 * day)},
		{"closed-waits", "closed", "waits", 100 * day, ago(100 * day)}, // for a review
		{"closed-late", "closed", "late", 100 * day, ago(day)},
		{"expired", "expired", nil, 100 * day, ago(100 * day)},
		{"refused", "refused", nil, 100 * day, ago(100 * day)},
		{"new", "expired", nil, 80 * day, ago(80 * day)},
		{"open", "open", nil, 100 * day, nil}, // a sweep of doors will end it
	} {
		s.exec(`INSERT INTO door_sessions (session_id, device_id, close_event_id, user_id, kind, app, state, settled_event_id, created_at,
			ended_at, expires_at) VALUES (?, 1001, ?, 42, 'sale', '', ?, ?, ?, ?, ?)`, d.id, d.id, d.state, d.event, ago(d.expires), d.ended, ago(d.expires))
	}
	for i, r := range []struct {
		state string
		until time.Duration
	}{{"used", 100 * day}, {"returned", 100 * day}, {"expired", 100 * day}, {"used", 80 * day}, {"held", 100 * day}} { // a sweep will end the last
		s.exec(`INSERT INTO reservations (device_id, reservation_id, user_id, app, state, version, until_at, created_at, updated_at)
			VALUES (1001, ?, 42, '', ?, 1, ?, ?, ?)`, i+1, r.state, ago(r.until), ago(r.until), ago(r.until))
		s.exec("INSERT INTO reservation_lines VALUES (1001, ?, 7, 2, 1), (1001, ?, 8, 1, 0)", i+1, i+1)
	}
	for id, last := range map[string]time.Duration{"gone": 100 * day, "again": day} {
		s.exec(`INSERT INTO dead_letters (dead_letter_id, fingerprint, topic, payload, size, digest, reason, detail, copies, received_at,
			last_received_at) VALUES (?, UNHEX(SHA2(?, 256)), ?, '', 0, '', 'malformed', '', 1, ?, ?)`,
			database.NewID(ago(100*day)), id, id, ago(100*day), ago(last))
	}
	return s
}

func TestWhatIsPastItsTimeIsRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		retention archive.Retention
		left      [4]int64 // keys, sessions, reservations, letters
	}{
		{"for ever", archive.Retention{IdempotencyKeys: 365 * day}, [4]int64{4, 7, 5, 2}},
		{"the least", archive.Retention{}, [4]int64{2, 7, 5, 2}},
		{"90 days", archive.Retention{
			IdempotencyKeys: 365 * day, DoorSessions: 90 * day, Reservations: 90 * day, DeadLetters: 90 * day,
		}, [4]int64{4, 4, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := attic(t)
			s.exec(`INSERT INTO reviews (review_id, device_id, close_event_id, reasons, proposed, evidence, status, created_at)
				VALUES (1, 1001, 'waits', '[]', '[]', '[]', 'open', NOW())`)
			var log bytes.Buffer
			metrics := prometheus.NewRegistry()
			archive.NewJanitor(s.db, c.retention, slog.New(slog.NewTextHandler(&log, nil)), metrics).Sweep(t.Context())
			got := [4]int64{s.count("idempotency_keys"), s.count("door_sessions"), s.count("reservations"), s.count("dead_letters")}
			if got != c.left {
				t.Errorf("left %v, want %v", got, c.left)
			}
			if n := s.count("reservation_lines"); n != 2*got[2] {
				t.Errorf("%d lines of %d reservations", n, got[2])
			}
			if n := s.count("door_sessions WHERE session_id IN ('closed-waits', 'closed-late', 'new', 'open')"); n != 4 {
				t.Errorf("%d of the four sessions are left that must stay", n)
			}
			if n, want := removed(t, metrics), 4+7+5+2-got[0]-got[1]-got[2]-got[3]; n != float64(want) {
				t.Errorf("%v rows counted as removed, want %d", n, want)
			}
			if strings.Contains(log.String(), "WARN") {
				t.Error(log.String())
			}
		})
	}
}

func removed(t *testing.T, metrics *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 4 {
		t.Fatalf("metrics %v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		n += m.GetCounter().GetValue()
	}
	return n
}

// Several processes sweep the same rows, more than one step takes.
func TestJanitorsBesideEachOther(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.exec(`INSERT INTO idempotency_keys (token_id, scope_hash, request_hash, status, answer, created_at)
		VALUES ('t', UNHEX(SHA2('0', 256)), '', 201, '', '2020-01-01')`)
	for n := 1; n < 1024; n *= 2 {
		s.exec(`INSERT INTO idempotency_keys SELECT token_id, UNHEX(SHA2(CONCAT(HEX(scope_hash), ?), 256)), request_hash, status, answer, created_at
			FROM idempotency_keys`, n)
	}
	var all sync.WaitGroup
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})
	for range 3 {
		all.Go(func() { archive.NewJanitor(s.db, archive.Retention{}, slog.New(handler), nil).Sweep(t.Context()) })
	}
	all.Wait()
	if n := s.count("idempotency_keys"); n != 0 || log.Len() > 0 {
		t.Errorf("%d keys left; %s", n, log.String())
	}
}

func TestAJanitorEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := attic(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	archive.NewJanitor(s.db, archive.Retention{}, slog.New(slog.DiscardHandler), nil).Run(ctx)
	if n := s.count("idempotency_keys"); n != 4 {
		t.Errorf("%d keys left, want all 4", n)
	}
}

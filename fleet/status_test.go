package fleet

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"doortab/database"
	"doortab/database/databasetest"
)

func statusOf(t *testing.T, r *Registry, deviceID int64) string {
	t.Helper()
	c, err := r.Cabinet(t.Context(), deviceID)
	if err != nil {
		t.Fatal(err)
	}
	seen := "never"
	if c.LastSeenAt != nil {
		seen = c.LastSeenAt.Format("15:04:05.000")
	}
	return fmt.Sprint(c.Online, " ", seen)
}

func TestTheLatestStatusIsKept(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	r, b := NewRegistry(db), NewStatusBoard(db, quiet())
	register(t, r, 1)
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		offers []bool
		after  time.Duration
		want   string
	}{
		{nil, 0, "false never"},
		{[]bool{false}, 0, "false never"},
		{[]bool{true}, time.Second, "true 10:00:01.000"},
		{[]bool{true}, 2 * time.Second, "true 10:00:01.000"}, // nothing new
		{[]bool{true}, time.Hour, "true 11:00:00.000"},
		{[]bool{false, true, false}, time.Hour + time.Second, "false 11:00:01.000"},
		{[]bool{false}, 2 * time.Hour, "false 11:00:01.000"}, // still away
	} {
		for _, online := range step.offers {
			b.Offer(1, online, "boot", at.Add(step.after))
		}
		b.Offer(99, true, "stranger", at)
		b.flush(t.Context())
		if got := statusOf(t, r, 1); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	b.Offer(1, true, "b", at.Add(4*time.Hour))
	b.Offer(1, false, "a", at.Add(3*time.Hour)) // came late
	b.flush(t.Context())
	if got := statusOf(t, r, 1); got != "true 14:00:00.000" {
		t.Errorf("an older status won: %s", got)
	}
}

func TestABootIDOfAnyFormIsNoHarm(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	r, b := NewRegistry(db), NewStatusBoard(db, quiet())
	ids := []string{`"]}'\`, "靴", strings.Repeat("x", 64), strings.Repeat("x", 65), "\xff", ""}
	for i := range ids {
		register(t, r, int64(i+1))
		b.Offer(int64(i+1), true, ids[i], time.Now())
	}
	b.flush(t.Context())
	for i, id := range ids {
		if got := statusOf(t, r, int64(i+1)); !strings.HasPrefix(got, "true") {
			t.Errorf("boot id %q: %s", id, got)
		}
	}
}

func TestStatusesOutliveADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	db, dsn := databasetest.NewWithDSN(t)
	away := databasetest.Open(t, dsn)
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	r, b := NewRegistry(db), NewStatusBoard(away, quiet())
	register(t, r, 1)
	register(t, r, 2)
	b.Offer(1, true, "old", time.Now())
	b.Offer(2, true, "old", time.Now())
	b.flush(t.Context())
	b.Offer(1, false, "new", time.Now())
	b.db = db
	b.flush(t.Context())
	if one, two := statusOf(t, r, 1), statusOf(t, r, 2); !strings.HasPrefix(one, "false") || !strings.HasPrefix(two, "true") {
		t.Errorf("after the database came back: %s, %s", one, two)
	}
}

func TestRunWritesWhatWaitsWhenItEnds(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	r, b := NewRegistry(db), NewStatusBoard(db, quiet())
	register(t, r, 1)
	b.Offer(1, true, "", time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Run(ctx)
	if got := statusOf(t, r, 1); !strings.HasPrefix(got, "true") {
		t.Errorf("after Run: %s", got)
	}
}

// A broker hands over the retained status of every cabinet when a worker connects.
func TestTheStatusesOfAWholeFleetCostLittle(t *testing.T) {
	t.Parallel()
	const cabinets = 20_000
	db := databasetest.New(t)
	b := NewStatusBoard(db, quiet())
	now := database.Now()
	for first := 1; first <= cabinets; first += 1000 {
		rows := make([][]any, 1000)
		for i := range rows {
			rows[i] = []any{first + i, "x", now, now}
		}
		err := database.Insert(db.Read(t.Context()), "cabinets", []string{"device_id", "name", "created_at", "updated_at"}, rows, "")
		if err != nil {
			t.Fatal(err)
		}
	}
	for round, least := range []string{"first", "unchanged"} {
		for id := range int64(cabinets) {
			b.Offer(id+1, true, "boot", now.Add(time.Duration(round)*time.Second))
		}
		begun := time.Now()
		b.flush(t.Context())
		took := time.Since(begun)
		t.Logf("%s: %d statuses in %s", least, cabinets, took)
		if took > 20*time.Second {
			t.Errorf("%s: %d statuses took %s", least, cabinets, took)
		}
	}
	var online int
	err := db.Read(t.Context()).Raw("SELECT COUNT(*) FROM cabinets WHERE online AND last_seen_at = ?", now).Scan(&online).Error
	if err != nil || online != cabinets {
		t.Errorf("%d of %d are online, %v", online, cabinets, err)
	}
}

func TestTheBoardIsBounded(t *testing.T) {
	t.Parallel()
	b := NewStatusBoard(nil, quiet())
	for i := range int64(maxPending + 5) {
		b.Offer(i+1, true, "", time.Time{})
	}
	if waiting, dropped := b.states.take(); len(waiting) != maxPending || dropped != 5 {
		t.Errorf("%d wait, %d dropped", len(waiting), dropped)
	}
}

func TestTheLatestTemperatureIsKept(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	r, b := NewRegistry(db), NewStatusBoard(db, quiet())
	register(t, r, 1)
	register(t, r, 2)
	now := time.Now()
	for _, celsius := range []float64{3.9, -18.256, 4, 4} {
		b.OfferTemperature(1, 99, now.Add(-time.Minute))
		b.OfferTemperature(1, celsius, now)
		b.OfferTemperature(1, 98, now.Add(-time.Second)) // came late
		b.OfferTemperature(99, 5, now)
		b.flush(t.Context())
		c, err := r.Cabinet(t.Context(), 1)
		if want := math.Round(celsius*100) / 100; err != nil || c.TemperatureC == nil || *c.TemperatureC != want {
			t.Errorf("%v, want %v, %v", c.TemperatureC, want, err)
		}
	}
	if c, err := r.Cabinet(t.Context(), 2); err != nil || c.TemperatureC != nil || c.Online {
		t.Errorf("the other cabinet: %+v, %v", c, err)
	}
}

package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"doortab/database"
	"doortab/database/databasetest"
)

func TestCabinetsThatHaveGoneSilentAreCounted(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	p := NewPresence(db, quiet())
	says := func(online, silent string) {
		t.Helper()
		if err := testutil.CollectAndCompare(p, strings.NewReader(`
# HELP doortab_cabinets_online Cabinets that are online.
# TYPE doortab_cabinets_online gauge
doortab_cabinets_online `+online+`
# HELP doortab_cabinets_silent Cabinets that were online once and have not been for an hour.
# TYPE doortab_cabinets_silent gauge
doortab_cabinets_silent `+silent+"\n")); err != nil {
			t.Error(err)
		}
	}
	says("0", "0") // an empty fleet
	now := database.Now()
	for id, c := range map[int64]struct {
		online bool
		seen   any
	}{
		1: {true, now},
		2: {true, now.Add(-9 * time.Hour)}, // seen when it came; it has not left since
		3: {false, now.Add(-59 * time.Minute)},
		4: {false, now.Add(-61 * time.Minute)},
		5: {false, now.Add(-999 * time.Hour)},
		6: {false, nil}, // was never installed
	} {
		if _, err := db.SQL().Exec(`INSERT INTO cabinets (device_id, name, online, last_seen_at, created_at, updated_at)
			VALUES (?, 'x', ?, ?, NOW(3), NOW(3))`, id, c.online, c.seen); err != nil {
			t.Fatal(err)
		}
	}
	says("0", "0") // a count is good for a while
	p.readAt = time.Time{}
	says("2", "2")
}

func TestNothingIsToldOfCabinetsWithoutADatabase(t *testing.T) {
	t.Parallel()
	db, err := database.Open(database.Config{DSN: "x:y@unix(/nowhere/at/all)/z"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if n := testutil.CollectAndCount(NewPresence(db, quiet())); n != 0 {
		t.Errorf("%d series", n)
	}
}

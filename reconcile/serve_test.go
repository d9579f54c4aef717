package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/reconcile"
)

// serving is one process's service with its metrics.
func (s *shop) serving(every time.Duration) (*reconcile.Service, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	return reconcile.New(reconcile.Config{DB: s.db, Every: every, Metrics: registry}), registry
}

func (s *shop) look(services ...*reconcile.Service) {
	s.Helper()
	for _, service := range services {
		if err := service.Look(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *shop) origins() (list []string) {
	s.Helper()
	runs, err := reconcile.ListRuns(s.Context(), s.db, 0, 100)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range runs {
		list = append(list, string(r.Origin))
	}
	return list
}

func TestWhatIsDueRunsOnceForAllProcesses(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	drifted := s.live(10, promotion.Database)
	s.exec("UPDATE promotion_quota SET taken = 4 WHERE promotion_id = ?", drifted)
	one, registry := s.serving(time.Hour)
	other, second := s.serving(time.Hour)
	s.look(one, other, one, other)
	if got := strings.Join(s.origins(), " "); got != "nightly" {
		t.Errorf("runs %q, want one that looks at everything", got)
	}
	hour := "INTERVAL 61 MINUTE"
	s.exec("UPDATE reconciliations SET created_at = created_at - " + hour)
	s.exec("UPDATE promotions SET state = 'ended', updated_at = NOW(3) - INTERVAL 10 DAY")
	s.look(one, other, one, other)
	got := strings.Join(s.origins(), " ")
	if got != "periodic nightly" && got != "nightly nightly" { // the second where the night began meanwhile
		t.Errorf("after an hour the runs are %q", got)
	}
	want := `# HELP doortab_reconciliation_differences Differences of the last reconciliation that stand unrepaired; promotion none: of reservations.
# TYPE doortab_reconciliation_differences gauge
doortab_reconciliation_differences{cause="quota_drift",promotion="` + number(drifted) + `"} 1
`
	for _, r := range []*prometheus.Registry{registry, second} {
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), "doortab_reconciliation_differences"); err != nil {
			t.Error(err)
		}
		if at := succeededAt(t, r); time.Since(at) > time.Hour {
			t.Errorf("the last success was at %s", at)
		}
	}
}

// succeededAt is when the last reconciliation came to its end, as alerts see it.
func succeededAt(t *testing.T, r *prometheus.Registry) time.Time {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "doortab_reconciliation_last_success_timestamp_seconds" {
			return time.UnixMilli(int64(f.GetMetric()[0].GetGauge().GetValue() * 1000))
		}
	}
	t.Fatal("no time of a success")
	return time.Time{}
}

// Where no run has ever come to its end, an alert must tell so.
func TestARunThatNeverEndsWellShows(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.exec("UPDATE promotion_quota SET taken = 4 WHERE promotion_id = ?", s.live(10, promotion.Database))
	s.define("CREATE TRIGGER broken BEFORE INSERT ON reconciliation_findings FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'x'")
	service, registry := s.serving(time.Hour)
	if err := service.Look(t.Context()); err == nil {
		t.Error("a difference that can't be written is no error")
	}
	if at := succeededAt(t, registry); at.Unix() != 0 {
		t.Errorf("the last success was at %s", at)
	}
}

func TestARequestRunsWithoutATimetable(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	drifted := s.live(10, promotion.Database)
	s.exec("UPDATE promotion_quota SET taken = 4 WHERE promotion_id = ?", drifted)
	never, _ := s.serving(0)
	s.look(never)
	if got := s.origins(); len(got) != 0 {
		t.Errorf("runs %q", got)
	}
	s.inTx(func(tx *gorm.DB) error {
		_, err := reconcile.Ask(tx, true, database.Now())
		return err
	})
	s.look(never, never)
	if got := strings.Join(s.origins(), " "); got != "request" {
		t.Errorf("runs %q", got)
	}
	if taken := s.number("SELECT taken FROM promotion_quota"); taken != 0 {
		t.Errorf("taken is %d after a run that was to repair", taken)
	}
}

func TestOldRunsAreRemoved(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const day = 24 * time.Hour
	for name, r := range map[string]struct {
		age   time.Duration
		state reconcile.RunState
		found int64
	}{
		"empty":        {31 * day, reconcile.Done, 0},
		"failed":       {31 * day, reconcile.Failed, 0},
		"found":        {91 * day, reconcile.Done, 2},
		"young empty":  {29 * day, reconcile.Done, 0},
		"young failed": {29 * day, reconcile.Failed, 0},
		"young found":  {89 * day, reconcile.Done, 2},
	} {
		at := database.Now().Add(-r.age)
		id := database.NewID(at)
		s.exec(`INSERT INTO reconciliations (run_id, state, origin, started_by, everything, repairs, found, created_at)
			VALUES (?, ?, 'nightly', ?, TRUE, FALSE, ?, ?)`, id, r.state, name, r.found, at)
		for n := range r.found {
			s.exec(`INSERT INTO reconciliation_findings (run_id, number, promotion_id, cause, target, counted, due, repaired)
				VALUES (?, ?, 0, 'reserved_drift', ?, 1, 0, FALSE)`, id, n, name)
		}
	}
	nightly, _ := s.serving(time.Hour)
	s.look(nightly)
	var left []string
	err := s.db.Read(t.Context()).Raw(`SELECT started_by FROM reconciliations WHERE started_by <> 'doortab'
		UNION ALL SELECT target FROM reconciliation_findings ORDER BY 1`).Scan(&left).Error
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(left, ", "); got != "young empty, young failed, young found, young found, young found" {
		t.Errorf("left: %s", got)
	}
}

package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"doortab/bench/load"
)

// doortab builds the program, which the parts behind a broker start.
func doortab(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "doortab")
	args := []string{"build", "-o", program}
	if raceDetector {
		args = append(args, "-race")
	}
	if said, err := exec.Command("go", append(args, "doortab/cmd/doortab")...).CombinedOutput(); err != nil {
		t.Fatalf("build doortab: %v: %s", err, said)
	}
	return program
}

func TestBrokerHasTheLimitsOfTheShippedConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/mosquitto/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	shipped := strings.Split(string(text), "\n")
	for _, line := range brokerLines {
		if !slices.Contains(shipped, line) {
			t.Errorf("the shipped configuration has no line %q", line)
		}
	}
	for _, line := range shipped {
		if strings.HasPrefix(line, "max_") && !strings.HasPrefix(line, "max_connections") && !slices.Contains(brokerLines, line) {
			t.Errorf("the benchmark's broker has no %q", line)
		}
	}
}

func TestQuantileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Second // in descending order
	}
	for name, c := range map[string]struct {
		waits []time.Duration
		share float64
		want  time.Duration
	}{
		"none":                  {nil, 0.99, 0},
		"one":                   {[]time.Duration{7}, 0.5, 7},
		"median of two":         {[]time.Duration{9, 7}, 0.5, 7},
		"median of a hundred":   {hundred, 0.5, 50 * time.Second},
		"99 of a hundred":       {hundred, 0.99, 99 * time.Second},
		"just above a rank":     {hundred, 0.9901, 100 * time.Second},
		"the greatest":          {hundred, 1, 100 * time.Second},
		"none below the lowest": {hundred, 0, time.Second},
	} {
		if got := quantile(c.waits, c.share); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestProcessThatIsNotReadySaysWhy(t *testing.T) {
	t.Parallel()
	lines := []*regexp.Regexp{regexp.MustCompile("ready at (.*)")}
	_, err := startProcess(t.Context(), "/bin/sh", lines, "-c", "echo no such database >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no such database") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = startProcess(ctx, "/bin/sh", lines, "-c", "echo still waiting >&2; exec sleep 60")
	if err == nil || !strings.Contains(err.Error(), "still waiting") {
		t.Errorf("%v", err)
	}
}

func TestProcessThatEndsBadlyIsAnError(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.Context(), "/bin/sh", []*regexp.Regexp{regexp.MustCompile("ready at (.*)")},
		"-c", "trap 'echo lost something >&2; exit 4' TERM; echo ready at once >&2; while :; do sleep 0.05; done")
	if err != nil {
		t.Fatal(err)
	}
	if p.found[0][1] != "once" {
		t.Errorf("found %q", p.found)
	}
	now, most, err := p.resident()
	if err != nil || now <= 0 || most < now {
		t.Errorf("resident memory %d, at most %d: %v", now, most, err)
	}
	if err := p.stop(); err == nil || !strings.Contains(err.Error(), "lost something") {
		t.Errorf("%v", err)
	}
}

// Two events of one cabinet at a time want the same rows: what one loses is tried again, and each gets one receipt.
func TestUsualDesignBehindABrokerAnswersEachEventOnce(t *testing.T) {
	t.Parallel()
	lab := smallLab(t)
	lab.program = doortab(t)
	w, err := lab.newWire(t.Context(), lab.cabinets)
	if err != nil {
		t.Fatal(err)
	}
	w.rival.workers = 8
	err = w.run(t.Context(), w.usual, 1, w.same.of(1).publication, func(fleet *load.Load, _ []*process) error {
		return fleet.Backlog(t.Context(), 100)
	})
	if err != nil {
		t.Fatal(err)
	}
	dsn, err := mysql.ParseDSN(w.rival.dsn)
	if err != nil {
		t.Fatal(err)
	}
	var orders int
	row := lab.admin.SQL().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+dsn.DBName+".orders")
	if err := row.Scan(&orders); err != nil || orders != 100 {
		t.Errorf("%d orders, %v", orders, err)
	}
	if err := w.end(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBenchPrintsAMemberForEachPartThatRan(t *testing.T) {
	t.Parallel()
	var out, log output
	if status := run(context.Background(), []string{"bench", "hot", "--quick", "--seconds=3", "--json"}, &out, &log); status != 0 {
		t.Fatalf("status %d: %s", status, tail(log.String()))
	}
	var figures map[string]struct {
		Doortab, Usual, Ratio float64
		Unit                  string
		Details               map[string]float64
	}
	if err := json.Unmarshal([]byte(out.String()), &figures); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	hot := figures["hot"]
	if len(figures) != 1 || hot.Doortab <= 0 || hot.Usual <= 0 || hot.Ratio <= 0 || hot.Unit != "settlements/s" || len(hot.Details) == 0 {
		t.Errorf("figures %+v", figures)
	}
	if !strings.Contains(log.String(), "1/1 hot: turn 3 of 3") {
		t.Errorf("progress is missing in %s", tail(log.String()))
	}
}

func TestBenchNamesItsPartsWhereOneIsUnknown(t *testing.T) {
	t.Parallel()
	var out, log output
	status := run(context.Background(), []string{"bench", "warm"}, &out, &log)
	if status != 1 || !strings.Contains(log.String(), `no part "warm": there are settle, hot, `) {
		t.Errorf("status %d: %s", status, log.String())
	}
}

func TestBenchThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, "bench", "settle", "--quick", "--seconds=600")
	eventually(t, startLimit, "it works", func() bool { return strings.Contains(p.stderr.String(), "filling") })
	folders := serviceFolders(t, p.cmd.Process.Pid)
	if len(folders) != 1 {
		t.Fatalf("services run in %v, want one folder", folders)
	}
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := p.status(time.Minute); status != 1 || !strings.Contains(p.stderr.String(), "stopped before all parts had run") {
		t.Errorf("status %d: %s", status, tail(p.stderr.String()))
	}
	for folder := range folders {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", folder, err)
		}
	}
}

var serviceLog = regexp.MustCompile(`^(.+)/(?:mariadb|redis)\.log$`)

// serviceFolders are those that the children of a process log into.
func serviceFolders(t *testing.T, parent int) map[string]bool {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil || !regexp.MustCompile(fmt.Sprintf(`\) \w %d `, parent)).Match(text) {
			continue
		}
		target, _ := os.Readlink(filepath.Join(filepath.Dir(stat), "fd/2"))
		if found := serviceLog.FindStringSubmatch(target); found != nil {
			folders[found[1]] = true
		}
	}
	return folders
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestAnOperatorsDay pastes the commands of docs/a-day.md into a shell.
func TestAnOperatorsDay(t *testing.T) {
	t.Parallel()
	paste(t, commandsOf(t, "a-day.md"),
		`"toBring":9`,
		`"outcome":"settled","duplicate":false`, `"totalMinor":1000`, `"unitWeightGrams":345`,
		`"outcome":"review"`, `"status":"amended"`, `"totalMinor":300`,
		`"productId":7,"stock":3`, `"kind":"stocktake","quantity":-1`)
}

// TestReservationsPage pastes the commands of docs/reservations.md.
func TestReservationsPage(t *testing.T) {
	t.Parallel()
	paste(t, commandsOf(t, "reservations.md"),
		`"state":"held"`, `urn:doortab:problem:too-little-stock`, `"reasons":["reserved_taken"]`,
		`"quantity":3,"left":3,"short":2`, `"reasons":["reserved_taken"]`, `"state":"returned"`, `"quantity":3,"left":2`)
}

// TestPromotionsPage pastes the commands of docs/promotions.md.
func TestPromotionsPage(t *testing.T) {
	t.Parallel()
	paste(t, commandsOf(t, "promotions.md"),
		`"state":"live"`, `"state":"held"`, `urn:doortab:problem:limit-reached`, `"totalMinor":600`, `"left":499`, `"taken":1`,
		"1 promotions, 0 differences")
}

// exports is the line that dev prints for another shell.
func (d *devRun) exports() (line string) {
	d.t.Helper()
	eventually(d.t, startLimit, "dev prints a line to paste", func() bool {
		at := slices.IndexFunc(d.stdout.lines(), func(l string) bool { return strings.HasPrefix(l, "export ") })
		if at >= 0 {
			line = d.stdout.lines()[at] + "\n"
		}
		return at >= 0
	})
	return line
}

func commandsOf(t *testing.T, page string) (script string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range shellBlock.FindAllSubmatch(text, -1) {
		script += string(block[1])
	}
	return script
}

// paste runs the commands of a page in a shell, after the line that a Doortab of their own printed for it and nothing else, and
// looks for what they are to print.
func paste(t *testing.T, script string, wanted ...string) (printed string) {
	t.Helper()
	d := dev(t, "--no-simulator")
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(build(t), filepath.Join(folder, "bin", "doortab")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+d.exports()+script)
	shell.Dir = folder
	shell.Env = append(withoutSettings(os.Environ()), asProgram+"=1")
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range wanted {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page's output lacks %s:\n%s", want, out)
			break
		}
	}
	d.signal(os.Interrupt)
	d.summary(0)
	return string(out)
}

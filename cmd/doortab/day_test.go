package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestAnOperatorsDay pastes the commands of docs/a-day.md into a shell.
func TestAnOperatorsDay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/a-day.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	for _, block := range shellBlock.FindAllSubmatch(page, -1) {
		script += string(block[1])
	}
	d := dev(t, "--no-simulator")
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(build(t), filepath.Join(folder, "bin", "doortab")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = folder
	shell.Env = append(withoutSettings(os.Environ()), asProgram+"=1", "API="+d.ready.HTTP, "TOKEN="+d.ready.AdminToken, "DOORTAB_MQTT="+d.ready.MQTT)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	printed := string(out)
	for _, want := range []string{
		`"toBring":9`,
		`"outcome":"settled","duplicate":false`, `"totalMinor":1000`, `"unitWeightGrams":345`,
		`"outcome":"review"`, `"status":"amended"`, `"totalMinor":300`,
		`"productId":7,"stock":3`, `"kind":"stocktake","quantity":-1`,
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("the page's output lacks %s:\n%s", want, printed)
			break
		}
	}
	d.signal(os.Interrupt)
	d.summary(0)
}

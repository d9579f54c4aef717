package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The units are verified with the test's own program in the place of the installed one, which systemd wants to see.
func TestUnitsAreValidAndConfined(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze isn't here: the units are read, not verified")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"doortab.service", "doortab-mosquitto.service"} {
		text, err := os.ReadFile(filepath.Join("../../deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		args := unitCommand(t, string(text))
		if status, _, stderr := command(t, append(args, "--help")...); status != 0 {
			t.Errorf("%s: its command isn't one: %s", name, stderr)
		}
		if analyze == "" {
			continue
		}
		unit := filepath.Join(t.TempDir(), name)
		changed := strings.ReplaceAll(string(text), "/usr/local/bin/doortab", self)
		if err := os.WriteFile(unit, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("systemd-analyze verify %s: %v:\n%s", name, err, said)
		}
		if !looksAtFiles(t, analyze) {
			continue
		}
		// In tenths; 100 is a service without any confinement.
		if said, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=20", unit).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze security %s: %v:\n%s", name, err, said)
		}
	}
}

// looksAtFiles: since version 250 it judges a unit that isn't installed.
func looksAtFiles(t *testing.T, analyze string) bool {
	t.Helper()
	said, err := exec.Command(analyze, "--version").Output()
	var version int
	if _, scanErr := fmt.Sscanf(string(said), "systemd %d", &version); err != nil || scanErr != nil {
		t.Fatalf("systemd-analyze --version: %v, %v: %s", err, scanErr, said)
	}
	return version >= 250
}

// unitCommand is what a unit starts, without the program.
func unitCommand(t *testing.T, unit string) []string {
	t.Helper()
	_, rest, found := strings.Cut(unit, "\nExecStart=/usr/local/bin/doortab ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found || !strings.Contains(unit, "\nEnvironmentFile=/etc/doortab/") {
		t.Fatal("the unit has no ExecStart or no EnvironmentFile")
	}
	return strings.Fields(line)
}

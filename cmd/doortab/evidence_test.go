package main

import (
	"strings"
	"testing"
)

func TestEvidencePrintsItsFigures(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := command(t, "evidence", "--doors=1000")
	// So few doors say nothing of one wrong order in thousands: targets may be missed by chance.
	if (status == 1) != strings.Contains(stdout, "MISSED") || strings.Count(stdout, "\n") != 13 {
		t.Errorf("status %d, %q %q; want a row for each kind and seed, and 1 only for a target missed", status, stdout, stderr)
	}
	if status, _, stderr := command(t, "evidence", "--doors=3"); status != 2 || !strings.Contains(stderr, "--doors") {
		t.Errorf("3 doors: status %d, %q", status, stderr)
	}
}

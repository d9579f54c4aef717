package main

import (
	"strings"
	"testing"
)

func TestReconcileCommand(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	reconcile := func(want int, last string, args ...string) string {
		t.Helper()
		status, stdout, stderr := command(t, append([]string{"reconcile", "--database-dsn=" + in.dsn}, args...)...)
		if status != want || !strings.HasSuffix(strings.TrimSpace(stdout), last) {
			t.Errorf("reconcile %v: status %d, %q %q; want %d and %q", args, status, stdout, stderr, want, last)
		}
		return stdout
	}
	reconcile(0, "0 promotions, 0 differences, 0 repaired, 0 buckets behind")
	in.exec("INSERT INTO reserved_stock (device_id, product_id, reserved) VALUES (1001, 7, 2)")
	out := reconcile(1, "1 differences, 0 repaired, 0 buckets behind")
	if !strings.Contains(out, "reserved_drift reserved_stock device=1001 product=7: 2, but 0 due\n") {
		t.Errorf("%q doesn't name the difference", out)
	}
	if out = reconcile(0, "1 differences, 1 repaired, 0 buckets behind", "--repair"); !strings.Contains(out, "0 due (repaired)\n") {
		t.Errorf("%q doesn't tell of the repair", out)
	}
	reconcile(0, "0 differences, 0 repaired, 0 buckets behind")
}

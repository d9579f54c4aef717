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

// Counters that nobody could read are no counters that are right.
func TestReconcileAndAuditWithoutTheirRedis(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	in.exec(`INSERT INTO promotions (promotion_id, name, product_id, price_minor, quota, per_user, needs_claim, site, starts_at, ends_at,
		claim_ttl_s, way, state, created_at, updated_at) VALUES (301, 'Rush', 1, 50, 5, 1, TRUE, '', NOW(3), NOW(3) + INTERVAL 1 DAY, 900, 'redis',
		'live', NOW(3), NOW(3))`)
	in.exec("INSERT INTO promotion_quota (promotion_id, quota, taken) VALUES (301, 5, 0)")
	in.exec("INSERT INTO promotion_epochs (promotion_id, epoch, state, buckets, created_at) VALUES (301, 1, 'open', 1, NOW(3))")
	in.exec("INSERT INTO promotion_buckets (promotion_id, epoch, bucket, granted, revoked, written) VALUES (301, 1, 0, 0, 0, 0)")
	for _, c := range []struct{ command, flag, says string }{
		{"reconcile", "--redis-url", "1 buckets of counters were not compared"},
		{"audit", "--redis-url", "check DOORTAB_REDIS_URL"},
		{"audit", "--claims-redis-url", "check DOORTAB_REDIS_URL"},
	} {
		status, stdout, stderr := command(t, c.command, "--database-dsn="+in.dsn, c.flag+"=redis://127.0.0.1:1/0")
		if status != 1 || !strings.Contains(stderr, c.says) {
			t.Errorf("%s %s: status %d, %s%s", c.command, c.flag, status, stdout, stderr)
		}
	}
}

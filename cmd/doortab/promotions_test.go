package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestPromotionCommands(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	promotion := func(want int, says string, args ...string) string {
		t.Helper()
		status, stdout, stderr := command(t, append(append([]string{"promotion"}, args...), "--database-dsn="+in.dsn)...)
		if status != want || !strings.Contains(stdout+stderr, says) {
			t.Errorf("promotion %v: status %d, %s%s; want %d and %q", args, status, stdout, stderr, want, says)
		}
		return stdout
	}
	create := []string{"create", "Rush", "--product=1", "--price=50", "--quota=5", "--starts-at=2026-12-24", "--ends-at=2026-12-26T08:00:00+08:00"}
	var made struct{ PromotionID string }
	out := promotion(0, `"state":"draft"`, create...)
	if err := json.Unmarshal([]byte(out), &made); err != nil || !strings.Contains(out, `"endsAt":"2026-12-26T00:00:00Z"`) ||
		!strings.Contains(out, `"createdAt":"20`) {
		t.Fatalf("%q: %v", out, err)
	}
	for _, c := range []struct {
		change string
		status int
		says   string
	}{
		{"--claim-ttl=1.5s", 1, "--claim-ttl 1.5s: give whole seconds"},
		{"--ends-at=2026-12-23", 1, "the end after the start"},
		{"--product=99", 1, "product 99 is not in the catalogue: add it first"},
		{"--quota=0", 2, "--quota (or DOORTAB_QUOTA): 0 is out of range, give 1 to "},
	} {
		promotion(c.status, c.says, append(slices.Clone(create), c.change)...)
	}
	id := made.PromotionID
	promotion(1, "promotion "+id+" is draft and can't become paused: give warming or live or ended", "transition", id, "paused")
	promotion(0, `"state":"live"`, "transition", id, "live")
	promotion(0, id+"  live     0 of 5 taken  product 1 for 50  2026-12-24T00:00:00Z to 2026-12-26T00:00:00Z  Rush\n", "list")
	promotion(0, "", "list", "--state=draft")
	promotion(0, `"state":"ended"`, "transition", id, "ended")
	promotion(1, "is ended and can't become live: draft another one", "transition", id, "live")
	promotion(0, `"left":5`, "show", id)
	promotion(1, "doortab promotion list", "show", "Rush")
	if n := in.count("SELECT COUNT(*) FROM audit_log WHERE actor = 'command' AND action LIKE 'promotion.%'"); n != 3 {
		t.Errorf("%d lines in the audit log, want one for each change", n)
	}
}

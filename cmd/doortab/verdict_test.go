package main

import (
	"testing"

	"doortab/audit"
	"doortab/simulator"
)

func TestViolationsInTheVerdict(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name                 string
		check                audit.Check
		lost, doubled, drift int64
	}{
		{"no outcome's rows", audit.Check{Name: "I1", Total: 2}, 2, 0, 0},
		{"a second order among them", audit.Check{Name: "I1", Total: 2, Doubled: 1}, 1, 1, 0},
		{"a stock row", audit.Check{Name: "I2", Total: 1}, 0, 0, 1},
		{"a sum", audit.Check{Name: "I3", Total: 1}, 0, 1, 0},
		{"an orphan, and a sale without its settlement", audit.Check{Name: "I4", Total: 2, Lost: 1}, 1, 0, 1},
		{"a receipt", audit.Check{Name: "I5", Total: 1}, 1, 0, 0},
		{"a counter", audit.Check{Name: "I6", Total: 1}, 0, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := withAudit(simulator.Result{}, audit.Report{Checks: []audit.Check{c.check}})
			if r.Lost != c.lost || r.Doubled != c.doubled || r.Drift != c.drift {
				t.Errorf("lost %d doubled %d drift %d, want %d %d %d", r.Lost, r.Doubled, r.Drift, c.lost, c.doubled, c.drift)
			}
		})
	}
}

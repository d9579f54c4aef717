package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"dev --rate=NaN", "dev --rate=-1", "dev --rate=0", "dev --rate=Inf", "dev --rate=-Inf", "dev --rate=1e-300", "dev --rate=100001",
		"dev --cabinets=0", "dev --cabinets=-1", "dev --duration=-5s", "dev --faults=11",
		"simulate --token=t --rate=NaN", "simulate --token=t --resend=0s", "simulate --token=t --resend=-1s", "simulate --token=t --cabinets=0",
		"simulate --token=t --miscount=1.5", "dev --miscount=NaN",
		"serve --workers=-1", "serve --workers=1001", "serve --max-group=0", "serve --database-pool=0", "serve --database-pool=-3",
		"mosquitto passwords --file=f --every=-1s", "cabinet send --secret=s 1 {} --wait=-1s",
		"dead-letters list --limit=0", "evidence --doors=3",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			args := strings.Fields(line)
			status := run(t.Context(), args, &stdout, &stderr)
			flag, _, _ := strings.Cut(args[len(args)-1], "=")
			if status != 2 || !strings.Contains(stderr.String(), flag) || !strings.Contains(stderr.String(), "give ") {
				t.Errorf("status %d, %q; want 2 and what to give for %s", status, stderr.String(), flag)
			}
		})
	}
}

// A number without a range is one that somebody will give as -1.
func TestEveryNumericFlagHasARange(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commandLine{}, kong.DefaultEnvars("DOORTAB"), kong.Bind(&console{}))
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			if _, numeric := number(flag.Target); numeric {
				flags++
				for _, tag := range []string{"min", "max"} {
					if _, err := limit(flag.Value, tag); err != nil {
						t.Errorf("--%s: give it tags min and max: %v", flag.Name, err)
					}
				}
			}
		}
		return next(nil)
	})
	if err != nil || flags < 10 {
		t.Errorf("%d numeric flags seen, error %v", flags, err)
	}
}

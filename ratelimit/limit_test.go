package ratelimit

import (
	"errors"
	"testing"
	"time"
)

func TestALimitIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Limit{
		"10/s:100":         {10, 100, time.Second},
		"300/m":            {300, 300, time.Minute},
		"5/h:1":            {5, 1, time.Hour},
		"1000000/s:1":      {1_000_000, 1, time.Second},
		"0":                {},
		"":                 {},
		"10":               {},
		"10/":              {},
		"10/d:5":           {},
		"0/s:5":            {},
		"-1/s:5":           {},
		"1/s:0":            {},
		"1.5/s:5":          {},
		"1/s:5:5":          {},
		"1000001/s:5":      {},
		"1/s:10000000":     {},
		"10/s :100":        {},
		"99999999999999/s": {},
	} {
		var got Limit
		err := got.UnmarshalText([]byte(text))
		switch wrong := want == (Limit{}) && text != "0"; {
		case wrong != errors.Is(err, errLimit):
			t.Errorf("%q: %v", text, err)
		case got != want:
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
		if err == nil {
			var again Limit
			if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
				t.Errorf("%q is written as %q, which is %+v: %v", text, got, again, err)
			}
		}
	}
}

func TestABurstTakesItsTimeToComeBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit Limit
		full  time.Duration
	}{
		{Limit{10, 100, time.Second}, 10 * time.Second},
		{Limit{1, 5, time.Hour}, 5 * time.Hour},
		{Limit{1_000_000, 1_000_000, time.Second}, time.Second},
	} {
		if got := c.limit.full(); got != c.full {
			t.Errorf("%s comes back in %s, want %s", c.limit, got, c.full)
		}
	}
}

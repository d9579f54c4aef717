package main

import (
	"strings"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"yesterday", "2026-02-30", "2026-01-31 10:00", ""} {
		var m moment
		if err := m.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "give a day such as") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]time.Time{
		"2026-01-31":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		"2026-01-31T06:00:00+08:00": time.Date(2026, 1, 30, 22, 0, 0, 0, time.UTC),
	} {
		var m moment
		if err := m.UnmarshalText([]byte(text)); err != nil || !m.at.Equal(want) {
			t.Errorf("%q: %v, %v", text, m.at, err)
		}
	}
}

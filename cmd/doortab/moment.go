package main

import (
	"fmt"
	"time"
)

// moment is a flag's day, which begins at midnight UTC, or its moment of RFC 3339.
type moment struct{ at time.Time }

// UnmarshalText reads a day or a moment.
func (m *moment) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, string(text)); err == nil {
			m.at = at
			return nil
		}
	}
	return fmt.Errorf("%q: give a day such as 2026-01-31 (UTC), or a moment such as 2026-01-31T06:00:00+08:00", text)
}

package cabinet

import "time"

// How far a device's clock may be from the server's before clock_skew is noted, section 4 of the design.
const (
	MaxAhead  = 10 * time.Minute
	MaxBehind = 30 * 24 * time.Hour
)

// Skewed reports whether the device's claim is too far from the server's clock: more than MaxAhead ahead of it or
// MaxBehind behind it. It marks an event and never decides one (R14).
func Skewed(closedAt, receivedAt time.Time) bool {
	return closedAt.After(receivedAt.Add(MaxAhead)) || closedAt.Before(receivedAt.Add(-MaxBehind))
}

package database

import (
	"math/rand/v2"
	"time"
)

const (
	randomBits = 22
	maxMillis  = 1<<41 - 1
)

// NewID mints a positive, time-ordered 63-bit number without coordination: 41 bits of Unix
// milliseconds, 22 random ones. Two may collide: the primary key decides, and the transaction
// runs again with another.
func NewID(now time.Time) int64 {
	random := rand.Int64N(1 << randomBits) //nolint:gosec // unique, not secret
	return now.UnixMilli()&maxMillis<<randomBits | random
}

// FirstID is the least number that [NewID] can mint at a time or later.
func FirstID(at time.Time) int64 { return min(max(at.UnixMilli(), 0), maxMillis) << randomBits }

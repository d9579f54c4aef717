package database

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	lowBits   = 22
	maxMillis = 1<<41 - 1
)

// minted counts up from a random number, so that no two ids of a process are equal, and those of two processes seldom are.
var minted atomic.Uint64

func init() { minted.Store(rand.Uint64()) } //nolint:gosec // unique, not secret

// NewID mints a positive, time-ordered 63-bit number without coordination: 41 bits of Unix
// milliseconds, 22 that differ for all that one process mints in a millisecond. Those of two processes may
// collide: the primary key decides, and the transaction runs again with another.
func NewID(now time.Time) int64 {
	low := int64(minted.Add(1) % (1 << lowBits))
	return now.UnixMilli()&maxMillis<<lowBits | low
}

// FirstID is the least number that [NewID] can mint at a time or later.
func FirstID(at time.Time) int64 { return min(max(at.UnixMilli(), 0), maxMillis) << lowBits }

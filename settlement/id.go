package settlement

import (
	"math/rand/v2"
	"strconv"
	"time"
)

const randomBits = 22

// NewID mints a positive, time-ordered 63-bit number without coordination: 41 bits of Unix
// milliseconds, 22 random ones. Two may collide: the primary key decides, and the transaction
// runs again with another.
func NewID(now time.Time) int64 {
	random := rand.Int64N(1 << randomBits) //nolint:gosec // unique, not secret
	return now.UnixMilli()&(1<<41-1)<<randomBits | random
}

// FormatID writes an id as REST and receipts show it.
func FormatID(id int64) string { return strconv.FormatInt(id, 10) }

// ParseID reads what [FormatID] wrote.
func ParseID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0 && FormatID(id) == text
}

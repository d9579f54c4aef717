package database

// OptimisticAttempts is how many transactions read rows plainly and write with what they read as the condition, before one
// locks them first (R5).
const OptimisticAttempts = 3

// Locking says how a transaction reads the rows that it will write.
type Locking int

const (
	// Optimistic reads plainly; the write notices another writer by its condition.
	Optimistic Locking = iota
	// ForUpdate locks each row as it is read, waiting for whoever holds it.
	ForUpdate
	// NoWait locks each row, and fails at once where somebody holds it.
	NoWait
)

// LockingFor is the way that R5 prescribes for an attempt, counted from 1.
func LockingFor(attempt int) Locking {
	if attempt > OptimisticAttempts {
		return ForUpdate
	}
	return Optimistic
}

// Clause is what ends a SELECT that reads in this way.
func (l Locking) Clause() string {
	return [...]string{Optimistic: "", ForUpdate: " FOR UPDATE", NoWait: " FOR UPDATE NOWAIT"}[l]
}

package main

import (
	"fmt"
	"time"

	"doortab/archive"
)

// leastKept is how short a time may be that rows are kept for: less is a slip, such as a number of days without its unit.
const leastKept = 24 * time.Hour

// retentionFlags say how long serve keeps what the books don't need.
type retentionFlags struct {
	KeepIdempotencyKeys time.Duration `default:"72h" min:"72h" max:"87600h" help:"How long a repeat of a request gets its first answer."`
	KeepDoorSessions    time.Duration `default:"2160h" min:"0s" max:"876000h" help:"How long door sessions are kept after their end; 0 for ever."`
	KeepReservations    time.Duration `default:"2160h" min:"0s" max:"876000h" help:"How long reservations are kept after their end; 0 for ever."`
	KeepDeadLetters     time.Duration `default:"0s" min:"0s" max:"876000h" help:"How long dead letters are kept after their last copy; 0 for ever."`
}

func (f retentionFlags) retention() archive.Retention {
	return archive.Retention{
		IdempotencyKeys: f.KeepIdempotencyKeys, DoorSessions: f.KeepDoorSessions, Reservations: f.KeepReservations,
		DeadLetters: f.KeepDeadLetters,
	}
}

func (f retentionFlags) checkRetention() error {
	for flag, keep := range map[string]time.Duration{
		"--keep-door-sessions": f.KeepDoorSessions, "--keep-reservations": f.KeepReservations, "--keep-dead-letters": f.KeepDeadLetters,
	} {
		if keep > 0 && keep < leastKept {
			return fmt.Errorf("%s %s: give at least %s, or 0 to keep them for ever", flag, keep, leastKept)
		}
	}
	return nil
}

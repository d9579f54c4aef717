package settlement

import (
	"context"
	"errors"
	"strconv"

	"doortab/database"
)

const (
	// turnsAfterConflict is how many groups take turns after one that another process got in the way of.
	turnsAfterConflict = 1000
	// turnClasses is how many parts the cabinets have that take turns apart: a multiple of the usual numbers of workers, each
	// of which has cabinets of its own.
	turnClasses = 60
)

// errKnown tells that an event of the group is settled already.
var errKnown = errors.New("event is settled already")

// noteConflict makes the next groups take turns. Two processes that get events of the same cabinets would else write the
// same rows at the same time, and each group of one would undo a group of the other.
func (s *Service) noteConflict(err error) {
	if errors.Is(err, database.ErrConflict) && !errors.Is(err, errKnown) {
		s.takeTurns.restart(turnsAfterConflict)
	}
}

// Turn is the time in which no other process settles events of some cabinets.
type Turn struct {
	free    bool // nobody takes turns
	classes [turnClasses]bool
	leave   func() // nil: there is none to be left
}

// Turn waits for the turn of these cabinets, no more than about a second; where no other process is in the way, it doesn't wait at
// all. What waits is best cut into a group afterwards: more has come by then.
func (s *Service) Turn(ctx context.Context, deviceIDs []int64) *Turn {
	if !s.takeTurns.next() {
		return &Turn{free: true}
	}
	t := &Turn{}
	for _, id := range deviceIDs {
		t.classes[turnClass(id)] = true
	}
	var names []string
	for class, taken := range t.classes {
		if taken {
			names = append(names, strconv.Itoa(class))
		}
	}
	t.leave = s.db.Turn(ctx, names)
	return t
}

// Covers tells whether the turn is this cabinet's too.
func (t *Turn) Covers(deviceID int64) bool { return t.free || t.classes[turnClass(deviceID)] }

// Leave ends the turn, if it has not ended yet.
func (t *Turn) Leave() {
	if t.leave != nil {
		t.leave()
		t.leave = nil
	}
}

func turnClass(deviceID int64) int { return int(uint64(deviceID) % turnClasses) } //nolint:gosec // any spread will do

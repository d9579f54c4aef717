package settlement

import (
	"errors"
	"strconv"

	"doortab/database"
)

const (
	// turnsAfterConflict is how many groups take turns after one that another process got in the way of.
	turnsAfterConflict = 1000
	// turnClasses is how many parts the cabinets have that take turns apart: a multiple of the usual numbers of workers, each
	// of which has cabinets of its own.
	turnClasses = 16
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

// turns names the parts that a group's cabinets belong to, ascending; none where nobody is in the way.
func (s *Service) turns(items []*item) (names []string) {
	if !s.takeTurns.next() {
		return nil
	}
	var classes []int64
	for _, it := range items {
		if it.event != nil {
			classes = append(classes, it.key.deviceID%turnClasses)
		}
	}
	for _, class := range distinct(classes) {
		names = append(names, strconv.FormatInt(class, 10))
	}
	return names
}

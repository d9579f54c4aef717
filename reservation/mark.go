package reservation

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// markStep is what the mark is rounded up to, so that it is seldom written.
const markStep = 10 * time.Minute

// afterMark is how long after the mark a reservation may still be held that nobody has swept.
const afterMark = 10 * time.Minute

// raiseMark notes in marks until when a reservation may be held, in Unix milliseconds. It never falls.
func raiseMark(tx *gorm.DB, until time.Time) error {
	mark := until.Add(markStep - 1).Truncate(markStep).UnixMilli()
	var known []int64
	if err := tx.Raw("SELECT version FROM marks WHERE name = 'reservations'").Scan(&known).Error; err != nil {
		return fmt.Errorf("read mark 'reservations': %w", err)
	}
	if len(known) == 1 && known[0] >= mark {
		return nil
	}
	err := tx.Exec(`INSERT INTO marks (name, version) VALUES ('reservations', ?)
		ON DUPLICATE KEY UPDATE version = GREATEST(version, VALUES(version))`, mark).Error
	if err != nil {
		return fmt.Errorf("raise mark 'reservations': %w", err)
	}
	return nil
}

// Possible tells from the mark 'reservations' whether anything can be reserved at a time: where not, nobody need look.
func Possible(mark int64, now time.Time) bool { return now.Add(-afterMark).UnixMilli() < mark }

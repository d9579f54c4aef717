package fleet

import (
	"fmt"

	"gorm.io/gorm"

	"doortab/database"
)

// Sequence is how far a cabinet's events have come. The first controller's epoch is 0.
type Sequence struct {
	Epoch   int    `json:"epoch"`
	LastSeq *int64 `json:"lastSeq"` // nil: no event with a seq yet
}

// ReplaceController starts a new sequence of events for a cabinet (R13), and returns the old one and the new. A sequence
// in which nothing has come yet is as good as new and stays: so a call that is repeated does no harm. It returns
// [ErrNotFound].
func ReplaceController(tx *gorm.DB, deviceID int64) (before, after Sequence, err error) {
	if err := Exists(tx, deviceID); err != nil {
		return before, after, err
	}
	var rows []Sequence
	err = tx.Raw("SELECT epoch, last_seq FROM cabinet_sequences WHERE device_id = ? FOR UPDATE", deviceID).Scan(&rows).Error
	switch {
	case err != nil:
	case len(rows) == 0:
		after.Epoch = 1
		err = database.Insert(tx, "cabinet_sequences", []string{"device_id", "epoch", "last_seq"},
			[][]any{{deviceID, after.Epoch, nil}}, "")
		if database.IsDuplicate(err) { // an event has made the row meanwhile
			err = database.ErrConflict
		}
	case rows[0].LastSeq == nil && rows[0].Epoch > 0:
		before, after = rows[0], rows[0]
	default:
		before, after.Epoch = rows[0], rows[0].Epoch+1
		err = tx.Exec("UPDATE cabinet_sequences SET epoch = ?, last_seq = NULL WHERE device_id = ?", after.Epoch, deviceID).Error
	}
	if err != nil {
		return before, after, fmt.Errorf("new sequence of cabinet %d: %w", deviceID, err)
	}
	return before, after, nil
}

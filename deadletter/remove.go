package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Discard removes a letter for good, or returns [ErrNotFound].
func Discard(ctx context.Context, db *database.DB, id int64) error {
	return db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		err := remove(tx, id, "dead_letter.discard", nil, database.Now())
		if attempt > 1 && errors.Is(err, ErrNotFound) { // it may be our own doing
			return nil
		}
		return err
	})
}

// Retried removes a letter that has an outcome now, which the audit log keeps. It returns [ErrNotFound] where somebody else
// was quicker.
func Retried(tx *gorm.DB, id int64, outcome any, now time.Time) error {
	return remove(tx, id, "dead_letter.retry", outcome, now)
}

// logged is what the audit log keeps of a letter: the payload may be large, and its digest says which it was.
type logged struct {
	Topic      string    `json:"topic"`
	Reason     string    `json:"reason"`
	Detail     string    `json:"detail"`
	Size       int64     `json:"size"`
	Digest     string    `json:"digest"`
	Copies     int64     `json:"copies"`
	ReceivedAt time.Time `json:"receivedAt"`
}

func remove(tx *gorm.DB, id int64, action string, after any, now time.Time) error {
	var found []logged
	err := tx.Raw(`SELECT topic, reason, detail, size, LOWER(HEX(digest)) AS digest, copies, received_at
		FROM dead_letters WHERE dead_letter_id = ? FOR UPDATE`, id).Scan(&found).Error
	if err != nil {
		return fmt.Errorf("read dead letter %d: %w", id, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("dead letter %d: %w", id, ErrNotFound)
	}
	if err := tx.Exec("DELETE FROM dead_letters WHERE dead_letter_id = ?", id).Error; err != nil {
		return fmt.Errorf("remove dead letter %d: %w", id, err)
	}
	return auditlog.Write(tx, auditlog.Entry{
		Action: action, Target: fmt.Sprintf("dead letter %d", id), Before: found[0], After: after,
	}, now)
}

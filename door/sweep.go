package door

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

const (
	sweepEvery = 3 * time.Second
	sweepRows  = 500 // the most that one statement looks at of each state
)

// expire ends sessions whose time is over. What has changed meanwhile is left alone.
func expire(tx *gorm.DB, sessionIDs []string, now time.Time) (int64, error) {
	if len(sessionIDs) == 0 {
		return 0, nil
	}
	result := tx.Exec(`UPDATE door_sessions `+ending+`
		WHERE session_id IN ? AND state IN ? AND expires_at <= ?`, Expired, now, sessionIDs, []State{Opening, Open}, now)
	if result.Error != nil {
		return 0, fmt.Errorf("expire door sessions: %w", result.Error)
	}
	return result.RowsAffected, nil
}

// End ends one session whose time is over, and returns the zero time; also for one that has ended before. Where it has time
// left, it returns when that ends.
func End(ctx context.Context, db *database.DB, sessionID string) (due time.Time, err error) {
	now := database.Now()
	var list []Session
	if err := db.Read(ctx).Raw("SELECT "+columns+" FROM door_sessions WHERE session_id = ?", sessionID).Scan(&list).Error; err != nil {
		return time.Time{}, fmt.Errorf("read door session %s: %w", sessionID, err)
	}
	switch {
	case len(list) == 0 || !list[0].pending():
		return time.Time{}, nil
	case !list[0].overdue(now):
		return list[0].ExpiresAt, nil
	}
	err = db.InTx(ctx, func(tx *gorm.DB) error {
		_, err := expire(tx, []string{sessionID}, now)
		return err
	})
	return time.Time{}, err
}

// Sweep expires what is overdue, a bounded number at a time, and returns how many. It looks without locks and changes each
// by its primary key in ascending order, as every writer here does.
func Sweep(ctx context.Context, db *database.DB) (swept int64, err error) {
	for {
		looked, ended, err := sweepSome(ctx, db, database.Now())
		swept += ended
		if err != nil || looked < sweepRows {
			return swept, err
		}
	}
}

func sweepSome(ctx context.Context, db *database.DB, now time.Time) (looked int, ended int64, err error) {
	var ids []string
	err = db.Read(ctx).Raw(`(SELECT session_id FROM door_sessions WHERE state = ? AND expires_at <= ? LIMIT ?)
		UNION ALL (SELECT session_id FROM door_sessions WHERE state = ? AND expires_at <= ? LIMIT ?)`,
		Opening, now, sweepRows, Open, now, sweepRows).Scan(&ids).Error
	if err != nil {
		return 0, 0, fmt.Errorf("find overdue door sessions: %w", err)
	}
	slices.Sort(ids)
	err = db.InTx(ctx, func(tx *gorm.DB) (err error) {
		ended, err = expire(tx, ids, now)
		return err
	})
	return len(ids), ended, err
}

// Withdraw ends a session at once whose unlock could not be sent.
func Withdraw(ctx context.Context, db *database.DB, sessionID string) error {
	now := database.Now()
	err := db.InTx(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE door_sessions `+ending+`
			WHERE session_id = ? AND state = ?`, Expired, now, sessionID, Opening).Error
	})
	if err != nil {
		return fmt.Errorf("withdraw door session %s: %w", sessionID, err)
	}
	return nil
}

// KeepSwept sweeps every few seconds until ctx ends.
func KeepSwept(ctx context.Context, db *database.DB, log *slog.Logger) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch swept, err := Sweep(ctx, db); {
		case err != nil && ctx.Err() == nil:
			log.Warn("Overdue door sessions can't be ended; the next sweep tries again.", "error", err)
		case swept > 0:
			log.Info("Door sessions expired.", "count", swept)
		}
	}
}

package reservation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

const (
	sweepEvery = 3 * time.Second
	sweepRows  = 100 // ended in one transaction
)

// Sweep ends what is overdue, a bounded number at a time, and returns how many that were.
func Sweep(ctx context.Context, db *database.DB) (swept int64, err error) {
	for {
		looked, ended, err := sweepSome(ctx, db, database.Now())
		swept += ended
		if err != nil || looked < sweepRows {
			return swept, err
		}
	}
}

// sweepSome looks without locks; whoever changed a reservation meanwhile has won.
func sweepSome(ctx context.Context, db *database.DB, now time.Time) (looked int, ended int64, err error) {
	var overdue []Key
	err = db.Read(ctx).Raw(`SELECT device_id, reservation_id FROM reservations WHERE state = ? AND until_at <= ?
		ORDER BY until_at LIMIT ?`, Held, now, sweepRows).Scan(&overdue).Error
	if err != nil {
		return 0, 0, fmt.Errorf("find overdue reservations: %w", err)
	}
	if len(overdue) == 0 {
		return 0, 0, nil
	}
	err = db.InTx(ctx, func(tx *gorm.DB) (err error) {
		ended, err = end(tx, overdue, Expired, now)
		return err
	})
	return len(overdue), ended, err
}

// KeepSwept sweeps every few seconds until ctx ends. Any number of processes may.
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
			log.Warn("Overdue reservations can't be ended; the next sweep tries again.", "error", err)
		case swept > 0:
			log.Info("Reservations expired.", "count", swept)
		}
	}
}

// End ends one reservation whose time is over, and returns the zero time; also for one that is over already. Where it has time
// left, it returns when that ends.
func End(ctx context.Context, db *database.DB, reservationID int64) (due time.Time, err error) {
	now := database.Now()
	r, err := find(db.Read(ctx), reservationID, "")
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && r.State != Held:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case r.UntilAt.After(now):
		return r.UntilAt, nil
	}
	return time.Time{}, db.InTx(ctx, func(tx *gorm.DB) error {
		_, err := end(tx, []Key{{r.DeviceID, reservationID}}, Expired, now)
		return err
	})
}

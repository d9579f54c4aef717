package archive

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// removeReservations goes by the end that a reservation was made with. One that is over never changes again.
func removeReservations(ctx context.Context, db *database.DB, before time.Time) (looked int, removed int64, err error) {
	for _, state := range []string{"used", "returned", "expired"} {
		var old []struct{ DeviceID, ReservationID int64 }
		err := db.Read(ctx).Raw(`SELECT device_id, reservation_id FROM reservations WHERE state = ? AND until_at < ?
			ORDER BY until_at LIMIT ?`, state, before, sweepRows).Scan(&old).Error
		if err != nil {
			return looked, removed, fmt.Errorf("find old reservations: %w", err)
		}
		if len(old) == 0 {
			continue
		}
		keys := make([][]any, len(old))
		for i, r := range old {
			keys[i] = []any{r.DeviceID, r.ReservationID}
		}
		n, err := removeWithLines(ctx, db, keys)
		looked, removed = max(looked, len(old)), removed+n
		if err != nil {
			return looked, removed, err
		}
	}
	return looked, removed, nil
}

func removeWithLines(ctx context.Context, db *database.DB, keys [][]any) (removed int64, err error) {
	return inTx(ctx, db, func(tx *gorm.DB) (int64, error) {
		const of = "(device_id, reservation_id) IN ?"
		removed, err := deleteRows(tx, "reservations", of, keys)
		if err != nil {
			return 0, err
		}
		_, err = deleteRows(tx, "reservation_lines", of, keys)
		return removed, err
	})
}

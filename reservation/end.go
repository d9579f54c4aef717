package reservation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Return gives back what is left of a reservation of an app's, or of anybody's where app is "". A second time it changes
// nothing. It returns [ErrNotFound], and [ErrOver] where it is used or has expired.
func Return(tx *gorm.DB, reservationID int64, app string, now time.Time) error {
	r, err := find(tx, reservationID, app)
	if err != nil {
		return err
	}
	switch state := stateAt(r.State, r.UntilAt, now); state {
	case Held:
	case Returned:
		return nil
	default:
		return fmt.Errorf("reservation %d is %s: %w", reservationID, state, ErrOver)
	}
	ended, err := end(tx, []Key{{r.DeviceID, reservationID}}, Returned, now)
	if err != nil {
		return err
	}
	if ended != 1 {
		return fmt.Errorf("return reservation %d: %w", reservationID, database.ErrConflict)
	}
	return auditlog.Write(tx, auditlog.Entry{
		Action: "reservation.return", Target: Reservation{ReservationID: reservationID}.target(),
		Before: map[string]any{"state": Held}, After: map[string]any{"state": Returned},
	}, now)
}

// end gives back what is left of each reservation that is still held, and returns how many those were. The locks on the
// reservations keep pick-ups away from their lines.
func end(tx *gorm.DB, keys []Key, to State, now time.Time) (ended int64, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	slices.SortFunc(keys, compareKeys)
	var held []Key
	err = tx.Raw(`SELECT device_id, reservation_id FROM reservations FORCE INDEX (PRIMARY)
		WHERE (device_id, reservation_id) IN ? AND state = ? ORDER BY device_id, reservation_id FOR UPDATE`,
		pairs(keys), Held).Scan(&held).Error
	if err != nil {
		return 0, fmt.Errorf("lock reservations: %w", err)
	}
	if len(held) == 0 {
		return 0, nil
	}
	result := tx.Exec(`UPDATE reservations FORCE INDEX (PRIMARY) SET state = ?, version = version + 1, updated_at = ?
		WHERE (device_id, reservation_id) IN ? AND state = ?`, to, now, pairs(held), Held)
	if result.Error != nil {
		return 0, fmt.Errorf("end reservations: %w", result.Error)
	}
	if result.RowsAffected != int64(len(held)) {
		return 0, fmt.Errorf("end reservations: %d of %d rows: %w", result.RowsAffected, len(held), database.ErrConflict)
	}
	left, err := leftOf(tx, held)
	if err != nil {
		return 0, err
	}
	return int64(len(held)), lower(tx, left)
}

func leftOf(tx *gorm.DB, keys []Key) (map[Goods]int64, error) {
	var rows []struct{ DeviceID, ProductID, Units int64 }
	err := tx.Raw(`SELECT device_id, product_id, SUM(left_quantity) AS units FROM reservation_lines FORCE INDEX (PRIMARY)
		WHERE (device_id, reservation_id) IN ? AND left_quantity > 0 GROUP BY device_id, product_id`, pairs(keys)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read lines of reservations: %w", err)
	}
	left := make(map[Goods]int64, len(rows))
	for _, row := range rows {
		left[Goods{row.DeviceID, row.ProductID}] = row.Units
	}
	return left, nil
}

// readReserved reads how much is reserved of goods, without locks. What has no row is missing.
func readReserved(tx *gorm.DB, goods [][]any) (map[Goods]int64, error) {
	found, err := database.ReadEach(tx, "reserved_stock", goodsKey[:2], []string{"device_id", "product_id", "reserved"}, goods)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	reserved := map[Goods]int64{}
	for found.Next() {
		var g Goods
		var units int64
		if err := found.Scan(&g.DeviceID, &g.ProductID, &units); err != nil {
			return nil, fmt.Errorf("read a row of reserved_stock: %w", err)
		}
		reserved[g] = units
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read reserved_stock: %w", err)
	}
	return reserved, nil
}

var goodsKey = []database.Column{database.Int("device_id"), database.Int("product_id"), database.Int("reserved")}

// lower takes units off what is reserved, but not below 0: rows that were wrong before must stop neither a sale nor a sweep, and
// the audit tells of them.
func lower(tx *gorm.DB, units map[Goods]int64) error {
	if len(units) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(maps.Keys(units), compareGoods)
	list := make([][]any, len(sorted))
	for i, g := range sorted {
		list[i] = []any{g.DeviceID, g.ProductID}
	}
	var rows []struct {
		Goods
		Reserved int64
	}
	err := tx.Raw(`SELECT device_id, product_id, reserved FROM reserved_stock FORCE INDEX (PRIMARY)
		WHERE (device_id, product_id) IN ? AND reserved > 0 ORDER BY device_id, product_id FOR UPDATE`, list).Scan(&rows).Error
	if err != nil {
		return fmt.Errorf("lock reserved_stock: %w", err)
	}
	changes := make([][]any, len(rows))
	for i, row := range rows {
		changes[i] = []any{row.DeviceID, row.ProductID, row.Reserved, max(row.Reserved-units[row.Goods], 0)}
	}
	return database.UpdateAll(tx, "reserved_stock", goodsKey, goodsKey[2:], changes)
}

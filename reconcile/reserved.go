package reconcile

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/reservation"
)

// heldRows are the units that held reservations have left.
const heldRows = `(SELECT l.device_id, l.product_id, l.left_quantity AS units FROM reservations r
	JOIN reservation_lines l ON l.device_id = r.device_id AND l.reservation_id = r.reservation_id
	WHERE r.state = 'held' AND l.left_quantity > 0)`

const readReserved = `SELECT device_id, product_id, CAST(SUM(reserved) AS SIGNED) AS counted, CAST(SUM(units) AS SIGNED) AS due
	FROM (SELECT device_id, product_id, reserved, 0 AS units FROM reserved_stock WHERE reserved > 0
		UNION ALL SELECT h.device_id, h.product_id, 0, h.units FROM ` + heldRows + ` h) b
	GROUP BY device_id, product_id HAVING SUM(reserved) <> SUM(units) ORDER BY device_id, product_id`

const readOverdueReservations = `SELECT r.device_id, r.reservation_id, CAST(COALESCE(SUM(l.left_quantity), 0) AS SIGNED) AS left_units
	FROM reservations r LEFT JOIN reservation_lines l ON l.device_id = r.device_id AND l.reservation_id = r.reservation_id
	WHERE r.state = 'held' AND r.until_at < ? GROUP BY r.device_id, r.reservation_id ORDER BY r.device_id, r.reservation_id`

// reservedDifferences compares what is reserved of goods with the reservations that are held.
func reservedDifferences(tx *gorm.DB, now time.Time) (list []Difference, err error) {
	var goods []struct{ DeviceID, ProductID, Counted, Due int64 }
	if err := tx.Raw(readReserved).Scan(&goods).Error; err != nil {
		return nil, fmt.Errorf("compare reserved_stock with reservations: %w", err)
	}
	for _, g := range goods {
		list = append(list, Difference{
			Cause: ReservedDrift, Target: fmt.Sprintf("reserved_stock device=%d product=%d", g.DeviceID, g.ProductID),
			Counted: g.Counted, Due: g.Due, key: key{deviceID: g.DeviceID, productID: g.ProductID},
		})
	}
	var held []struct{ DeviceID, ReservationID, LeftUnits int64 }
	if err := tx.Raw(readOverdueReservations, now.Add(-overdueFor)).Scan(&held).Error; err != nil {
		return nil, fmt.Errorf("find overdue reservations: %w", err)
	}
	for _, r := range held {
		list = append(list, Difference{
			Cause: OverdueReservation, Target: fmt.Sprintf("reservations device=%d reservation=%d", r.DeviceID, r.ReservationID),
			Counted: r.LeftUnits, key: key{deviceID: r.DeviceID, reservationID: r.ReservationID},
		})
	}
	return list, nil
}

// repairReserved mends each row in a transaction of its own, so that no cabinet waits for long.
func (s *Service) repairReserved(ctx context.Context, runID int64, found []Difference) error {
	for i, d := range found {
		if i == repairsAtOnce {
			break
		}
		mended := []Difference{d}
		if d.Cause == OverdueReservation { // as the sweep would have
			due, err := reservation.End(ctx, s.db, d.key.reservationID)
			if err != nil {
				return fmt.Errorf("repair %s: %w", d.Target, err)
			}
			if !due.IsZero() { // by this process's clock
				continue
			}
		}
		err := s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
			if d.Cause == ReservedDrift {
				mended, err = mendReserved(tx, d)
			}
			if err != nil {
				return err
			}
			return logRepairs(tx, runID, mended, database.Now())
		})
		if err != nil {
			return fmt.Errorf("repair %s: %w", d.Target, err)
		}
		mark(found, mended)
	}
	return nil
}

// mendReserved counts anew with the row held: whoever changes reservations of the goods changes that row too.
func mendReserved(tx *gorm.DB, d Difference) ([]Difference, error) {
	err := tx.Exec("INSERT INTO reserved_stock (device_id, product_id, reserved) VALUES (?, ?, 0) ON DUPLICATE KEY UPDATE device_id = device_id",
		d.key.deviceID, d.key.productID).Error
	if err != nil {
		return nil, fmt.Errorf("make the row: %w", err)
	}
	var reserved int64
	err = tx.Raw("SELECT reserved FROM reserved_stock WHERE device_id = ? AND product_id = ? FOR UPDATE", d.key.deviceID, d.key.productID).
		Scan(&reserved).Error
	if err != nil {
		return nil, fmt.Errorf("lock the row: %w", err)
	}
	var due int64
	err = tx.Raw("SELECT CAST(COALESCE(SUM(h.units), 0) AS SIGNED) FROM "+heldRows+" h WHERE h.device_id = ? AND h.product_id = ?",
		d.key.deviceID, d.key.productID).Scan(&due).Error
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	if reserved == due {
		return nil, nil // somebody has mended it
	}
	d.Counted, d.Due = reserved, due
	return []Difference{d}, changeOne(tx, d.Target, "UPDATE reserved_stock SET reserved = ? WHERE device_id = ? AND product_id = ?",
		due, d.key.deviceID, d.key.productID)
}

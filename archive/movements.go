package archive

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// movements moves the oldest movements of each stock row, cabinet by cabinet. The newest one before the date stays: it is the
// opening movement of those that are live, which go on from its balance. Movements never change and none is ever added
// between others, so no lock on the stock row is needed.
type movements struct {
	db     *database.DB
	before time.Time
	batch  int64
	device int64 // the cabinet whose cuts these are
	cuts   []cut // what is left to move of it
}

// cut is a run of versions of one stock row.
type cut struct {
	DeviceID, ProductID int64
	First               int64 // the oldest live one
	Opening             int64 // the first that stays
}

func (*movements) what() string { return "movements" }

func (m *movements) pending(ctx context.Context) (n int64, err error) {
	count := &movements{db: m.db, before: m.before}
	for more := true; more && err == nil; {
		more, err = count.nextCabinet(ctx)
		for _, c := range count.cuts {
			n += c.Opening - c.First
		}
	}
	return n, err
}

// nextCabinet finds the cuts of the next cabinet that has stock rows; more is false where there is none.
func (m *movements) nextCabinet(ctx context.Context) (more bool, err error) {
	m.cuts = nil
	var next []int64
	err = m.db.Read(ctx).Raw("SELECT device_id FROM device_stock WHERE device_id > ? ORDER BY device_id LIMIT 1", m.device).
		Scan(&next).Error
	if err != nil {
		return false, fmt.Errorf("find the cabinet after %d: %w", m.device, err)
	}
	if len(next) == 0 {
		return false, nil
	}
	m.device = next[0]
	err = m.db.Read(ctx).Raw(`SELECT o.device_id, o.product_id, o.opening, (
			SELECT m.version FROM stock_movements m WHERE m.device_id = o.device_id AND m.product_id = o.product_id
			ORDER BY m.version LIMIT 1) AS first
		FROM (SELECT device_id, product_id, MAX(version) AS opening FROM stock_movements
			WHERE device_id = ? AND created_at < ? GROUP BY device_id, product_id) o
		HAVING first < o.opening ORDER BY o.product_id`, m.device, m.before).Scan(&m.cuts).Error
	if err != nil {
		return false, fmt.Errorf("find old movements of cabinet %d: %w", m.device, err)
	}
	return true, nil
}

func (m *movements) step(ctx context.Context) (moved int64, more bool, err error) {
	for len(m.cuts) == 0 {
		if more, err = m.nextCabinet(ctx); err != nil || !more {
			return 0, false, err
		}
	}
	parts, rest := m.take()
	moved, err = inTx(ctx, m.db, func(tx *gorm.DB) (int64, error) { return putMovements(tx, parts) })
	if err == nil {
		m.cuts = rest
	}
	return moved, true, err
}

// take splits what is left of the cabinet into the runs of one step and the rest.
func (m *movements) take() (parts, rest []cut) {
	room := m.batch
	for i, c := range m.cuts {
		if room == 0 {
			return parts, m.cuts[i:]
		}
		part := c
		part.Opening = min(c.Opening, c.First+room)
		parts, room = append(parts, part), room-(part.Opening-part.First)
		if part.Opening < c.Opening {
			c.First = part.Opening
			return parts, append([]cut{c}, m.cuts[i+1:]...)
		}
	}
	return parts, nil
}

func putMovements(tx *gorm.DB, parts []cut) (moved int64, err error) {
	for _, c := range parts {
		n, err := movementTable.put(tx, "device_id = ? AND product_id = ? AND version >= ? AND version < ?",
			c.DeviceID, c.ProductID, c.First, c.Opening)
		if err != nil {
			return 0, err
		}
		moved += n
	}
	return moved, nil
}

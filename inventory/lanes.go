package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Limits of a planogram.
const (
	MaxLane     = 1<<31 - 1
	MaxLanes    = 1000 // of one cabinet
	MaxCapacity = 100_000
)

// Lane is one tray or hook of a cabinet and what it holds. As JSON it is what the planogram's history keeps.
type Lane struct {
	Lane      int64 `json:"lane"` // 1 to [MaxLane]
	ProductID int64 `json:"productId"`
	Capacity  int64 `json:"capacity"` // units that fit, 0 to [MaxCapacity]
	ParLevel  int64 `json:"parLevel"` // units below which it is to be filled, 0 to Capacity
}

// Validate returns [ErrInvalid] for numbers out of range.
func (l Lane) Validate() error {
	switch {
	case l.Lane < 1 || l.Lane > MaxLane:
		return fmt.Errorf("lane %w: give 1 to %d", ErrInvalid, int64(MaxLane))
	case l.ProductID < 1 || l.ProductID > MaxProductID:
		return fmt.Errorf("productId %w: give 1 to %d", ErrInvalid, int64(MaxProductID))
	case l.Capacity < 0 || l.Capacity > MaxCapacity:
		return fmt.Errorf("capacity of lane %d %w: give 0 to %d", l.Lane, ErrInvalid, MaxCapacity)
	case l.ParLevel < 0 || l.ParLevel > l.Capacity:
		return fmt.Errorf("parLevel of lane %d %w: give 0 to its capacity, %d", l.Lane, ErrInvalid, l.Capacity)
	}
	return nil
}

// ReadLanes reads a cabinet's planogram, ascending by lane.
func ReadLanes(tx *gorm.DB, deviceID int64) ([]Lane, error) {
	lanes := []Lane{}
	err := tx.Raw("SELECT lane, product_id, capacity, par_level FROM lanes WHERE device_id = ? ORDER BY lane", deviceID).Scan(&lanes).Error
	if err != nil {
		return nil, fmt.Errorf("read planogram of cabinet %d: %w", deviceID, err)
	}
	return lanes, nil
}

// ReplaceLanes makes lanes a cabinet's whole planogram, and returns them ascending by lane, and whether that changed it. A
// planogram that differs from the one before joins its history and the audit log. The caller holds the cabinet's row, so
// that no other change comes between. It fails with [ErrInvalid], or with [ErrUnknownProduct].
func ReplaceLanes(tx *gorm.DB, deviceID int64, lanes []Lane, now time.Time) (after []Lane, changed bool, err error) {
	lanes, err = checkLanes(tx, lanes)
	if err != nil {
		return nil, false, err
	}
	before, err := ReadLanes(tx, deviceID)
	if err != nil || slices.Equal(before, lanes) {
		return lanes, false, err
	}
	return lanes, true, writeLanes(tx, deviceID, before, lanes, now)
}

func writeLanes(tx *gorm.DB, deviceID int64, before, lanes []Lane, now time.Time) error {
	if err := tx.Exec("DELETE FROM lanes WHERE device_id = ?", deviceID).Error; err != nil {
		return fmt.Errorf("clear planogram of cabinet %d: %w", deviceID, err)
	}
	rows := make([][]any, len(lanes))
	for i, l := range lanes {
		rows[i] = []any{deviceID, l.Lane, l.ProductID, l.Capacity, l.ParLevel}
	}
	err := database.Insert(tx, "lanes", []string{"device_id", "lane", "product_id", "capacity", "par_level"}, rows, "")
	if err != nil {
		return err
	}
	if err := insertPlanogramHistory(tx, deviceID, lanes, now); err != nil {
		return err
	}
	err = auditlog.Write(tx, auditlog.Entry{
		Action: "planogram.put", Target: fmt.Sprintf("cabinet %d planogram", deviceID), Before: before, After: lanes,
	}, now)
	if err != nil {
		return err
	}
	return raise(tx)
}

// checkLanes returns the lanes in order.
func checkLanes(tx *gorm.DB, lanes []Lane) ([]Lane, error) {
	if len(lanes) > MaxLanes {
		return nil, fmt.Errorf("planogram %w: give up to %d lanes", ErrInvalid, MaxLanes)
	}
	keys := make([]Key, len(lanes))
	for i, l := range lanes {
		if err := l.Validate(); err != nil {
			return nil, err
		}
		keys[i].ProductID = l.ProductID
	}
	lanes = slices.SortedFunc(slices.Values(lanes), func(a, b Lane) int { return int(a.Lane - b.Lane) })
	for i := 1; i < len(lanes); i++ {
		if lanes[i].Lane == lanes[i-1].Lane {
			return nil, fmt.Errorf("lane %d %w: it is there twice", lanes[i].Lane, ErrInvalid)
		}
	}
	if len(lanes) == 0 {
		return []Lane{}, nil
	}
	return lanes, checkProducts(tx, keys)
}

func insertPlanogramHistory(tx *gorm.DB, deviceID int64, lanes []Lane, now time.Time) error {
	var last []time.Time
	err := tx.Raw("SELECT changed_at FROM planogram_history WHERE device_id = ? ORDER BY changed_at DESC LIMIT 1", deviceID).
		Scan(&last).Error
	if err != nil {
		return fmt.Errorf("read planogram history of cabinet %d: %w", deviceID, err)
	}
	if len(last) > 0 {
		now = after(now, last[0])
	}
	text, err := json.Marshal(lanes)
	if err != nil {
		return fmt.Errorf("planogram of cabinet %d as JSON: %w", deviceID, err)
	}
	return database.Insert(tx, "planogram_history", []string{"device_id", "changed_at", "lanes", "actor"},
		[][]any{{deviceID, now, text, auditlog.Actor(tx.Statement.Context)}}, "")
}

// CabinetLane is a lane and the cabinet that it belongs to.
type CabinetLane struct {
	DeviceID int64
	Lane     `gorm:"embedded"`
}

// AllLanes reads the planograms of the whole fleet, ascending by cabinet and lane.
func AllLanes(ctx context.Context, db *database.DB) ([]CabinetLane, error) {
	var lanes []CabinetLane
	err := db.Read(ctx).Raw("SELECT device_id, lane, product_id, capacity, par_level FROM lanes ORDER BY device_id, lane").Scan(&lanes).Error
	if err != nil {
		return nil, fmt.Errorf("read planograms: %w", err)
	}
	return lanes, nil
}

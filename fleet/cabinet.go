// Package fleet keeps the cabinets that Doortab answers for: who they are, the secret that each proves itself with,
// and whether it is online.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/cabinet"
	"doortab/database"
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound  = errors.New("no such cabinet")
	ErrDuplicate = errors.New("exists already")
	ErrInvalid   = errors.New("not valid")
	ErrOffline   = errors.New("is offline: it would not hear that it may open")
	ErrLocked    = errors.New("is locked: no door session may open it")
)

const maxName = 200 // characters, of names and sites

// Cabinet is one registered cabinet.
type Cabinet struct {
	DeviceID     int64
	Name         string // 1 to 200 characters of any script
	Site         string // up to 200 characters, "" for none
	Locked       bool   // no door session may open it; its close events settle all the same
	Online       bool
	LastSeenAt   *time.Time // nil: never
	TemperatureC *float64   // as it said last, to a hundredth; nil: never
	CreatedAt    time.Time
}

// Registry is the table of cabinets. It is safe for concurrent use.
type Registry struct{ db *database.DB }

// NewRegistry returns the registry that db holds.
func NewRegistry(db *database.DB) *Registry { return &Registry{db} }

const columns = "device_id, name, site, locked, online, last_seen_at, temperature_c, created_at"

// Register adds a cabinet, of which DeviceID, Name and Site are taken. It returns [ErrDuplicate] for a device that is
// there already and [ErrInvalid] for values out of range. The cabinet has no secret yet.
func (r *Registry) Register(ctx context.Context, c Cabinet) (Cabinet, error) {
	c = Cabinet{DeviceID: c.DeviceID, Name: c.Name, Site: c.Site, CreatedAt: database.Now()}
	if err := c.validate(); err != nil {
		return Cabinet{}, err
	}
	attempts := 0
	err := r.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		attempts = attempt
		err := database.Insert(tx, "cabinets", []string{"device_id", "name", "site", "created_at", "updated_at"},
			[][]any{{c.DeviceID, c.Name, c.Site, c.CreatedAt, c.CreatedAt}}, "")
		if err != nil {
			return err
		}
		return auditlog.Write(tx, auditlog.Entry{Action: "cabinet.create", Target: target(c.DeviceID), After: c.settings()}, c.CreatedAt)
	})
	switch {
	case err == nil:
		return c, nil
	case !database.IsDuplicate(err):
		return Cabinet{}, fmt.Errorf("register cabinet %d: %w", c.DeviceID, err)
	case attempts > 1 && r.holds(ctx, c): // the answer to our own COMMIT was lost
		return c, nil
	default:
		return Cabinet{}, fmt.Errorf("cabinet %d %w", c.DeviceID, ErrDuplicate)
	}
}

func (r *Registry) holds(ctx context.Context, c Cabinet) bool {
	stored, err := r.Cabinet(ctx, c.DeviceID)
	return err == nil && stored.Name == c.Name && stored.Site == c.Site && stored.CreatedAt.Equal(c.CreatedAt)
}

// Cabinet reads one cabinet, or returns [ErrNotFound].
func (r *Registry) Cabinet(ctx context.Context, deviceID int64) (Cabinet, error) {
	return one(r.db.Read(ctx), deviceID, "")
}

// List reads up to limit cabinets with device ids below before, the highest first; 0 means from the top.
func (r *Registry) List(ctx context.Context, before int64, limit int) ([]Cabinet, error) {
	if before <= 0 {
		before = cabinet.MaxID + 1
	}
	var list []Cabinet
	err := r.db.Read(ctx).Raw("SELECT "+columns+" FROM cabinets WHERE device_id < ? ORDER BY device_id DESC LIMIT ?",
		before, limit).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("list cabinets: %w", err)
	}
	return list, nil
}

// Patch changes name, site and locked as change says. It returns [ErrNotFound], or [ErrInvalid] for values out of range.
func (r *Registry) Patch(ctx context.Context, deviceID int64, change func(*Cabinet)) (Cabinet, error) {
	var patched Cabinet
	err := r.db.InTx(ctx, func(tx *gorm.DB) error {
		c, err := one(tx, deviceID, " FOR UPDATE")
		if err != nil {
			return err
		}
		before := c.settings()
		change(&c)
		if err := c.validate(); err != nil {
			return err
		}
		patched = c
		if c.settings() == before {
			return nil
		}
		now := database.Now()
		err = tx.Exec("UPDATE cabinets SET name = ?, site = ?, locked = ?, updated_at = ? WHERE device_id = ?",
			c.Name, c.Site, c.Locked, now, deviceID).Error
		if err != nil {
			return err
		}
		return auditlog.Write(tx, auditlog.Entry{
			Action: "cabinet.patch", Target: target(deviceID), Before: before, After: c.settings(),
		}, now)
	})
	if err != nil {
		return Cabinet{}, fmt.Errorf("patch cabinet: %w", err)
	}
	return patched, nil
}

// settings is what people decide about a cabinet, as the audit log keeps it.
type settings struct {
	DeviceID int64  `json:"deviceId"`
	Name     string `json:"name"`
	Site     string `json:"site"`
	Locked   bool   `json:"locked"`
}

func (c Cabinet) settings() settings { return settings{c.DeviceID, c.Name, c.Site, c.Locked} }

func target(deviceID int64) string { return fmt.Sprintf("cabinet %d", deviceID) }

func one(tx *gorm.DB, deviceID int64, suffix string) (Cabinet, error) {
	var list []Cabinet
	err := tx.Raw("SELECT "+columns+" FROM cabinets WHERE device_id = ?"+suffix, deviceID).Scan(&list).Error
	if err != nil {
		return Cabinet{}, fmt.Errorf("read cabinet %d: %w", deviceID, err)
	}
	if len(list) == 0 {
		return Cabinet{}, fmt.Errorf("cabinet %d: %w", deviceID, ErrNotFound)
	}
	return list[0], nil
}

func (c Cabinet) validate() error {
	switch {
	case c.DeviceID < 1 || c.DeviceID > cabinet.MaxID:
		return fmt.Errorf("deviceId %w: give 1 to %d", ErrInvalid, int64(cabinet.MaxID))
	case !fits(c.Name, 1):
		return fmt.Errorf("name %w: give 1 to %d characters", ErrInvalid, maxName)
	case !fits(c.Site, 0):
		return fmt.Errorf("site %w: give up to %d characters", ErrInvalid, maxName)
	}
	return nil
}

func fits(text string, atLeast int) bool {
	n := utf8.RuneCountInString(text)
	return utf8.ValidString(text) && n >= atLeast && n <= maxName
}

// Exists returns [ErrNotFound] where there is no such cabinet.
func Exists(tx *gorm.DB, deviceID int64) error {
	_, err := one(tx, deviceID, "")
	return err
}

// Hold returns [ErrNotFound] where there is no such cabinet, and else keeps others from changing what belongs to it until
// the transaction ends. Settlements go on.
func Hold(tx *gorm.DB, deviceID int64) error {
	_, err := one(tx, deviceID, " FOR UPDATE")
	return err
}

// MayOpen returns [ErrNotFound], [ErrLocked] or [ErrOffline] where a cabinet must not be opened. It holds the row until the
// transaction ends, so that nobody who has locked the cabinet sees it opened after.
func MayOpen(tx *gorm.DB, deviceID int64) error {
	c, err := one(tx, deviceID, " LOCK IN SHARE MODE")
	switch {
	case err != nil:
		return err
	case c.Locked:
		return fmt.Errorf("cabinet %d %w", deviceID, ErrLocked)
	case !c.Online:
		return fmt.Errorf("cabinet %d %w", deviceID, ErrOffline)
	}
	return nil
}

package database

import (
	"fmt"

	"gorm.io/gorm"
)

// Mark names what a process may keep in memory. Whoever changes what lies behind a mark raises it in the same transaction, so
// that who reads the mark first, and then what lies behind it, holds nothing older than the mark.
type Mark string

// The marks.
const (
	Catalogue  Mark = "catalogue"  // products, prices, planograms, overrides of tags
	Promotions Mark = "promotions" // what a door knows of promotions
	// Reservations is no count: it is the Unix millisecond until which a reservation may be held. [Raise] is not for it.
	Reservations Mark = "reservations"
)

// Marks are the versions of all marks, as one statement read them.
type Marks struct{ Catalogue, Promotions, Reservations int64 }

// MarkColumns are the versions as columns of a SELECT, in the order of [Marks.Targets]: they cost no statement of their own.
const MarkColumns = `COALESCE((SELECT version FROM marks WHERE name = 'catalogue'), 0),
	COALESCE((SELECT version FROM marks WHERE name = 'promotions'), 0),
	COALESCE((SELECT version FROM marks WHERE name = 'reservations'), 0)`

// Targets are where a Scan puts [MarkColumns].
func (m *Marks) Targets() []any { return []any{&m.Catalogue, &m.Promotions, &m.Reservations} }

// Raise tells every process that what lies behind a mark has changed. It holds the mark's row until the transaction ends, so
// it comes late in it.
func Raise(tx *gorm.DB, mark Mark) error {
	err := tx.Exec("INSERT INTO marks (name, version) VALUES (?, 1) ON DUPLICATE KEY UPDATE version = version + 1", mark).Error
	if err != nil {
		return fmt.Errorf("raise the mark %s: %w", mark, err)
	}
	return nil
}

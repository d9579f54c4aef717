package inventory

import (
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// MaxWriteoffUnits is the most that one line of a write-off may take away.
const MaxWriteoffUnits = 100_000

// WriteoffRequest takes units off a cabinet's book stock that were spoiled, damaged or expired.
type WriteoffRequest struct {
	DeviceID   int64
	WriteoffID string // a UUID, minted by the caller
	Reason     string // 1 to 500 characters
	Actor      string // who did it: the id of a token
	Lines      []WriteoffLine
}

// WriteoffLine is one product of a write-off, 1 to [MaxWriteoffUnits] units.
type WriteoffLine struct{ ProductID, Quantity int64 }

// AddWriteoff books a write-off and returns its movements in ascending order of products. Book
// stock goes down to 0 and not below; what the books did not have is a shortfall, as in a sale.
// The attempt is [database.DB.InTxCounted]'s. It fails with [ErrUnknownProduct].
func AddWriteoff(tx *gorm.DB, attempt int, request WriteoffRequest, now time.Time) ([]Movement, error) {
	changes := make([]Change, len(request.Lines))
	for i, line := range request.Lines {
		changes[i] = Change{
			Key: Key{request.DeviceID, line.ProductID}, Kind: Writeoff, Quantity: -line.Quantity, Ref: request.WriteoffID,
		}
	}
	return bookAll(tx, attempt, changes, now, func() error {
		return database.Insert(tx, "writeoffs", []string{"device_id", "writeoff_id", "reason", "actor", "created_at"},
			[][]any{{request.DeviceID, request.WriteoffID, request.Reason, request.Actor, now}}, "")
	})
}

package inventory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// MaxWriteoffUnits is the most that one line of a write-off may take away.
const MaxWriteoffUnits = 100_000

// ErrTagNotHere is wrapped by errors that name a tag which the books don't have on a product in a cabinet.
var ErrTagNotHere = errors.New("the books don't have it there: leave it out of epcs")

// WriteoffRequest takes units off a cabinet's book stock that were spoiled, damaged or expired.
type WriteoffRequest struct {
	DeviceID   int64
	WriteoffID string // a UUID, minted by the caller
	Reason     string // 1 to 500 characters
	Actor      string // who did it: the id of a token
	Lines      []WriteoffLine
}

// WriteoffLine is one product of a write-off, 1 to [MaxWriteoffUnits] units.
type WriteoffLine struct {
	ProductID, Quantity int64
	EPCs                []string // tags of the units in upper case, as far as they are known; they become lost
}

// AddWriteoff books a write-off and returns its movements in ascending order of products. Book
// stock goes down to 0 and not below; what the books did not have is a shortfall, as in a sale.
// The attempt is [database.DB.InTxCounted]'s. It fails with [ErrUnknownProduct], with [ErrInvalid]
// where a line has more tags than units or a tag is there twice, and with [ErrTagNotHere].
func AddWriteoff(tx *gorm.DB, attempt int, request WriteoffRequest, now time.Time) ([]Movement, error) {
	productOf, err := request.products()
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(request.Lines))
	for i, line := range request.Lines {
		changes[i] = Change{
			Key: Key{request.DeviceID, line.ProductID}, Kind: Writeoff, Quantity: -line.Quantity, Ref: request.WriteoffID,
		}
	}
	movements, err := bookAll(tx, attempt, changes, now, func() error {
		return database.Insert(tx, "writeoffs", []string{"device_id", "writeoff_id", "reason", "actor", "created_at"},
			[][]any{{request.DeviceID, request.WriteoffID, request.Reason, request.Actor, now}}, "")
	})
	if err != nil || len(productOf) == 0 {
		return movements, err
	}
	return movements, request.lose(tx, productOf, database.LockingFor(attempt), now)
}

// products maps each tag that is named to its product.
func (r *WriteoffRequest) products() (map[string]int64, error) {
	productOf := map[string]int64{}
	for _, line := range r.Lines {
		if int64(len(line.EPCs)) > line.Quantity {
			return nil, fmt.Errorf("epcs of product %d %w: %d tags of %d units", line.ProductID, ErrInvalid, len(line.EPCs), line.Quantity)
		}
		for _, epc := range line.EPCs {
			if _, twice := productOf[epc]; twice {
				return nil, fmt.Errorf("epcs %w: tag %s is there twice", ErrInvalid, epc)
			}
			productOf[epc] = line.ProductID
		}
	}
	return productOf, nil
}

func (r *WriteoffRequest) lose(tx *gorm.DB, productOf map[string]int64, locking database.Locking, now time.Time) error {
	epcs := slices.Sorted(maps.Keys(productOf))
	tags, err := OpenTags(tx, epcs, locking)
	if err != nil {
		return err
	}
	for _, epc := range epcs {
		product := productOf[epc]
		if !tags.isHere(epc, product, r.DeviceID) {
			return fmt.Errorf("tag %s of product %d in cabinet %d: %w", epc, product, r.DeviceID, ErrTagNotHere)
		}
		tags.Move(Tag{EPC: epc, ProductID: product, State: TagLost, DeviceID: r.DeviceID, CloseEventID: r.WriteoffID})
	}
	return tags.Write(tx, now)
}

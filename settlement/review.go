package settlement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
)

// Errors of a review's resolution and of reopening an order.
var (
	// ErrInvalid is wrapped by errors that say what is wrong with a [Resolution].
	ErrInvalid = errors.New("not a valid resolution")
	// ErrDecided is returned where somebody else decided the review first.
	ErrDecided = errors.New("review is decided already")
	// ErrUnderReview is returned where an order waits for a review already.
	ErrUnderReview = errors.New("an open review of the order is there already: decide that one")
	// ErrOrderClosed is returned where an order is in a state that no review may change.
	ErrOrderClosed = errors.New("order can no longer be corrected")
)

// Decision is what a person makes of a review.
type Decision string

// The decisions. For a conflict, Accept and Waive alike let the first outcome stand.
const (
	Accept Decision = "accept" // the proposed lines join the sure ones
	Amend  Decision = "amend"  // the person gives the event's whole list of lines
	Waive  Decision = "waive"  // the sure lines stay alone
)

var statusOf = map[Decision]string{Accept: "accepted", Amend: "amended", Waive: "waived"}

// MaxAmendedUnits is the most of one product that an amended event can have.
const MaxAmendedUnits = 1000

// Resolution decides one review.
type Resolution struct {
	ReviewID int64
	Decision Decision
	// Lines is the event's whole list where the decision is Amend, empty for nothing taken; each product once, 1 to
	// [MaxAmendedUnits] units. With the other decisions there are none. Of a restock door they are units added.
	Lines []ProposedLine
	Note  string // 1 to 500 characters
}

func (r *Resolution) check() error {
	if r.Decision != Amend {
		if len(r.Lines) > 0 {
			return fmt.Errorf("%w: lines come with amend only", ErrInvalid)
		}
		return nil
	}
	if r.Lines == nil {
		return fmt.Errorf("%w: amend needs the event's whole list of lines, [] where nothing was taken", ErrInvalid)
	}
	seen := make(map[int64]bool, len(r.Lines))
	for _, l := range r.Lines {
		switch {
		case seen[l.ProductID]:
			return fmt.Errorf("%w: product %d is there twice", ErrInvalid, l.ProductID)
		case l.Quantity < 1 || l.Quantity > MaxAmendedUnits:
			return fmt.Errorf("%w: %d units of product %d, give 1 to %d", ErrInvalid, l.Quantity, l.ProductID, MaxAmendedUnits)
		}
		seen[l.ProductID] = true
	}
	return nil
}

// differences says by how many units of each product a decision changes what the event has come to so far.
func (r *Resolution) differences(review *Review, standing map[int64]int64) map[int64]int64 {
	change := map[int64]int64{}
	switch {
	case r.Decision == Amend:
		for product, units := range standing {
			change[product] = -units
		}
		for _, l := range r.Lines {
			change[l.ProductID] += l.Quantity
		}
	case r.Decision == Accept && !review.OfConflict:
		for _, l := range review.Proposed {
			change[l.ProductID] += l.Quantity
		}
	}
	maps.DeleteFunc(change, func(_, units int64) bool { return units == 0 })
	return change
}

// Resolve decides an open review and books what the decision changes: new lines and new movements, never a change of a
// line or a receipt that is there (R15). The order leaves review for open, or void where nothing is left on it; where
// there was none, it is made if there are lines now. The attempt is [database.DB.InTxCounted]'s.
//
// It fails with [ErrNotFound], [ErrInvalid], [ErrDecided], [ErrOrderClosed] and inventory.ErrUnknownProduct.
func Resolve(tx *gorm.DB, attempt int, r Resolution, now time.Time) (Review, error) {
	if err := r.check(); err != nil {
		return Review{}, err
	}
	at, err := readReview(tx, r.ReviewID)
	if err != nil {
		return Review{}, err
	}
	e, err := lockEvent(tx, key{at.DeviceID, at.CloseEventID})
	if err != nil {
		return Review{}, err
	}
	review, err := readReview(tx, r.ReviewID) // as it is behind the lock
	switch {
	case err != nil:
		return Review{}, err
	case review.Status != openReview:
		return Review{}, fmt.Errorf("review %d: %w", r.ReviewID, ErrDecided)
	}
	before := reviewChange{Status: review.Status, eventState: e.state()}
	moved, err := e.correct(tx, attempt, &review, &r, now)
	if err != nil {
		return Review{}, fmt.Errorf("resolve review %d of %s: %w", r.ReviewID, e.name(), err)
	}
	if err := e.decide(tx, &r, now); err != nil {
		return Review{}, err
	}
	err = auditlog.Write(tx, auditlog.Entry{
		Action: "review." + string(r.Decision), Target: "review " + FormatID(r.ReviewID), Before: before,
		After: reviewChange{Status: statusOf[r.Decision], Note: r.Note, Tags: moved, eventState: e.state()},
	}, now)
	if err != nil {
		return Review{}, err
	}
	review, err = readReview(tx, r.ReviewID)
	review.Returns = e.returns
	return review, err
}

// decide is the compare-and-set that lets one of two operators through.
func (e *pastEvent) decide(tx *gorm.DB, r *Resolution, now time.Time) error {
	result := tx.Exec(`UPDATE reviews SET status = ?, note = ?, resolved_by = ?, resolved_at = ?, order_id = ?
		WHERE review_id = ? AND status = ?`, statusOf[r.Decision], r.Note, auditlog.Actor(tx.Statement.Context), now,
		e.orderID(), r.ReviewID, openReview)
	if result.Error != nil {
		return fmt.Errorf("decide review %d: %w", r.ReviewID, result.Error)
	}
	if result.RowsAffected != 1 {
		return fmt.Errorf("review %d: %w", r.ReviewID, ErrDecided)
	}
	return nil
}

// reviewChange is one side of a line in the audit log.
type reviewChange struct {
	ReviewID string      `json:"reviewId,omitempty"`
	Status   string      `json:"status,omitempty"`
	Note     string      `json:"note,omitempty"`
	Tags     []tagChange `json:"tags,omitempty"` // that the decision moved
	eventState
}

// eventState is what an event has come to.
type eventState struct {
	Order *orderState    `json:"order"` // null: none
	Units []ProposedLine `json:"units"` // ascending by product
}

type orderState struct {
	OrderID    string `json:"orderId"`
	Status     string `json:"status"`
	TotalMinor int64  `json:"totalMinor"`
}

func (e *pastEvent) state() eventState {
	state := eventState{Units: []ProposedLine{}}
	if e.order != nil {
		state.Order = &orderState{FormatID(e.order.OrderID), e.order.Status, e.order.TotalMinor}
	}
	for _, product := range slices.Sorted(maps.Keys(e.standing)) {
		if units := e.standing[product]; units != 0 {
			state.Units = append(state.Units, ProposedLine{product, units})
		}
	}
	return state
}

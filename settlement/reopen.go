package settlement

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// reopened is the evidence of a review that a person opened.
type reopened struct {
	Where string    `json:"where"`
	Entry reopening `json:"entry"`
}

type reopening struct {
	OrderID    string `json:"orderId"`
	ReopenedBy string `json:"reopenedBy"`
	Note       string `json:"note"`
}

// Reopen opens a review of an order that is settled, so that a person can correct it, and returns the review. The note
// says why; it stays in the review's evidence when the decision brings its own.
//
// It fails with [ErrNotFound], [ErrUnderReview] and [ErrOrderClosed].
func Reopen(tx *gorm.DB, orderID int64, note string, now time.Time) (Review, error) {
	o, err := readOrder(tx, orderID)
	if err != nil {
		return Review{}, err
	}
	e, err := lockEvent(tx, key{o.DeviceID, o.CloseEventID})
	if err != nil {
		return Review{}, err
	}
	waits, err := e.underReview(tx, 0)
	switch {
	case err != nil:
		return Review{}, err
	case waits:
		return Review{}, fmt.Errorf("order %d: %w", orderID, ErrUnderReview)
	}
	before := reviewChange{eventState: e.state()}
	if err := e.setOrder(tx, orderReview, e.order.TotalMinor); err != nil {
		return Review{}, fmt.Errorf("reopen %s: %w", e.name(), err)
	}
	id := database.NewID(now)
	if err := e.insertReopened(tx, id, note, now); err != nil {
		return Review{}, err
	}
	err = auditlog.Write(tx, auditlog.Entry{
		Action: "order.reopen", Target: "order " + FormatID(orderID), Before: before,
		After: reviewChange{ReviewID: FormatID(id), Status: openReview, Note: note, eventState: e.state()},
	}, now)
	if err != nil {
		return Review{}, err
	}
	return readReview(tx, id)
}

func (e *pastEvent) insertReopened(tx *gorm.DB, id int64, note string, now time.Time) error {
	evidence := []reopened{{"order", reopening{FormatID(e.order.OrderID), auditlog.Actor(tx.Statement.Context), note}}}
	return insert(tx, "reviews", "", [][]any{{
		id, e.deviceID, e.closeEventID, e.orderID(), "[]", "[]", marshal(evidence), openReview, note, now,
	}}, "review_id", "device_id", "close_event_id", "order_id", "reasons", "proposed", "evidence", "status", "note", "created_at")
}

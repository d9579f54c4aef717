package settlement

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"doortab/cabinet"
	"doortab/database"
)

// Review is something that a person must decide, or has decided.
type Review struct {
	ReviewID     int64
	DeviceID     int64
	CloseEventID string
	OrderID      *int64 // nil: no order yet
	Reasons      []cabinet.Reason
	Proposed     []ProposedLine
	Evidence     []byte // JSON
	Status       string // open, accepted, amended, waived
	CreatedAt    time.Time
}

// ProposedLine is what accepting a review would add.
type ProposedLine struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
}

const (
	openReview    = "open"
	reviewColumns = "review_id, device_id, close_event_id, order_id, reasons, proposed, evidence, status, created_at"
)

// ReviewKey is a place in the list of reviews.
type ReviewKey struct {
	Decided  bool // among those that were decided, which follow the open ones
	ReviewID int64
}

// Key is the review's own place in the list.
func (r Review) Key() ReviewKey { return ReviewKey{r.Status != openReview, r.ReviewID} }

// ListReviews reads up to limit reviews that come after the place given: first the open ones, then the decided ones,
// the oldest of each first.
func ListReviews(ctx context.Context, db *database.DB, after ReviewKey, limit int) ([]Review, error) {
	var list []Review
	if !after.Decided {
		open, err := readReviews(ctx, db, "status = ? AND review_id > ?", openReview, after.ReviewID, limit)
		if err != nil || len(open) == limit {
			return open, err
		}
		list, after.ReviewID = open, 0
	}
	decided, err := readReviews(ctx, db, "status <> ? AND review_id > ?", openReview, after.ReviewID, limit-len(list))
	return append(list, decided...), err
}

// ReadReview reads one review, or returns [ErrNotFound].
func ReadReview(ctx context.Context, db *database.DB, reviewID int64) (Review, error) {
	list, err := readReviews(ctx, db, "review_id = ?", reviewID, 1)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("review %d: %w", reviewID, ErrNotFound)
	}
	if err != nil {
		return Review{}, err
	}
	return list[0], nil
}

func readReviews(ctx context.Context, db *database.DB, condition string, args ...any) ([]Review, error) {
	var rows []reviewRow
	err := db.Read(ctx).Raw("SELECT "+reviewColumns+" FROM reviews WHERE "+condition+" ORDER BY review_id LIMIT ?", args...).
		Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read reviews: %w", err)
	}
	list := make([]Review, len(rows))
	for i := range rows {
		if list[i], err = rows[i].item(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

type reviewRow struct {
	ReviewID     int64
	DeviceID     int64
	CloseEventID string
	OrderID      *int64
	Reasons      []byte
	Proposed     []byte
	Evidence     []byte
	Status       string
	CreatedAt    time.Time
}

func (r *reviewRow) item() (Review, error) {
	item := Review{
		ReviewID: r.ReviewID, DeviceID: r.DeviceID, CloseEventID: r.CloseEventID, OrderID: r.OrderID,
		Evidence: r.Evidence, Status: r.Status, CreatedAt: r.CreatedAt,
	}
	if err := json.Unmarshal(r.Reasons, &item.Reasons); err != nil {
		return item, fmt.Errorf("stored reasons of review %d: %w", r.ReviewID, err)
	}
	if err := json.Unmarshal(r.Proposed, &item.Proposed); err != nil {
		return item, fmt.Errorf("stored proposal of review %d: %w", r.ReviewID, err)
	}
	return item, nil
}

// Discrepancy is a difference between the books and the shelf, left by the movement of the same key.
type Discrepancy struct {
	DeviceID, ProductID, Version int64
	Kind                         string // shortfall, stocktake
	Quantity                     int64  // units taken beyond the books
	Ref                          string // of the movement
	CreatedAt                    time.Time
}

// DiscrepancyKey is a place in the list of discrepancies.
type DiscrepancyKey struct {
	CreatedAt                    time.Time
	DeviceID, ProductID, Version int64
}

// ListDiscrepancies reads up to limit discrepancies that come after the place before, the newest first; nil means from
// the newest.
func ListDiscrepancies(ctx context.Context, db *database.DB, before *DiscrepancyKey, limit int) ([]Discrepancy, error) {
	w := &where{}
	if b := before; b != nil {
		w.and(`created_at <= ? AND (created_at < ? OR device_id < ? OR device_id = ? AND product_id < ?
			OR device_id = ? AND product_id = ? AND version < ?)`,
			b.CreatedAt, b.CreatedAt, b.DeviceID, b.DeviceID, b.ProductID, b.DeviceID, b.ProductID, b.Version)
	}
	var list []Discrepancy
	err := db.Read(ctx).Raw(`SELECT device_id, product_id, version, kind, quantity, ref, created_at FROM discrepancies`+
		w.clause()+` ORDER BY created_at DESC, device_id DESC, product_id DESC, version DESC LIMIT ?`,
		append(w.args, limit)...).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("list discrepancies: %w", err)
	}
	return list, nil
}

// DeadLetter is a message that belongs to no cabinet and event, kept with the reason.
type DeadLetter struct {
	DeadLetterID   int64
	Topic          string
	DeviceID       *int64  // nil: the topic names none
	CloseEventID   *string // nil: can't be read
	Payload        []byte  // its first 64 KiB
	Size           int64   // bytes of the whole
	Digest         []byte  // SHA-256 of the whole
	Reason         string
	Detail         string
	Copies         int64
	ReceivedAt     time.Time
	LastReceivedAt time.Time
}

// ListDeadLetters reads up to limit dead letters with ids below before, the newest first; 0 means from the newest.
func ListDeadLetters(ctx context.Context, db *database.DB, before int64, limit int) ([]DeadLetter, error) {
	var list []DeadLetter
	err := db.Read(ctx).Raw(`SELECT dead_letter_id, topic, device_id, close_event_id, payload, size, digest, reason, detail,
		copies, received_at, last_received_at FROM dead_letters WHERE dead_letter_id <= ? ORDER BY dead_letter_id DESC LIMIT ?`,
		lastID(time.Time{}, before), limit).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

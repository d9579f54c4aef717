package settlement

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/promotion"
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
	OfConflict   bool   // about other content under the event's id (R3)
	Note         string // of the decision; before it, of who reopened the order
	ResolvedBy   string // who decided, as the audit log names them
	ResolvedAt   *time.Time
	CreatedAt    time.Time

	// Returns are what the decision gave back to the persons of claims; told by [Resolve] alone.
	Returns []promotion.Return
}

// Decision is what was made of the review; "" while it is open.
func (r Review) Decision() Decision {
	for decision, status := range statusOf {
		if status == r.Status {
			return decision
		}
	}
	return ""
}

// ProposedLine is some units of a product: what accepting a review would add, or what amending it says was taken.
type ProposedLine struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
}

const (
	openReview    = "open"
	reviewColumns = `review_id, device_id, close_event_id, order_id, reasons, proposed, evidence, status,
		conflict_digest IS NOT NULL AS of_conflict, note, resolved_by, resolved_at, created_at`
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
	const from, page = " AND review_id > ?", " ORDER BY review_id LIMIT ?"
	var list []Review
	if !after.Decided {
		open, err := readReviews(db.Read(ctx), "status = ?"+from+page, openReview, after.ReviewID, limit)
		if err != nil || len(open) == limit {
			return open, err
		}
		list, after.ReviewID = open, 0
	}
	decided, err := readReviews(db.Read(ctx), "status <> ?"+from+page, openReview, after.ReviewID, limit-len(list))
	return append(list, decided...), err
}

// ReadReview reads one review, or returns [ErrNotFound].
func ReadReview(ctx context.Context, db *database.DB, reviewID int64) (Review, error) {
	return readReview(db.Read(ctx), reviewID)
}

func readReview(tx *gorm.DB, reviewID int64) (Review, error) {
	list, err := readReviews(tx, "review_id = ?", reviewID)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("review %d: %w", reviewID, ErrNotFound)
	}
	if err != nil {
		return Review{}, err
	}
	return list[0], nil
}

func readReviews(tx *gorm.DB, clauses string, args ...any) ([]Review, error) {
	var rows []reviewRow
	err := tx.Raw("SELECT "+reviewColumns+" FROM reviews WHERE "+clauses, args...).Scan(&rows).Error
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
	OfConflict   bool
	Note         string
	ResolvedBy   string
	ResolvedAt   *time.Time
	CreatedAt    time.Time
}

func (r *reviewRow) item() (Review, error) {
	item := Review{
		ReviewID: r.ReviewID, DeviceID: r.DeviceID, CloseEventID: r.CloseEventID, OrderID: r.OrderID,
		Evidence: r.Evidence, Status: r.Status, OfConflict: r.OfConflict, Note: r.Note, ResolvedBy: r.ResolvedBy,
		ResolvedAt: r.ResolvedAt, CreatedAt: r.CreatedAt,
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
	Quantity                     int64  // shortfall: units beyond the books, negative: taken back by a review; stocktake: counted less booked
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

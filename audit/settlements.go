package audit

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"doortab/cabinet"
)

const (
	outcomeSettled   = string(cabinet.Settled)
	outcomeEmpty     = string(cabinet.Empty)
	outcomeReview    = string(cabinet.Review)
	outcomeRestocked = string(cabinet.Restocked)

	statusOpen       = "open"
	statusReview     = "review"
	statusVoid       = "void"
	originSettlement = "settlement"
	originReview     = "review"
)

// settlement is one settlement with its order and the order's lines.
type settlement struct {
	device    int64
	event     string
	outcome   string
	orderID   sql.Null[int64] // what the settlement names
	receipt   []byte
	settledAt time.Time
	reviews   int64 // those of the outcome itself, not of a conflict
	open      int64 // of them
	bare      bool  // its row has no payload
	archived  bool  // the archive has its payload

	order    sql.Null[int64] // the order of that number and this event
	status   sql.Null[string]
	currency sql.Null[string]
	lines    []cabinet.Line  // of origin settlement: what was sure at once
	later    int             // lines that a review added
	left     map[int64]int64 // units on the order, by product
}

func (s *settlement) key() string {
	return fmt.Sprintf("settlements device=%d event=%s", s.device, s.event)
}

const readSettlements = `
SELECT s.device_id, s.close_event_id, s.outcome, s.order_id, s.receipt, s.settled_at,
       (SELECT COUNT(*) FROM reviews r FORCE INDEX (reviews_event)
         WHERE r.device_id = s.device_id AND r.close_event_id = s.close_event_id AND r.conflict_digest IS NULL),
       (SELECT COUNT(*) FROM reviews r FORCE INDEX (reviews_event)
         WHERE r.device_id = s.device_id AND r.close_event_id = s.close_event_id AND r.conflict_digest IS NULL AND r.status = 'open'),
       s.payload = '', p.device_id IS NOT NULL,
       COALESCE(o.order_id, oa.order_id), COALESCE(o.status, oa.status), COALESCE(o.currency, oa.currency),
       COALESCE(l.origin, la.origin), COALESCE(l.product_id, la.product_id), COALESCE(l.quantity, la.quantity),
       COALESCE(l.unit_price_minor, la.unit_price_minor), COALESCE(l.amount_minor, la.amount_minor)
  FROM settlements s FORCE INDEX (PRIMARY)
  LEFT JOIN settlement_payloads_archive p ON p.device_id = s.device_id AND p.close_event_id = s.close_event_id
  LEFT JOIN orders o ON o.order_id = s.order_id AND o.device_id = s.device_id AND o.close_event_id = s.close_event_id
  LEFT JOIN orders_archive oa ON oa.order_id = s.order_id AND oa.device_id = s.device_id AND oa.close_event_id = s.close_event_id
  LEFT JOIN order_lines l ON l.device_id = o.device_id AND l.order_id = o.order_id
  LEFT JOIN order_lines_archive la ON la.device_id = oa.device_id AND la.order_id = oa.order_id
 ORDER BY s.device_id, s.close_event_id`

func (a *auditor) settlements(ctx context.Context) error {
	var s, group settlement
	var origin sql.Null[string]
	var product, quantity, price, amount sql.Null[int64]
	row := []any{
		&s.device, &s.event, &s.outcome, &s.orderID, &s.receipt, &s.settledAt, &s.reviews, &s.open, &s.bare, &s.archived,
		&s.order, &s.status, &s.currency, &origin, &product, &quantity, &price, &amount,
	}
	err := a.each(ctx, readSettlements, row, func() {
		if s.device != group.device || s.event != group.event {
			a.checkSettlement(&group)
			group, group.left = s, map[int64]int64{}
		}
		group.left[product.V] += quantity.V
		switch {
		case origin.V == originSettlement:
			group.lines = append(group.lines, cabinet.Line{
				ProductID: product.V, Quantity: quantity.V, UnitPriceMinor: price.V, AmountMinor: amount.V,
			})
		case origin.Valid:
			group.later++
		}
	})
	if err == nil {
		a.checkSettlement(&group)
	}
	return err
}

func (a *auditor) checkSettlement(s *settlement) {
	if s.event == "" { // before the first
		return
	}
	a.i1.Rows++
	for _, problem := range s.problems() {
		a.i1.violated("%s: outcome %s, %s", s.key(), s.outcome, problem)
	}
	a.i4.Rows++
	a.count("payloads", s.archived)
	if s.bare != s.archived {
		a.i4.violated("%s: its payload is %s", s.key(), whereabouts(s.archived))
	}
	a.i5.Rows++
	for _, difference := range s.receiptDifferences() {
		a.i5.violated("%s: receipt %s", s.key(), difference)
	}
}

func whereabouts(twice bool) string {
	if twice {
		return "here and in the archive"
	}
	return "neither here nor in the archive"
}

// problems says what the outcome calls for and the rows lack, or have too much.
func (s *settlement) problems() []string {
	var found []string
	require := func(holds bool, otherwise string) {
		if !holds {
			found = append(found, otherwise)
		}
	}
	if s.orderID.Valid {
		require(s.order.Valid, fmt.Sprintf("no order=%d of this event", s.orderID.V))
	}
	switch s.outcome {
	case outcomeSettled:
		require(s.orderID.Valid, "no order")
		require(!s.order.Valid || len(s.lines) > 0, fmt.Sprintf("no sure line on order=%d", s.order.V))
	case outcomeReview:
		require(s.reviews > 0, "no review")
		require(!s.order.Valid || len(s.lines)+s.later > 0, fmt.Sprintf("no line on order=%d", s.order.V))
	case outcomeEmpty: // a conflict's review may have found that something was taken after all
		require(!s.orderID.Valid || s.later > 0 && len(s.lines) == 0, fmt.Sprintf("order=%d", s.orderID.V))
		require(s.orderID.Valid || s.reviews == 0, fmt.Sprintf("%d reviews", s.reviews))
	case outcomeRestocked:
		require(!s.orderID.Valid, fmt.Sprintf("order=%d", s.orderID.V))
		require(s.reviews == 0, fmt.Sprintf("%d reviews", s.reviews))
	default:
		require(false, "which is none that is ever written")
	}
	return append(found, s.statusProblems()...)
}

// statusProblems says where an order's status and what it stands for differ.
func (s *settlement) statusProblems() []string {
	if !s.order.Valid {
		return nil
	}
	waits, bare := s.status.V == statusReview, len(s.lines)+s.later > 0 && !s.anythingLeft()
	switch order := fmt.Sprintf("order=%d", s.order.V); {
	case waits && s.open == 0:
		return []string{order + " waits for a review that isn't there"}
	case !waits && s.open > 0:
		return []string{order + " is " + s.status.V + " while its review is open"}
	case s.status.V == statusOpen && bare:
		return []string{order + " is open with nothing left on it"}
	case s.status.V == statusVoid && !bare:
		return []string{order + " is void with something left on it"}
	default:
		return nil
	}
}

func (s *settlement) anythingLeft() bool {
	for _, units := range s.left {
		if units != 0 {
			return true
		}
	}
	return false
}

const readReviews = `
SELECT r.review_id, r.device_id, r.close_event_id, r.order_id, r.conflict_digest IS NOT NULL,
       s.device_id IS NOT NULL, c.device_id IS NOT NULL, o.order_id IS NOT NULL OR oa.order_id IS NOT NULL
  FROM reviews r FORCE INDEX (PRIMARY)
  LEFT JOIN settlements s ON s.device_id = r.device_id AND s.close_event_id = r.close_event_id
  LEFT JOIN settlement_conflicts c ON c.device_id = r.device_id AND c.close_event_id = r.close_event_id
                                  AND c.digest = r.conflict_digest
  LEFT JOIN orders o ON o.order_id = r.order_id AND o.device_id = r.device_id AND o.close_event_id = r.close_event_id
  LEFT JOIN orders_archive oa ON oa.order_id = r.order_id AND oa.device_id = r.device_id AND oa.close_event_id = r.close_event_id
 ORDER BY r.review_id`

func (a *auditor) reviews(ctx context.Context) error {
	var review, device int64
	var event string
	var order sql.Null[int64]
	var ofConflict, hasSettlement, hasConflict, hasOrder bool
	row := []any{&review, &device, &event, &order, &ofConflict, &hasSettlement, &hasConflict, &hasOrder}
	return a.each(ctx, readReviews, row, func() {
		a.i4.Rows++
		key := fmt.Sprintf("reviews review=%d", review)
		if !hasSettlement {
			a.i4.violated("%s: no settlement of device=%d event=%s", key, device, event)
		}
		if ofConflict && !hasConflict {
			a.i4.violated("%s: no such conflict of device=%d event=%s", key, device, event)
		}
		if order.Valid && !hasOrder {
			a.i4.violated("%s: no order=%d of device=%d event=%s", key, order.V, device, event)
		}
	})
}

const readConflicts = `
SELECT c.device_id, c.close_event_id, HEX(c.digest), s.device_id IS NOT NULL, c.payload = '', p.device_id IS NOT NULL,
       (SELECT COUNT(*) FROM reviews r FORCE INDEX (reviews_event)
         WHERE r.device_id = c.device_id AND r.close_event_id = c.close_event_id AND r.conflict_digest = c.digest)
  FROM settlement_conflicts c FORCE INDEX (PRIMARY)
  LEFT JOIN conflict_payloads_archive p ON p.device_id = c.device_id AND p.close_event_id = c.close_event_id AND p.digest = c.digest
  LEFT JOIN settlements s ON s.device_id = c.device_id AND s.close_event_id = c.close_event_id
 ORDER BY c.device_id, c.close_event_id, c.digest`

func (a *auditor) conflicts(ctx context.Context) error {
	var device, reviews int64
	var event, digest string
	var hasSettlement, bare, archived bool
	return a.each(ctx, readConflicts, []any{&device, &event, &digest, &hasSettlement, &bare, &archived, &reviews}, func() {
		a.i1.Rows++
		a.i4.Rows++
		key := fmt.Sprintf("settlement_conflicts device=%d event=%s digest=%.12s", device, event, digest)
		if !hasSettlement {
			a.i4.violated("%s: no settlement", key)
		}
		if bare != archived {
			a.i4.violated("%s: its payload is %s", key, whereabouts(archived))
		}
		if reviews != 1 {
			a.i1.violated("%s: %d reviews, not one", key, reviews)
		}
	})
}

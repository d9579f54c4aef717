package settlement

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
)

// Settlement is one committed outcome as it is kept.
type Settlement struct {
	DeviceID     int64
	CloseEventID string
	Outcome      cabinet.Outcome
	OrderID      *int64 // nil: no order
	Receipt      cabinet.Receipt
	ReceivedAt   time.Time
	SettledAt    time.Time

	// Of a single read alone:

	Event      []byte // JSON, as it was published
	ReceiptRaw []byte // JSON, as it was published first
	Lines      []OrderLine
	Conflicts  []Contradiction
}

// Contradiction is other content that came under a settlement's id (R3).
type Contradiction struct {
	Digest     []byte // SHA-256 of its meaning
	Payload    []byte // JSON, as it was published
	ReceivedAt time.Time
}

// SettlementKey is a place in the list of settlements.
type SettlementKey struct {
	ReceivedAt   time.Time
	DeviceID     int64
	CloseEventID string
}

// Filter narrows a list of settlements or orders; what is zero or nil does not narrow it.
type Filter struct {
	DeviceID int64
	UserID   int64     // orders only
	State    string    // a settlement's outcome, an order's status
	From     time.Time // the first moment that counts: receivedAt of settlements, createdAt of orders
	To       time.Time // the first moment that does not
}

// ListSettlements reads up to limit settlements that come after the place before, the newest first; nil means from the
// newest.
func ListSettlements(
	ctx context.Context, db *database.DB, f Filter, before *SettlementKey, limit int,
) ([]Settlement, error) {
	w := &where{}
	w.equal("device_id", f.DeviceID)
	w.state("outcome", f.State)
	w.period("received_at", f.From, f.To)
	if before != nil {
		w.and(`received_at <= ? AND (received_at < ? OR device_id < ? OR device_id = ? AND close_event_id < ?)`,
			before.ReceivedAt, before.ReceivedAt, before.DeviceID, before.DeviceID, before.CloseEventID)
	}
	var rows []settlementRow
	err := db.Read(ctx).Raw(`SELECT device_id, close_event_id, outcome, order_id, receipt, received_at, settled_at
		FROM settlements`+w.clause()+` ORDER BY received_at DESC, device_id DESC, close_event_id DESC LIMIT ?`,
		append(w.args, limit)...).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list settlements: %w", err)
	}
	list := make([]Settlement, len(rows))
	for i := range rows {
		if list[i], err = rows[i].settlement(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// ReadSettlement reads one settlement with all that belongs to it, or returns [ErrNotFound].
func ReadSettlement(ctx context.Context, db *database.DB, deviceID int64, closeEventID string) (Settlement, error) {
	var rows []settlementRow
	err := db.Read(ctx).Raw(`SELECT device_id, close_event_id, outcome, order_id, receipt, received_at, settled_at, payload
		FROM settlements WHERE device_id = ? AND close_event_id = ?`, deviceID, closeEventID).Scan(&rows).Error
	if err != nil {
		return Settlement{}, fmt.Errorf("read settlement %d/%s: %w", deviceID, closeEventID, err)
	}
	if len(rows) == 0 {
		return Settlement{}, fmt.Errorf("settlement %d/%s: %w", deviceID, closeEventID, ErrNotFound)
	}
	s, err := rows[0].settlement()
	if err != nil {
		return Settlement{}, err
	}
	s.Event, s.ReceiptRaw = rows[0].Payload, rows[0].Receipt
	if s.OrderID != nil {
		if s.Lines, err = readLines(db.Read(ctx), deviceID, *s.OrderID); err != nil {
			return Settlement{}, err
		}
	}
	s.Conflicts, err = readContradictions(db.Read(ctx), deviceID, closeEventID)
	return s, err
}

func readContradictions(tx *gorm.DB, deviceID int64, closeEventID string) ([]Contradiction, error) {
	var list []Contradiction
	err := tx.Raw(`SELECT digest, payload, received_at FROM settlement_conflicts
		WHERE device_id = ? AND close_event_id = ? ORDER BY received_at, digest`, deviceID, closeEventID).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("read conflicts of %d/%s: %w", deviceID, closeEventID, err)
	}
	return list, nil
}

type settlementRow struct {
	DeviceID     int64
	CloseEventID string
	Outcome      cabinet.Outcome
	OrderID      *int64
	Payload      []byte
	Receipt      []byte
	ReceivedAt   time.Time
	SettledAt    time.Time
}

func (r *settlementRow) settlement() (Settlement, error) {
	s := Settlement{
		DeviceID: r.DeviceID, CloseEventID: r.CloseEventID, Outcome: r.Outcome, OrderID: r.OrderID,
		ReceivedAt: r.ReceivedAt, SettledAt: r.SettledAt,
	}
	if err := json.Unmarshal(r.Receipt, &s.Receipt); err != nil {
		return s, fmt.Errorf("stored receipt of %d/%s: %w", r.DeviceID, r.CloseEventID, err)
	}
	return s, nil
}

// where collects conditions and their values.
type where struct {
	conditions []string
	args       []any
}

func (w *where) and(condition string, args ...any) {
	w.conditions = append(w.conditions, "("+condition+")")
	w.args = append(w.args, args...)
}

func (w *where) equal(column string, id int64) {
	if id != 0 {
		w.and(column+" = ?", id)
	}
}

func (w *where) state(column, state string) {
	if state != "" {
		w.and(column+" = ?", state)
	}
}

func (w *where) period(column string, from, to time.Time) {
	if !from.IsZero() {
		w.and(column+" >= ?", from)
	}
	if !to.IsZero() {
		w.and(column+" < ?", to)
	}
}

func (w *where) clause() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

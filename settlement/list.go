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
	Event        []byte // JSON, as it was published
	ReceiptRaw   []byte // JSON, as it was published first
	Lines        []OrderLine
	Conflicts    []Contradiction
	Reviews      []Review // the oldest first
}

// Contradiction is other content that came under a settlement's id (R3).
type Contradiction struct {
	DeviceID     int64
	CloseEventID string
	Digest       []byte // SHA-256 of its meaning
	Payload      []byte // JSON, as it was published
	ReceivedAt   time.Time
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
	App      string    // orders only: of doors that this app opened
	State    string    // a settlement's outcome, an order's status
	From     time.Time // the first moment that counts: receivedAt of settlements, createdAt of orders
	To       time.Time // the first moment that does not
	Archived bool      // orders only: those in the archive, and no others
}

// ListSettlements reads up to limit settlements with all that belongs to them that come after the place before, the
// newest first; nil means from the newest.
func ListSettlements(
	ctx context.Context, db *database.DB, f Filter, before *SettlementKey, limit int,
) ([]Settlement, error) {
	w := &where{}
	w.equal("device_id", f.DeviceID)
	w.text("outcome", f.State)
	w.period("received_at", f.From, f.To)
	if before != nil {
		w.and(`received_at <= ? AND (received_at < ? OR device_id < ? OR device_id = ? AND close_event_id < ?)`,
			before.ReceivedAt, before.ReceivedAt, before.DeviceID, before.DeviceID, before.CloseEventID)
	}
	return readSettlements(db.Read(ctx), w.clause()+` ORDER BY received_at DESC, device_id DESC, close_event_id DESC LIMIT ?`,
		append(w.args, limit)...)
}

// ReadSettlement reads one settlement with all that belongs to it, or returns [ErrNotFound].
func ReadSettlement(ctx context.Context, db *database.DB, deviceID int64, closeEventID string) (Settlement, error) {
	list, err := readSettlements(db.Read(ctx), " WHERE device_id = ? AND close_event_id = ?", deviceID, closeEventID)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Settlement{}, fmt.Errorf("settlement %d/%s: %w", deviceID, closeEventID, err)
	}
	return list[0], nil
}

// ReadReceipt reads the receipt of one settlement as it was published first, JSON, or returns [ErrNotFound].
func ReadReceipt(ctx context.Context, db *database.DB, deviceID int64, closeEventID string) ([]byte, error) {
	var rows []struct{ Receipt []byte }
	err := db.Read(ctx).Raw("SELECT receipt FROM settlements WHERE device_id = ? AND close_event_id = ?", deviceID, closeEventID).
		Scan(&rows).Error
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("receipt of %d/%s: %w", deviceID, closeEventID, err)
	}
	return rows[0].Receipt, nil
}

const settlementColumns = `device_id, close_event_id, outcome, order_id, payload, receipt, received_at, settled_at`

// readSettlements reads the rows that the clauses choose, their lines, reviews and conflicts, in one statement each.
func readSettlements(tx *gorm.DB, clauses string, args ...any) ([]Settlement, error) {
	var rows []settlementRow
	if err := tx.Raw("SELECT "+settlementColumns+" FROM settlements"+clauses, args...).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read settlements: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	list := make([]Settlement, len(rows))
	at := make(map[key]*Settlement, len(rows))
	var err error
	for i := range rows {
		if list[i], err = rows[i].settlement(); err != nil {
			return nil, err
		}
		at[key{rows[i].DeviceID, rows[i].CloseEventID}] = &list[i]
	}
	if err := addArchivedPayloads(tx, at); err != nil {
		return nil, err
	}
	if err := addSettledLines(tx, list); err != nil {
		return nil, err
	}
	if err := addReviews(tx, at); err != nil {
		return nil, err
	}
	return list, addContradictions(tx, at)
}

// addArchivedPayloads reads the messages that are archived: a settlement's own row has an empty one then.
func addArchivedPayloads(tx *gorm.DB, at map[key]*Settlement) error {
	var keys [][]any
	for k, s := range at {
		if len(s.Event) == 0 {
			keys = append(keys, []any{k.deviceID, k.closeEventID})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var rows []settlementRow
	err := tx.Raw(`SELECT device_id, close_event_id, payload FROM settlement_payloads_archive
		WHERE (device_id, close_event_id) IN ?`, keys).Scan(&rows).Error
	if err != nil {
		return fmt.Errorf("read %d archived payloads: %w", len(keys), err)
	}
	for _, row := range rows {
		at[key{row.DeviceID, row.CloseEventID}].Event = row.Payload
	}
	return nil
}

func addSettledLines(tx *gorm.DB, list []Settlement) error {
	at := map[int64]*Settlement{}
	var orders [][]any
	for i, s := range list {
		if s.OrderID != nil {
			at[*s.OrderID] = &list[i]
			orders = append(orders, []any{s.DeviceID, *s.OrderID})
		}
	}
	lines, err := readLines(tx, orders)
	for _, l := range lines {
		s := at[l.OrderID]
		s.Lines = append(s.Lines, l)
	}
	return err
}

func addReviews(tx *gorm.DB, at map[key]*Settlement) error {
	list, err := readReviews(tx, "(device_id, close_event_id) IN ? ORDER BY review_id", tuplesOf(at))
	for _, r := range list {
		s := at[key{r.DeviceID, r.CloseEventID}]
		s.Reviews = append(s.Reviews, r)
	}
	return err
}

func tuplesOf(at map[key]*Settlement) [][]any {
	keys := make([][]any, 0, len(at))
	for k := range at {
		keys = append(keys, []any{k.deviceID, k.closeEventID})
	}
	return keys
}

func addContradictions(tx *gorm.DB, at map[key]*Settlement) error {
	var list []Contradiction
	err := tx.Raw(`SELECT c.device_id, c.close_event_id, c.digest, COALESCE(a.payload, c.payload) AS payload, c.received_at
		FROM settlement_conflicts c LEFT JOIN conflict_payloads_archive a
			ON a.device_id = c.device_id AND a.close_event_id = c.close_event_id AND a.digest = c.digest
		WHERE (c.device_id, c.close_event_id) IN ? ORDER BY c.received_at, c.digest`, tuplesOf(at)).Scan(&list).Error
	if err != nil {
		return fmt.Errorf("read conflicts of %d settlements: %w", len(at), err)
	}
	for _, c := range list {
		s := at[key{c.DeviceID, c.CloseEventID}]
		s.Conflicts = append(s.Conflicts, c)
	}
	return nil
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
		ReceivedAt: r.ReceivedAt, SettledAt: r.SettledAt, Event: r.Payload, ReceiptRaw: r.Receipt,
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

// text compares lengths too, since = takes no notice of spaces at the end.
func (w *where) text(column, text string) {
	if text != "" {
		w.and(column+" = ? AND CHAR_LENGTH("+column+") = CHAR_LENGTH(?)", text, text)
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

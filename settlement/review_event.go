package settlement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/archive"
	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
	"doortab/promotion"
)

// pastEvent is a settled event whose outcome a person corrects, with all that it has come to so far. Whoever corrects
// holds the lock on its settlement, so that two reviews of one event are decided one after the other.
type pastEvent struct {
	key
	restock  bool   // a restock door: its units were added, and it never has an order (R11)
	userID   *int64 // nil: nobody known
	app      *string
	at       *inventory.Position
	pricedAt time.Time // the moment whose prices hold (R8)
	currency string

	payload    []byte // as published, archived or not
	receivedAt time.Time

	order    *Order             // nil: none yet
	standing map[int64]int64    // units by product: on the order, or added by a restock door
	returns  []promotion.Return // what the correction gives back to persons of claims
}

func (e *pastEvent) name() string { return fmt.Sprintf("%d/%s", e.deviceID, e.closeEventID) }

// orderID is what the column takes.
func (e *pastEvent) orderID() any {
	if e.order == nil {
		return nil
	}
	return e.order.OrderID
}

const lockSettlement = `SELECT order_id, seq, COALESCE(seq_epoch, 0) AS seq_epoch, kind, user_id, session_id, priced_at, payload, receipt,
	received_at FROM settlements WHERE device_id = ? AND close_event_id = ? FOR UPDATE`

// lockEvent locks the settlement and reads the event behind the lock.
func lockEvent(tx *gorm.DB, k key) (*pastEvent, error) {
	e := &pastEvent{key: k, standing: map[int64]int64{}}
	var rows []struct {
		OrderID    *int64
		Seq        *int64
		SeqEpoch   int
		Kind       cabinet.Kind
		UserID     *int64
		SessionID  *string
		PricedAt   time.Time
		Payload    []byte
		Receipt    []byte
		ReceivedAt time.Time
	}
	if err := tx.Raw(lockSettlement, k.deviceID, k.closeEventID).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("lock settlement %s: %w", e.name(), err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("settlement %s: %w", e.name(), ErrNotFound)
	}
	row := rows[0]
	var receipt cabinet.Receipt
	if err := json.Unmarshal(row.Receipt, &receipt); err != nil {
		return nil, fmt.Errorf("stored receipt of %s: %w", e.name(), err)
	}
	if row.Seq != nil {
		e.at = &inventory.Position{Epoch: row.SeqEpoch, Seq: *row.Seq}
	}
	e.restock, e.userID, e.pricedAt, e.currency = row.Kind == cabinet.KindRestock, row.UserID, row.PricedAt, receipt.Currency
	e.payload, e.receivedAt = row.Payload, row.ReceivedAt
	if len(e.payload) == 0 {
		if err := e.readArchivedPayload(tx); err != nil {
			return nil, err
		}
	}
	if row.SessionID != nil {
		if err := e.readApp(tx, *row.SessionID); err != nil {
			return nil, err
		}
	}
	return e, e.read(tx, row.OrderID)
}

func (e *pastEvent) readArchivedPayload(tx *gorm.DB) error {
	var rows []struct{ Payload []byte }
	err := tx.Raw("SELECT payload FROM settlement_payloads_archive WHERE device_id = ? AND close_event_id = ?", e.deviceID, e.closeEventID).
		Scan(&rows).Error
	if err != nil {
		return fmt.Errorf("read the archived payload of %s: %w", e.name(), err)
	}
	if len(rows) > 0 {
		e.payload = rows[0].Payload
	}
	return nil
}

// readApp reads whose door it was, which an order that is made now still is.
func (e *pastEvent) readApp(tx *gorm.DB, sessionID string) error {
	err := tx.Raw("SELECT NULLIF(app, '') FROM door_sessions WHERE session_id = ?", sessionID).Scan(&e.app).Error
	if err != nil {
		return fmt.Errorf("read the door session of %s: %w", e.name(), err)
	}
	return nil
}

func (e *pastEvent) read(tx *gorm.DB, orderID *int64) error {
	if e.restock {
		return e.readAdded(tx)
	}
	if orderID == nil {
		return nil
	}
	o, err := readOrder(tx, *orderID)
	if err != nil {
		return err
	}
	if o.Archived {
		if err := archive.RestoreOrder(tx, o.DeviceID, o.OrderID); err != nil {
			return err
		}
	}
	e.order = &o
	for _, l := range o.Lines {
		e.standing[l.ProductID] += l.Quantity
	}
	return nil
}

const readBrought = `SELECT product_id, SUM(quantity) AS quantity FROM (
	SELECT product_id, quantity FROM stock_movements FORCE INDEX (stock_movements_ref)
	WHERE device_id = ? AND ref IN ? AND (ref, kind) IN ?
	UNION ALL
	SELECT product_id, quantity FROM stock_movements_archive FORCE INDEX (stock_movements_archive_ref)
	WHERE device_id = ? AND ref IN ? AND (ref, kind) IN ?) m GROUP BY product_id`

// readAdded adds up what a restock door and the reviews of it brought.
func (e *pastEvent) readAdded(tx *gorm.DB) error {
	var ids []int64
	err := tx.Raw("SELECT review_id FROM reviews WHERE device_id = ? AND close_event_id = ?", e.deviceID, e.closeEventID).
		Scan(&ids).Error
	if err != nil {
		return fmt.Errorf("read reviews of %s: %w", e.name(), err)
	}
	refs, pairs := []string{e.closeEventID}, [][]any{{e.closeEventID, inventory.Restock}}
	for _, id := range ids {
		refs, pairs = append(refs, FormatID(id)), append(pairs, []any{FormatID(id), inventory.Review})
	}
	var added []ProposedLine
	err = tx.Raw(readBrought, e.deviceID, refs, pairs, e.deviceID, refs, pairs).Scan(&added).Error
	if err != nil {
		return fmt.Errorf("read movements of %s: %w", e.name(), err)
	}
	for _, l := range added {
		e.standing[l.ProductID] = l.Quantity
	}
	return nil
}

// correct books what a decision changes, and brings tags and order to the state that they have then. It returns the tags
// that moved. Promotions come last, as in a settlement, so that the two don't lock each other out.
func (e *pastEvent) correct(tx *gorm.DB, attempt int, review *Review, r *Resolution, now time.Time) ([]tagChange, error) {
	change := r.differences(review, e.standing)
	orderID := e.orderNumber(now)
	if err := e.book(tx, attempt, change, r.ReviewID, now); err != nil {
		return nil, err
	}
	for product, units := range change {
		e.standing[product] += units
	}
	waits, err := e.underReview(tx, r.ReviewID)
	if err != nil {
		return nil, err
	}
	moved, err := e.placeTags(tx, attempt, change, orderID, waits, now)
	if err != nil {
		return nil, err
	}
	lines, doors, err := e.price(tx, attempt, change, r, orderID)
	if err != nil || e.restock || e.order == nil && len(lines) == 0 {
		return moved, err
	}
	if err := e.writeOrder(tx, orderID, lines, e.statusAfter(waits), now); err != nil || doors == nil {
		return moved, err
	}
	e.returns = doors.Returns()
	return moved, doors.Write(tx, now)
}

// orderNumber is the number of the order, or the one that it gets if it is made now.
func (e *pastEvent) orderNumber(now time.Time) int64 {
	if e.order == nil {
		return database.NewID(now)
	}
	return e.order.OrderID
}

// book moves stock: what is charged beyond what stood leaves the books, what is given back returns to them, as far as they
// ever gave it. What a stock-take has counted since then moves nothing (R13).
func (e *pastEvent) book(tx *gorm.DB, attempt int, change map[int64]int64, reviewID int64, now time.Time) error {
	moves := e.moves(change, reviewID)
	keys := make([]inventory.Key, len(moves))
	for i, c := range moves {
		keys[i] = c.Key
	}
	ledger, err := inventory.OpenLedger(tx, keys, database.LockingFor(attempt))
	if err != nil {
		return err
	}
	short, err := e.short(tx, moves)
	if err != nil {
		return err
	}
	holds, err := e.openHolds(tx, moves)
	if err != nil {
		return err
	}
	for _, c := range moves {
		c.Short = short[c.ProductID]
		e.pickUp(holds, ledger.Book(c, now))
	}
	if err := ledger.Write(tx, now); err != nil {
		return err
	}
	return holds.Write(tx, now)
}

// moves are what a decision does to the shelf, in ascending order of products.
func (e *pastEvent) moves(change map[int64]int64, reviewID int64) []inventory.Change {
	sign := int64(-1)
	if e.restock {
		sign = 1
	}
	var moves []inventory.Change
	for _, product := range slices.Sorted(maps.Keys(change)) {
		moves = append(moves, inventory.Change{
			Key: inventory.Key{DeviceID: e.deviceID, ProductID: product}, Kind: inventory.Review, Quantity: sign * change[product],
			At: e.at, Ref: FormatID(reviewID),
		})
	}
	return moves
}

// underReview tells whether the order waits for a review other than the one given. A conflict's doesn't hold it: until
// somebody decides otherwise the first outcome stands (R3).
func (e *pastEvent) underReview(tx *gorm.DB, except int64) (bool, error) {
	var waiting int
	err := tx.Raw(`SELECT COUNT(*) FROM reviews WHERE device_id = ? AND close_event_id = ? AND conflict_digest IS NULL
		AND status = ? AND review_id <> ?`, e.deviceID, e.closeEventID, openReview, except).Scan(&waiting).Error
	if err != nil {
		return false, fmt.Errorf("read reviews of %s: %w", e.name(), err)
	}
	return waiting > 0, nil
}

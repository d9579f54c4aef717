package audit

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

const (
	kindSale      = "sale"
	kindRestock   = "restock"
	kindStocktake = "stocktake"
	kindWriteoff  = "writeoff"
	kindReview    = "review"
	kindRefund    = "refund"
	kindShortfall = "shortfall"
)

// movement is one line of the ledger and what belongs to it elsewhere.
type movement struct {
	device, product, version int64
	archived                 bool
	kind, ref                string
	quantity, delta, balance int64
	at                       place // of its event in the cabinet's sequence

	stock, stockVersion sql.Null[int64]  // of its device_stock row
	counted             place            // likewise: the last stock-take's
	discrepancyKind     sql.Null[string] // of the discrepancy that it left
	discrepancy         sql.Null[int64]
	outcome             sql.Null[string] // of the settlement that ref may name
	order               sql.Null[int64]  // of that settlement
	sold                int64            // units of the product that were sure, on that settlement's order
	restock             sql.Null[string] // restocks.restock_id that ref may name
	writeoff            sql.Null[string] // likewise
	stocktake           sql.Null[string] // likewise
	asOf                place            // of that stock-take
	refunded            sql.Null[int64]  // the order that a refund's ref names
	reviewed            sql.Null[string] // the event of the review that ref may name
}

func (m *movement) key() string {
	return fmt.Sprintf("%s device=%d product=%d version=%d", movementTables.inWhich(m.archived), m.device, m.product, m.version)
}

// shortfall is what the books did not have, as the movement's discrepancy tells it.
func (m *movement) shortfall() int64 {
	if m.discrepancyKind.V == kindShortfall {
		return m.discrepancy.V
	}
	return 0
}

var movementTables = spread{
	table: "stock_movements", key: []string{"device_id", "product_id", "version"},
	columns: "kind, ref, quantity, delta, balance, seq_epoch, seq",
}

// soldIn adds up the sure lines of a table of lines that are on the event's order.
func soldIn(lines string) string {
	return `COALESCE((SELECT SUM(l.quantity) FROM ` + lines + ` l
         WHERE l.device_id = s.device_id AND l.order_id = s.order_id AND l.product_id = m.product_id AND l.origin = 'settlement'), 0)`
}

var readMovements = `
SELECT m.archived, m.device_id, m.product_id, m.version, m.kind, m.ref, m.quantity, m.delta, m.balance, m.seq_epoch, m.seq,
       d.stock, d.version, d.counted_epoch, d.counted_seq, x.kind, x.quantity, s.outcome, s.order_id,
       ` + soldIn("order_lines") + ` + ` + soldIn("order_lines_archive") + `,
       r.restock_id, w.writeoff_id, t.stocktake_id, t.seq_epoch, t.as_of_seq, COALESCE(o.order_id, oa.order_id),
       v.close_event_id
  FROM ` + movementTables.page() + ` m
  LEFT JOIN device_stock d ON d.device_id = m.device_id AND d.product_id = m.product_id
  LEFT JOIN discrepancies x ON x.device_id = m.device_id AND x.product_id = m.product_id AND x.version = m.version
  LEFT JOIN settlements s ON s.device_id = m.device_id AND s.close_event_id = m.ref
  LEFT JOIN restocks r ON r.device_id = m.device_id AND r.restock_id = m.ref
  LEFT JOIN writeoffs w ON w.device_id = m.device_id AND w.writeoff_id = m.ref
  LEFT JOIN stocktakes t ON t.device_id = m.device_id AND t.stocktake_id = m.ref
  LEFT JOIN orders o ON o.order_id = CONVERT(IF(m.kind = 'refund', m.ref, NULL), UNSIGNED) AND CONVERT(o.order_id, CHAR) = m.ref
                    AND o.device_id = m.device_id
  LEFT JOIN orders_archive oa ON oa.order_id = CONVERT(IF(m.kind = 'refund', m.ref, NULL), UNSIGNED) AND CONVERT(oa.order_id, CHAR) = m.ref
                             AND oa.device_id = m.device_id
  LEFT JOIN reviews v ON v.review_id = CONVERT(IF(m.kind = 'review', m.ref, NULL), UNSIGNED) AND CONVERT(v.review_id, CHAR) = m.ref
                     AND v.device_id = m.device_id
 ORDER BY m.device_id, m.product_id, m.version, m.archived`

func (a *auditor) movements(ctx context.Context) error {
	var m movement
	l := &ledger{}
	place := []*int64{&m.device, &m.product, &m.version}
	row := []any{
		&m.kind, &m.ref, &m.quantity, &m.delta, &m.balance, &m.at.epoch, &m.at.seq,
		&m.stock, &m.stockVersion, &m.counted.epoch, &m.counted.seq, &m.discrepancyKind, &m.discrepancy, &m.outcome, &m.order,
		&m.sold, &m.restock, &m.writeoff, &m.stocktake, &m.asOf.epoch, &m.asOf.seq, &m.refunded, &m.reviewed,
	}
	err := a.eachOf(ctx, movementTables, readMovements, place, &m.archived, row, func() {
		if m.device != l.last.device || m.product != l.last.product {
			a.checkLast(l)
			l = &ledger{last: movement{device: m.device, product: m.product}}
		}
		a.checkChain(&l.last, &m)
		a.checkMeaning(l, &m)
		l.add(m)
	})
	if err == nil {
		a.checkLast(l)
	}
	return err
}

func (a *auditor) checkChain(last, m *movement) {
	a.i2.Rows++
	if m.version != last.version+1 {
		a.i2.violated("%s: follows version %d", m.key(), last.version)
	}
	if m.balance != last.balance+m.delta {
		a.i2.violated("%s: balance %d, but %d before it and delta %d", m.key(), m.balance, last.balance, m.delta)
	}
}

// checkLast compares the last movement of a product with its stock row.
func (a *auditor) checkLast(l *ledger) {
	last := &l.last
	if last.version == 0 {
		return
	}
	if !last.stock.Valid {
		a.i4.violated("stock_movements device=%d product=%d: no device_stock row", last.device, last.product)
		return
	}
	key := stockKey(last.device, last.product)
	switch {
	case last.stock.V != last.balance:
		a.i2.violated("%s: stock %d, last balance %d", key, last.stock.V, last.balance)
	case last.stock.V != l.sum:
		a.i2.violated("%s: stock %d, sum of deltas %d", key, last.stock.V, l.sum)
	}
	if last.stockVersion.V != last.version {
		a.i2.violated("%s: version %d, last movement %d", key, last.stockVersion.V, last.version)
	}
	if last.counted.compare(l.counted) != 0 {
		a.i2.violated("%s: counted up to %s, the last stock-take up to %s", key, last.counted, l.counted)
	}
}

func (a *auditor) checkMeaning(l *ledger, m *movement) {
	a.i4.Rows++
	if m.balance < 0 {
		a.i4.violated("%s: balance %d", m.key(), m.balance)
	}
	switch m.kind {
	case kindSale:
		a.checkSale(l, m)
	case kindRestock:
		a.checkRestock(l, m)
	case kindWriteoff:
		a.checkWriteoff(l, m)
	case kindStocktake:
		a.checkStocktake(l, m)
	case kindReview:
		a.checkReviewed(l, m)
	case kindRefund:
		a.checkRefund(l, m)
	default:
		a.i4.violated("%s: kind %q is none that is ever written", m.key(), m.kind)
	}
}

func (a *auditor) checkSale(l *ledger, m *movement) {
	a.i3.Rows++
	a.checkBooked(l, m, m.quantity < 0)
	switch {
	case !m.outcome.Valid:
		a.i4.Lost++
		a.i4.violated("%s: no settlement of event=%s", m.key(), m.ref)
	case m.outcome.V == outcomeEmpty || m.outcome.V == outcomeRestocked:
		a.i1.violated("settlements device=%d event=%s: outcome %s, but product %d was sold", m.device, m.ref, m.outcome.V, m.product)
	case m.sold != -m.quantity:
		a.i3.violated("%s: %d taken, order lines of event=%s say %d", m.key(), -m.quantity, m.ref, m.sold)
	}
}

// checkBooked works out again what a movement did to the books: what happened, in full, or down to 0 with a shortfall of the
// rest (R4), or nothing where a stock-take had counted it already (R13). What a review gives back takes back the event's shortfall first.
func (a *auditor) checkBooked(l *ledger, m *movement, right bool) {
	before := m.balance - m.delta
	delta := max(m.quantity, -before) - min(max(m.quantity, 0), l.lacking(m))
	short := delta - m.quantity
	if l.counted.covers(m.at) {
		delta, short = 0, 0
	}
	recorded := m.discrepancyKind.V == kindShortfall // also one of nothing
	if !right || m.delta != delta || m.shortfall() != short || recorded != (short != 0) {
		a.i3.violated("%s: quantity %d, delta %d, shortfall %d", m.key(), m.quantity, m.delta, m.shortfall())
	}
}

func (a *auditor) checkRestock(l *ledger, m *movement) {
	a.checkBooked(l, m, m.quantity > 0)
	// A restock door with a doubt waits for review too, but never has an order (R11).
	byDoor := m.outcome.V == outcomeRestocked || m.outcome.V == outcomeReview && !m.order.Valid
	if !m.restock.Valid && !byDoor {
		a.i4.violated("%s: no restock and no restocked settlement %s", m.key(), m.ref)
	}
}

func (a *auditor) checkWriteoff(l *ledger, m *movement) {
	a.checkBooked(l, m, m.quantity < 0)
	if !m.writeoff.Valid {
		a.i4.violated("%s: no write-off %s", m.key(), m.ref)
	}
}

// checkRefund: units of a refunded order came back to the books.
func (a *auditor) checkRefund(l *ledger, m *movement) {
	a.checkBooked(l, m, m.quantity > 0)
	if !m.refunded.Valid {
		a.i4.violated("%s: no order=%s", m.key(), m.ref)
	}
}

func stockKey(device, product int64) string {
	return fmt.Sprintf("device_stock device=%d product=%d", device, product)
}

// A row that has no movements yet is at version 0 and empty. One whose movements are archived has its opening movement live.
const readStock = `
SELECT d.device_id, d.product_id, d.stock, d.version, NOT EXISTS (
         SELECT 1 FROM stock_movements m WHERE m.device_id = d.device_id AND m.product_id = d.product_id)
  FROM device_stock d FORCE INDEX (PRIMARY)
 ORDER BY d.device_id, d.product_id`

func (a *auditor) stock(ctx context.Context) error {
	var device, product, stock, version int64
	var bare bool
	return a.each(ctx, readStock, []any{&device, &product, &stock, &version, &bare}, func() {
		a.i2.Rows++
		a.i4.Rows++
		if stock < 0 {
			a.i4.violated("%s: stock %d", stockKey(device, product), stock)
		}
		if bare && (version != 0 || stock != 0) {
			a.i2.violated("%s: stock %d, version %d, but no movement", stockKey(device, product), stock, version)
		}
	})
}

// leaves says which discrepancies a movement of a kind may leave.
var leaves = map[string][]string{
	kindSale:      {kindShortfall},
	kindWriteoff:  {kindShortfall},
	kindReview:    {kindShortfall},
	kindStocktake: {kindStocktake},
}

const readDiscrepancies = `
SELECT d.device_id, d.product_id, d.version, d.kind, d.quantity, d.ref, COALESCE(m.kind, a.kind), COALESCE(m.ref, a.ref)
  FROM discrepancies d FORCE INDEX (PRIMARY)
  LEFT JOIN stock_movements m ON m.device_id = d.device_id AND m.product_id = d.product_id AND m.version = d.version
  LEFT JOIN stock_movements_archive a ON a.device_id = d.device_id AND a.product_id = d.product_id AND a.version = d.version
 ORDER BY d.device_id, d.product_id, d.version`

func (a *auditor) discrepancies(ctx context.Context) error {
	var device, product, version, quantity int64
	var kind, ref string
	var movementKind, movementRef sql.Null[string]
	row := []any{&device, &product, &version, &kind, &quantity, &ref, &movementKind, &movementRef}
	return a.each(ctx, readDiscrepancies, row, func() {
		a.i4.Rows++
		key := fmt.Sprintf("discrepancies device=%d product=%d version=%d", device, product, version)
		switch {
		case !movementKind.Valid:
			a.i4.violated("%s: no such movement", key)
		case movementRef.V != ref:
			a.i4.violated("%s: ref %s, the movement's is %s", key, ref, movementRef.V)
		case !slices.Contains(leaves[movementKind.V], kind):
			a.i4.violated("%s: a %s of a %s", key, kind, movementKind.V)
		case quantity == 0 || quantity < 0 && kind == kindShortfall && movementKind.V != kindReview:
			a.i3.violated("%s: quantity %d", key, quantity)
		}
	})
}

package audit

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	kindSale      = "sale"
	kindRestock   = "restock"
	kindReview    = "review"
	kindShortfall = "shortfall"
)

// movement is one line of the ledger and what belongs to it elsewhere.
type movement struct {
	device, product, version int64
	kind, ref                string
	quantity, delta, balance int64

	stock, stockVersion, countedSeq sql.Null[int64]  // of its device_stock row
	shortfall                       sql.Null[int64]  // of its discrepancy
	outcome                         sql.Null[string] // of the settlement that ref may name
	order                           sql.Null[int64]  // of that settlement
	restock                         sql.Null[string] // restocks.restock_id that ref may name
	sold                            sql.Null[int64]  // units of the product on that settlement's order
}

func (m *movement) key() string {
	return fmt.Sprintf("stock_movements device=%d product=%d version=%d", m.device, m.product, m.version)
}

const readMovements = `
SELECT m.device_id, m.product_id, m.version, m.kind, m.ref, m.quantity, m.delta, m.balance,
       d.stock, d.version, d.counted_seq, x.quantity, s.outcome, s.order_id, r.restock_id,
       (SELECT SUM(l.quantity) FROM order_lines l
         WHERE l.device_id = s.device_id AND l.order_id = s.order_id
           AND l.product_id = m.product_id AND l.origin = 'settlement')
  FROM stock_movements m FORCE INDEX (PRIMARY)
  LEFT JOIN device_stock d ON d.device_id = m.device_id AND d.product_id = m.product_id
  LEFT JOIN discrepancies x ON x.device_id = m.device_id AND x.product_id = m.product_id
                           AND x.version = m.version AND x.kind = 'shortfall'
  LEFT JOIN settlements s ON s.device_id = m.device_id AND s.close_event_id = m.ref
  LEFT JOIN restocks r ON r.device_id = m.device_id AND r.restock_id = m.ref
 ORDER BY m.device_id, m.product_id, m.version`

func (a *auditor) movements(ctx context.Context) error {
	var m, last movement
	var sum int64
	row := []any{
		&m.device, &m.product, &m.version, &m.kind, &m.ref, &m.quantity, &m.delta, &m.balance,
		&m.stock, &m.stockVersion, &m.countedSeq, &m.shortfall, &m.outcome, &m.order, &m.restock, &m.sold,
	}
	err := a.each(ctx, readMovements, row, func() {
		if m.device != last.device || m.product != last.product {
			a.checkLast(&last, sum)
			last, sum = movement{device: m.device, product: m.product}, 0
		}
		a.checkChain(&last, &m)
		a.checkMeaning(&m)
		last, sum = m, sum+m.delta
	})
	if err == nil {
		a.checkLast(&last, sum)
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
func (a *auditor) checkLast(last *movement, sum int64) {
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
	case last.stock.V != sum:
		a.i2.violated("%s: stock %d, sum of deltas %d", key, last.stock.V, sum)
	}
	if last.stockVersion.V != last.version {
		a.i2.violated("%s: version %d, last movement %d", key, last.stockVersion.V, last.version)
	}
}

func (a *auditor) checkMeaning(m *movement) {
	a.i4.Rows++
	if m.balance < 0 {
		a.i4.violated("%s: balance %d", m.key(), m.balance)
	}
	switch m.kind {
	case kindSale:
		a.checkSale(m)
	case kindRestock:
		a.checkRestock(m)
	case kindReview:
		a.checkReviewed(m)
	default:
		a.i4.violated("%s: kind %q is none that is ever written", m.key(), m.kind)
	}
}

func (a *auditor) checkSale(m *movement) {
	a.i3.Rows++
	if !m.booked(-m.quantity, -m.delta) {
		a.i3.violated("%s: quantity %d, delta %d, shortfall %d", m.key(), m.quantity, m.delta, m.shortfall.V)
	}
	switch {
	case !m.outcome.Valid:
		a.i4.Lost++
		a.i4.violated("%s: no settlement of event=%s", m.key(), m.ref)
	case m.outcome.V == outcomeEmpty || m.outcome.V == outcomeRestocked:
		a.i1.violated("settlements device=%d event=%s: outcome %s, but product %d was sold", m.device, m.ref, m.outcome.V, m.product)
	case m.sold.V != -m.quantity:
		a.i3.violated("%s: %d taken, order lines of event=%s say %d", m.key(), -m.quantity, m.ref, m.sold.V)
	}
}

// booked tells whether what the books took in makes up for what happened: in full, or less the shortfall of a sale that left
// nothing (R4), or not at all where a stock-take had counted it already (R13).
func (m *movement) booked(happened, books int64) bool {
	if happened <= 0 || books < 0 || books > happened || m.shortfall.Valid && m.balance > 0 {
		return false
	}
	late := books == 0 && m.countedSeq.Valid && !m.shortfall.Valid
	return late || happened == books+m.shortfall.V
}

func (a *auditor) checkRestock(m *movement) {
	if !m.booked(m.quantity, m.delta) {
		a.i3.violated("%s: quantity %d, delta %d", m.key(), m.quantity, m.delta)
	}
	// A restock door with a doubt waits for review too, but never has an order (R11).
	byDoor := m.outcome.V == outcomeRestocked || m.outcome.V == outcomeReview && !m.order.Valid
	if !m.restock.Valid && !byDoor {
		a.i4.violated("%s: no restock and no restocked settlement %s", m.key(), m.ref)
	}
}

func stockKey(device, product int64) string {
	return fmt.Sprintf("device_stock device=%d product=%d", device, product)
}

// A row that has no movements yet is at version 0 and empty.
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

const readDiscrepancies = `
SELECT d.device_id, d.product_id, d.version, d.kind, d.quantity, d.ref, m.kind, m.ref
  FROM discrepancies d FORCE INDEX (PRIMARY)
  LEFT JOIN stock_movements m ON m.device_id = d.device_id AND m.product_id = d.product_id AND m.version = d.version
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
		case kind != kindShortfall || movementKind.V != kindSale && movementKind.V != kindReview:
			a.i4.violated("%s: a %s of a %s", key, kind, movementKind.V)
		case quantity <= 0:
			a.i3.violated("%s: quantity %d", key, quantity)
		}
	})
}

const readRestocks = `
SELECT r.device_id, r.restock_id, EXISTS (
         SELECT 1 FROM stock_movements m FORCE INDEX (stock_movements_ref)
          WHERE m.device_id = r.device_id AND m.ref = r.restock_id AND m.kind = 'restock')
  FROM restocks r FORCE INDEX (PRIMARY)
 ORDER BY r.device_id, r.restock_id`

func (a *auditor) restocks(ctx context.Context) error {
	var device int64
	var restock string
	var moved bool
	return a.each(ctx, readRestocks, []any{&device, &restock, &moved}, func() {
		a.i4.Rows++
		if !moved {
			a.i4.violated("restocks device=%d restock=%s: no movement", device, restock)
		}
	})
}

package audit

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
)

// place is a place in a cabinet's sequence of events. Without an epoch it is none; an epoch without a seq comes before all
// events of that epoch, so that a row that was never counted stands at the very beginning.
type place struct{ epoch, seq sql.Null[int64] }

// covers tells whether a stock-take as of p has counted what belongs to an event at a place (R13).
func (p place) covers(at place) bool { return at.seq.Valid && p.compare(at) >= 0 }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.epoch.V, other.epoch.V), cmp.Compare(p.order(), other.order()))
}

func (p place) order() int64 {
	if !p.seq.Valid {
		return -1
	}
	return p.seq.V
}

func (p place) String() string {
	if !p.seq.Valid {
		return fmt.Sprintf("epoch=%d", p.epoch.V)
	}
	return fmt.Sprintf("epoch=%d seq=%d", p.epoch.V, p.seq.V)
}

// ledger is what is known of one product of one cabinet while its movements pass by.
type ledger struct {
	last    movement
	sum     int64
	counted place   // the last stock-take's
	placed  []event // since the last stock-take, or beyond it
	short   map[taking]int64
}

// taking is an event whose units the books may have lacked. placed tells that it has a place in the cabinet's sequence.
type taking struct {
	event  string
	placed bool
}

// takingOf is the event that a movement, or the review behind it, belongs to.
func takingOf(m *movement) taking {
	event := m.ref
	if m.kind == kindReview {
		event = m.reviewed.V
	}
	return taking{event, m.at.seq.Valid}
}

// lacking is what is on record of the shortfalls of a review's event, which is taken back before units return to the books.
func (l *ledger) lacking(m *movement) int64 {
	if m.kind != kindReview {
		return 0
	}
	return max(0, l.short[takingOf(m)])
}

// event is the part of a movement that a stock-take looks back at.
type event struct {
	at              place
	quantity, delta int64
}

func (l *ledger) add(m movement) {
	l.last, l.sum = m, l.sum+m.delta
	if m.at.seq.Valid {
		l.placed = append(l.placed, event{m.at, m.quantity, m.delta})
	}
	if m.kind == kindSale || m.kind == kindReview {
		l.addShort(&m)
	}
	if m.kind != kindStocktake || !m.stocktake.Valid {
		return
	}
	l.counted = m.asOf
	if m.discrepancyKind.V == kindStocktake && m.discrepancy.V > 0 { // that made good what the books lacked
		maps.DeleteFunc(l.short, func(t taking, _ int64) bool { return t.placed })
	}
	beyond := l.placed[:0] // none of the others is looked back at again: counts don't go back
	for _, e := range l.placed {
		if !l.counted.covers(e.at) {
			beyond = append(beyond, e)
		}
	}
	l.placed = beyond
}

func (l *ledger) addShort(m *movement) {
	if l.short == nil {
		l.short = make(map[taking]int64)
	}
	if units := m.shortfall(); units != 0 {
		l.short[takingOf(m)] += units
	}
}

// after adds up what events of the same controller after a place had done before the count was booked.
func (l *ledger) after(p place) (quantity, delta int64) {
	for _, e := range l.placed {
		if p.seq.Valid && e.at.epoch == p.epoch && e.at.seq.V > p.seq.V {
			quantity, delta = quantity+e.quantity, delta+e.delta
		}
	}
	return quantity, delta
}

// checkStocktake works out again what a count made of the books. What was counted is what was booked as of then and the
// difference that was recorded.
func (a *auditor) checkStocktake(l *ledger, m *movement) {
	if !m.stocktake.Valid {
		a.i4.violated("%s: no stock-take %s", m.key(), m.ref)
		return
	}
	a.i3.Rows++
	quantity, delta := l.after(m.asOf)
	before := m.balance - m.delta
	counted := before - delta
	if m.discrepancyKind.V == kindStocktake {
		counted += m.discrepancy.V
	}
	want := max(0, counted+quantity) - before
	if counted < 0 || m.delta != want || m.quantity != m.delta {
		a.i3.violated("%s: quantity %d, delta %d, but %d counted as of %s make it %d",
			m.key(), m.quantity, m.delta, counted, m.asOf, want)
	}
	if m.asOf.compare(l.counted) < 0 {
		a.i3.violated("%s: counts up to %s, the count before it up to %s", m.key(), m.asOf, l.counted)
	}
}

// document is a kind of table whose rows each stand behind movements.
type document struct{ table, id, kind string }

func (a *auditor) documents(d document) func(context.Context) error {
	query := fmt.Sprintf(`
SELECT r.device_id, r.%[2]s, EXISTS (
         SELECT 1 FROM stock_movements m FORCE INDEX (stock_movements_ref)
          WHERE m.device_id = r.device_id AND m.ref = r.%[2]s AND m.kind = '%[3]s')
       OR EXISTS (
         SELECT 1 FROM stock_movements_archive m FORCE INDEX (stock_movements_archive_ref)
          WHERE m.device_id = r.device_id AND m.ref = r.%[2]s AND m.kind = '%[3]s')
  FROM %[1]s r FORCE INDEX (PRIMARY)
 ORDER BY r.device_id, r.%[2]s`, d.table, d.id, d.kind)
	return func(ctx context.Context) error {
		var device int64
		var id string
		var moved bool
		return a.each(ctx, query, []any{&device, &id, &moved}, func() {
			a.i4.Rows++
			if !moved {
				a.i4.violated("%s device=%d %s=%s: no movement", d.table, device, d.kind, id)
			}
		})
	}
}

package simulator

import (
	"fmt"
	"maps"
	"slices"

	"doortab/cabinet"
)

// verdict is what became of one event.
type verdict struct {
	key           eventKey
	lost, doubled bool
	sentences     []string
}

func (v *verdict) lose(format string, args ...any) {
	v.lost = true
	v.say(format, args...)
}

func (v *verdict) double(format string, args ...any) {
	v.doubled = true
	v.say(format, args...)
}

func (v *verdict) say(format string, args ...any) {
	v.sentences = append(v.sentences, v.key.String()+": "+fmt.Sprintf(format, args...))
}

func judge(e *entry, got *theirs, ledger map[int64]*booked) verdict {
	v := verdict{key: e.key}
	v.receipts(e)
	switch settled, ok := got.settlements[e.key]; {
	case ok:
		v.settlement(e, settled)
	case e.answered || !e.pending:
		v.lose("it has no settlement")
	}
	due, known := e.due(got)
	v.orders(e, due, known, got.orders[e.key])
	v.deductions(e, due, known, ledger)
	return v
}

// due is what the order's first lines must be. known is false where neither a receipt nor a settlement was read.
func (e *entry) due(got *theirs) (list []quantity, known bool) {
	settled, ok := got.settlements[e.key]
	switch {
	case e.counted:
		return e.sure, true
	case e.answered:
		return e.charged, true
	case ok:
		return byProduct(settled.Receipt.Lines), true
	default:
		return nil, false
	}
}

// possible tells whether an outcome can be that of the event.
func (e *entry) possible(o cabinet.Outcome) bool {
	switch {
	case o == cabinet.Review:
		return true
	case e.restock:
		return o == cabinet.Restocked
	default:
		return o == cabinet.Settled || o == cabinet.Empty
	}
}

// receipts checks what the cabinet was told.
func (v *verdict) receipts(e *entry) {
	switch {
	case !e.answered && e.pending:
		return
	case !e.answered:
		v.lose("its receipt never came")
		return
	case !e.possible(e.outcome):
		v.lose("its receipt said %s, which is no outcome of it", e.outcome)
	case e.counted:
		v.lines("its receipt", e.sure, e.charged)
	}
	if e.contradict != "" {
		v.double("another receipt said %s", e.contradict)
	}
	if e.changed && !e.conflicted && !e.pending {
		v.lose("the other content under its id was never answered as a conflict")
	}
}

func (v *verdict) settlement(e *entry, s settlementRow) {
	if e.counted && s.Outcome != e.want {
		v.say("its outcome is %s, want %s", s.Outcome, e.want)
	}
	if e.answered && (e.outcome != s.Outcome || e.orderID != s.OrderID && !e.mayGainOrder()) {
		v.double("its receipt said %s with order %q, its settlement is %s with order %q", e.outcome, e.orderID, s.Outcome, s.OrderID)
	}
	if e.answered && !e.counted {
		v.lines("its stored receipt", e.charged, byProduct(s.Receipt.Lines))
	}
	if e.conflicted && len(s.Conflicts) == 0 {
		v.lose("the other content under its id wasn't kept")
	}
}

// mayGainOrder: an operator's decision makes an order where there was none.
func (e *entry) mayGainOrder() bool { return e.orderID == "" && !e.restock && len(e.decisions) > 0 }

func (v *verdict) orders(e *entry, due []quantity, known bool, orders []orderRow) {
	final, sure, needed := e.afterReviews(due)
	switch {
	case len(orders) > 1:
		v.double("it has %d orders, %s and %s among them", len(orders), orders[0].OrderID, orders[1].OrderID)
		return
	case len(orders) == 0 && e.pending && !e.answered:
		return
	case len(orders) == 0 && needed && known:
		v.lose("it has no order for what was taken")
		return
	case len(orders) == 0 || !known:
		return
	case !needed && sure:
		v.double("nothing was taken, and yet it has order %s", orders[0].OrderID)
		return
	}
	order := orders[0]
	if sure {
		v.lines("order "+order.OrderID, final, byProduct(order.Lines))
	}
	if order.UserID != e.userID {
		v.lose("order %s is user %d's, user %d took the goods", order.OrderID, order.UserID, e.userID)
	}
	if e.answered && e.orderID != order.OrderID && !e.mayGainOrder() {
		v.double("its receipt named order %q, its order is %s", e.orderID, order.OrderID)
	}
}

// afterReviews is what an event comes to after all decisions. sure is false where one of them was never answered; needed
// tells whether there must be an order for it, which stays where a decision takes everything off it.
func (e *entry) afterReviews(due []quantity) (final []quantity, sure, needed bool) {
	if e.restock {
		return nil, true, false
	}
	sure, needed = true, len(due) > 0
	standing := toMap(due)
	for _, d := range e.decisions {
		if d.unsure {
			return nil, false, needed
		}
		standing = merged(standing, d.changes(standing))
		needed = needed || len(fromMap(standing)) > 0
	}
	return fromMap(standing), sure, needed
}

// lines compares what was taken with what is charged; both are sorted.
func (v *verdict) lines(where string, taken, charged []quantity) {
	rest := make(map[int64]int64)
	for _, q := range charged {
		rest[q.ProductID] += q.Quantity
	}
	for _, q := range taken {
		rest[q.ProductID] -= q.Quantity
	}
	for _, q := range fromMap(rest) {
		if q.Quantity < 0 {
			v.lose("%s lacks %d of product %d", where, -q.Quantity, q.ProductID)
		} else {
			v.double("%s has %d of product %d too many", where, q.Quantity, q.ProductID)
		}
	}
}

// deductions looks for a second deduction. One that is missing or too small shows as drift.
func (v *verdict) deductions(e *entry, due []quantity, known bool, ledger map[int64]*booked) {
	charged := toMap(due)
	for _, productID := range slices.Sorted(maps.Keys(ledger)) {
		of, more := ledger[productID], int64(0)
		if known && !e.restock {
			more = of.units - charged[productID]
		}
		if of.movements > 1 || of.movements == 1 && more > 0 {
			v.double("product %d was booked %d times, %d units more than were taken", productID, of.movements, more)
		}
	}
	if units := sum(e.truth); e.restock && e.answered && e.outcome == cabinet.Restocked && units >= plainlySeen && len(ledger) == 0 {
		v.lose("%d units were brought and none was booked", units)
	}
}

// plainlySeen is how many units no sensor can miss at a restock, whatever is tidied up beside.
const plainlySeen = 10

func sum(list []quantity) (units int64) {
	for _, q := range list {
		units += q.Quantity
	}
	return units
}

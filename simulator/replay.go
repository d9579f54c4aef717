package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// replay works out again what everything that happened must have done to book stock (R4, R12, R13), movement for movement.
type replay struct {
	want   *expected
	got    *theirs
	events map[eventKey]*entry
	papers map[movementKey]*paper         // that were answered, by the movements that they made
	open   map[stockKey][]*paper          // that were never answered
	judged map[string]judged              // by review
	came   map[eventKey]map[int64]int64   // units by product that an event has come to: charged, or brought
	booked map[eventKey]map[int64]*booked // by product
	late   map[eventKey]bool              // restock doors of which a count was quicker: the ledger doesn't show what they brought
}

type movementKey struct {
	stockKey
	version int64
}

type judged struct {
	entry *entry
	decision
}

// booked is what the ledger has of one product of an event.
type booked struct {
	movements int   // of the event itself
	units     int64 // that these took off the books
	reviews   map[string]bool
}

func newReplay(want *expected, got *theirs) *replay {
	r := &replay{
		want: want, got: got, events: make(map[eventKey]*entry), papers: make(map[movementKey]*paper),
		open: make(map[stockKey][]*paper), judged: make(map[string]judged), came: make(map[eventKey]map[int64]int64),
		booked: make(map[eventKey]map[int64]*booked), late: make(map[eventKey]bool),
	}
	for i := range want.entries {
		e := &want.entries[i]
		r.events[e.key], r.came[e.key] = e, make(map[int64]int64)
		r.booked[e.key] = make(map[int64]*booked)
		for _, d := range e.decisions {
			r.judged[d.reviewID] = judged{e, d}
		}
	}
	for i := range want.papers {
		p := &want.papers[i]
		for _, m := range p.Movements {
			r.papers[movementKey{stockKey{p.deviceID, m.ProductID}, m.Version}] = p
		}
		for _, q := range p.lines {
			if key := (stockKey{p.deviceID, q.ProductID}); !p.answered {
				r.open[key] = append(r.open[key], p)
			}
		}
	}
	return r
}

// row is book stock on its way through the ledger.
type row struct {
	key stockKey
	balance
	counted int64 // the seq that the last stock-take counted up to
	later   []placed
	short   map[string]int64 // by event, what it took beyond the books, and no count has made good
}

// placed is what an event did, in units, with its place in the cabinet's sequence.
type placed struct {
	seq, units int64
	delta      int64 // what it did to the books
}

// walk says what is wrong with each row that drifted.
func (r *replay) walk() map[stockKey]error {
	wrong := make(map[stockKey]error)
	keys := maps.Clone(r.want.opening)
	maps.Copy(keys, r.got.stock)
	for key := range keys {
		if err := r.check(key); err != nil {
			wrong[key] = err
		}
	}
	for key, err := range r.missing() {
		if wrong[key] == nil {
			wrong[key] = err
		}
	}
	return wrong
}

// check says what is wrong with a row of stock; nil where nothing is.
func (r *replay) check(key stockKey) error {
	at := &row{key: key, balance: r.want.opening[key], short: make(map[string]int64)}
	stock := r.got.stock[key]
	var wrong error
	for _, m := range inOrder(r.got.movements[key]) {
		if at.version == stock.version && r.want.unsettled[key.deviceID] {
			break // it was made after the stock was read
		}
		if err := r.step(at, m); err != nil && wrong == nil {
			wrong = err
		}
		at.stock, at.version = m.Balance, m.Version
	}
	if wrong == nil && at.balance != stock {
		wrong = fmt.Errorf("%d on the books after %d movements, %d by %d movements", stock.stock, stock.version, at.stock, at.version)
	}
	return wrong
}

// inOrder is by version: Doortab lists movements by the clock, which two transactions may have read in another order.
func inOrder(movements []movementRow) []movementRow {
	return slices.SortedFunc(slices.Values(movements), func(a, b movementRow) int { return cmp.Compare(a.Version, b.Version) })
}

func (r *replay) step(at *row, m movementRow) error {
	delta, err := r.delta(at, m)
	switch {
	case err != nil:
		return fmt.Errorf("movement %d, %s of %s, is on the books: %w", m.Version, m.Kind, m.Ref, err)
	case m.Version != at.version+1 || m.Delta != delta || m.Balance != at.stock+delta:
		return fmt.Errorf("movement %d, %s of %s, makes it %d on the books, changed by %d; want movement %d to make it %d",
			m.Version, m.Kind, m.Ref, m.Balance, m.Delta, at.version+1, at.stock+delta)
	default:
		return nil
	}
}

// delta is what a movement must do to the books.
func (r *replay) delta(at *row, m movementRow) (int64, error) {
	switch p := r.papers[movementKey{at.key, m.Version}]; {
	case p != nil && p.what == m.Kind:
		return at.paper(p), nil
	case m.Kind == "sale" || m.Kind == "restock":
		return r.event(at, m)
	case m.Kind == "review":
		return r.review(at, m)
	}
	return r.unanswered(at, m)
}

// paper is what a restock or a stock-take by REST does. What events did that come after the count is put on top of it.
func (at *row) paper(p *paper) int64 {
	units := toMap(p.lines)[at.key.productID]
	if p.what == "restock" {
		return units
	}
	missed := units - at.stock
	for _, l := range at.later {
		if l.seq > p.asOfSeq {
			units, missed = units+l.units, missed+l.delta
		}
	}
	at.counted = p.asOfSeq
	if missed > 0 {
		clear(at.short)
	}
	return max(0, units) - at.stock
}

// unanswered finds a paper whose answer never came.
func (r *replay) unanswered(at *row, m movementRow) (int64, error) {
	for i, p := range r.open[at.key] {
		if p.what == m.Kind && (m.Kind == "stocktake" || toMap(p.lines)[at.key.productID] == m.Delta) {
			r.open[at.key] = slices.Delete(r.open[at.key], i, i+1)
			return at.paper(p), nil
		}
	}
	return 0, errors.New("nobody did that")
}

// move books units of an event, as far as there are any (R4), unless a count has seen them (R13). What comes back was never
// taken off the books as far as the event took more than they had.
func (at *row) move(e *entry, units int64) (delta int64) {
	if e.seq > at.counted {
		short := at.short[e.key.id]
		delta = max(units, -at.stock) - min(max(units, 0), short)
		at.short[e.key.id] = short + delta - units
	}
	at.later = append(at.later, placed{e.seq, units, delta})
	return delta
}

func (r *replay) event(at *row, m movementRow) (int64, error) {
	e := r.events[eventKey{at.key.deviceID, m.Ref}]
	if e == nil || e.restock != (m.Kind == "restock") {
		return r.unanswered(at, m)
	}
	of := r.of(e, at.key.productID)
	of.movements++
	of.units -= m.Delta
	if of.movements > 1 {
		return 0, errors.New("it is the second one")
	}
	if !e.restock {
		return r.sale(at, m, e)
	}
	units := m.Delta
	if e.seq <= at.counted {
		r.late[e.key] = true
	} else if units < 1 {
		return 0, errors.New("it brought nothing")
	}
	r.came[e.key][at.key.productID] += units
	return at.move(e, units), nil
}

func (r *replay) sale(at *row, m movementRow, e *entry) (int64, error) {
	units := min(m.Delta, 0)
	if due, known := e.due(r.got); known {
		units = -toMap(due)[at.key.productID]
		if units == 0 {
			return 0, errors.New("none of it was charged")
		}
	}
	r.came[e.key][at.key.productID] -= units
	return at.move(e, units), nil
}

func (r *replay) of(e *entry, productID int64) *booked {
	of := r.booked[e.key][productID]
	if of == nil {
		of = &booked{reviews: make(map[string]bool)}
		r.booked[e.key][productID] = of
	}
	return of
}

func (r *replay) review(at *row, m movementRow) (int64, error) {
	j, ok := r.judged[m.Ref]
	if !ok || j.entry.key.deviceID != at.key.deviceID {
		return 0, errors.New("the fleet's operator didn't decide it")
	}
	of := r.of(j.entry, at.key.productID)
	if of.reviews[m.Ref] {
		return 0, errors.New("it is the second one")
	}
	of.reviews[m.Ref] = true
	came := r.came[j.entry.key]
	units := j.changes(map[int64]int64{at.key.productID: came[at.key.productID]})[at.key.productID]
	came[at.key.productID] += units
	if !j.entry.restock {
		units = -units
	}
	return at.move(j.entry, units), nil
}

// missing lists the rows that lack a movement.
func (r *replay) missing() map[stockKey]error {
	rows := make(map[stockKey]error)
	for _, key := range slices.SortedFunc(maps.Keys(r.events), compareKeys) {
		e := r.events[key]
		if e.restock {
			r.missingOfRestock(e, rows)
		} else {
			r.missingOfSale(e, rows)
		}
	}
	for _, p := range r.want.papers {
		for _, m := range p.Movements {
			key := stockKey{p.deviceID, m.ProductID}
			if !slices.ContainsFunc(r.got.movements[key], func(n movementRow) bool { return n.Version == m.Version }) {
				rows[key] = fmt.Errorf("movement %d, %s, was answered and isn't on the books", m.Version, p.what)
			}
		}
	}
	return rows
}

func (r *replay) missingOfSale(e *entry, rows map[stockKey]error) {
	due, known := e.due(r.got)
	if !known || e.pending && !e.answered {
		return
	}
	standing := toMap(due)
	for _, q := range due {
		if of := r.booked[e.key][q.ProductID]; of == nil || of.movements == 0 {
			rows[stockKey{e.key.deviceID, q.ProductID}] = fmt.Errorf("what %s took isn't off the books", e.key)
		}
	}
	for _, d := range e.decisions {
		changes := d.changes(standing)
		for productID, units := range changes {
			if of := r.booked[e.key][productID]; units != 0 && !d.unsure && (of == nil || !of.reviews[d.reviewID]) {
				rows[stockKey{e.key.deviceID, productID}] = fmt.Errorf("what review %s of %s changed isn't on the books", d.reviewID, e.key)
			}
		}
		standing = merged(standing, changes)
	}
}

// missingOfRestock: what a review says that was brought must have been booked.
func (r *replay) missingOfRestock(e *entry, rows map[stockKey]error) {
	if len(e.decisions) == 0 || r.late[e.key] || r.want.unsettled[e.key.deviceID] {
		return
	}
	last := e.decisions[len(e.decisions)-1]
	if !last.amend || last.unsure {
		return
	}
	said := toMap(last.lines)
	for productID, units := range merged(maps.Clone(r.came[e.key]), negative(said)) {
		if units != 0 {
			rows[stockKey{e.key.deviceID, productID}] = fmt.Errorf("what %s brought is off by %d on the books", e.key, units)
		}
	}
}

func negative(units map[int64]int64) map[int64]int64 {
	out := make(map[int64]int64, len(units))
	for id, n := range units {
		out[id] = -n
	}
	return out
}

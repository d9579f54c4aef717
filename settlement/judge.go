package settlement

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

// judge works out every fresh event, each on the shelf that the one before it left, and what
// its copies in the same group are told. What it returns is booked and not written yet.
func (s *Service) judge(tx *gorm.DB, b *batch, f *fresh, k *known, locking database.Locking) (*books, error) {
	if err := b.enter(tx, f.first); err != nil {
		return nil, err
	}
	books, err := openBooks(tx, f.first, s.catalogue.At(k.marks.Catalogue, time.Now()), locking)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(f.first))
	for i, it := range f.first {
		verdicts[i] = s.rules.judge(it.event, books.shelf(it), books.prices, it.pricedAt(), it.ReceivedAt)
		books.nameSales(&verdicts[i])
		books.note(it, &verdicts[i])
	}
	keys := keysOf(f.first, verdicts)
	if books.stock, err = inventory.OpenLedger(tx, keys, locking); err != nil {
		return nil, err
	}
	if books.holds, err = openHolds(tx, f.first, verdicts, k.marks.Reservations, b.now); err != nil {
		return nil, err
	}
	if books.doors, err = s.openDoors(tx, k.marks.Promotions, f.first, verdicts, locking); err != nil {
		return nil, err
	}
	b.settlements, b.orders = make([]settled, 0, len(f.first)), make([]ordered, 0, len(f.first))
	b.lines = make([]orderedLine, 0, len(keys))
	for i, it := range f.first {
		b.settle(books, it, &verdicts[i])
	}
	for _, it := range f.follow {
		b.answerKnown(it, f.stored(it.key), k)
	}
	return books, nil
}

// settle books one event and adds its rows to the batch.
func (b *batch) settle(books *books, it *item, v *verdict) {
	b.book(books, it, v)
	slices.Sort(v.reasons)
	receipt := b.plainReceipt(it, v.outcome, b.now, v.reasons...)
	var orderID any
	if v.hasOrder(it.event.Kind) {
		id := database.NewID(b.now)
		books.reprice(it, v, id)
		orderID, receipt.OrderID, receipt.TotalMinor = id, FormatID(id), v.totalMinor()
		receipt.Lines = make([]cabinet.Line, len(v.lines))
		for i, l := range v.lines {
			receipt.Lines[i] = l.Line
		}
		b.order(it, v, id)
		books.sold(it, v, id)
	}
	if v.outcome == cabinet.Review {
		b.review(it, orderID, v, nil)
	}
	it.planned = receipt.JSON()
	it.answer = Answer{Receipt: receipt, text: it.planned}
	b.settlements = append(b.settlements, settled{it, v.outcome, orderID})
}

// book moves the stock of every product of the event, and says where the books had too little of one, or too little is left for
// those who reserved it (R4).
func (b *batch) book(books *books, it *item, v *verdict) {
	kind, sign := inventory.Sale, int64(-1)
	if it.event.Kind == cabinet.KindRestock {
		kind, sign = inventory.Restock, 1
	}
	for _, l := range v.lines {
		m := books.stock.Book(inventory.Change{
			Key: inventory.Key{DeviceID: it.key.deviceID, ProductID: l.ProductID}, Kind: kind,
			Quantity: sign * l.Quantity, At: it.at, Ref: it.key.closeEventID,
		}, b.now)
		if m.Shortfall > 0 {
			v.reason(cabinet.ReasonShortfall)
		}
		if pickUp(books.holds, it, m) {
			v.reason(cabinet.ReasonReservedTaken)
		}
	}
}

func (b *batch) order(it *item, v *verdict, orderID int64) {
	status := orderOpen
	if v.outcome == cabinet.Review {
		status = orderReview
	}
	b.orders = append(b.orders, ordered{it, orderID, status, v.totalMinor()})
	for i := range v.lines {
		b.lines = append(b.lines, orderedLine{&v.lines[i], it.key.deviceID, orderID, i + 1})
	}
}

// review asks a person: about the event, or about a conflict with it where digest is set.
func (b *batch) review(it *item, orderID any, v *verdict, digest []byte) {
	var conflictDigest any
	if digest != nil {
		conflictDigest = digest
	}
	b.reviews = append(b.reviews, []any{
		database.NewID(b.now), it.key.deviceID, it.key.closeEventID, orderID, conflictDigest,
		marshal(orEmpty(v.reasons)), marshal(orEmpty(v.evidence.Proposed)), marshal(orEmpty(v.evidence.Findings)), openReview, b.now,
	})
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func keysOf(items []*item, verdicts []verdict) []inventory.Key {
	count := 0
	for i := range verdicts {
		count += len(verdicts[i].lines)
	}
	keys := make([]inventory.Key, 0, count)
	for i, it := range items {
		for _, l := range verdicts[i].lines {
			keys = append(keys, inventory.Key{DeviceID: it.key.deviceID, ProductID: l.ProductID})
		}
	}
	return keys
}

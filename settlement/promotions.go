package settlement

import (
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/promotion"
)

// openDoors reads what promotions may price of a group's sales; nil where there is nothing.
func (s *Service) openDoors(
	tx *gorm.DB, mark int64, items []*item, verdicts []verdict, locking database.Locking,
) (*promotion.Doors, error) {
	if len(items) == 0 {
		return nil, nil
	}
	offers, err := s.offers.Read(tx, mark, database.Now())
	if err != nil || offers.None() {
		return nil, err
	}
	var purchases []promotion.Purchase
	for i, it := range items {
		if !it.canSave() {
			continue
		}
		for j := range verdicts[i].lines {
			if l := &verdicts[i].lines[j]; offers.Of(l.ProductID) {
				purchases = append(purchases, it.purchase(l, 0))
			}
		}
	}
	if len(purchases) == 0 {
		return nil, nil
	}
	return promotion.OpenDoors(tx, offers, purchases, locking)
}

// canSave: a promotion is for a person, and for one who buys.
func (it *item) canSave() bool { return it.event.Kind == cabinet.KindSale && it.event.UserID != 0 }

func (it *item) purchase(l *line, orderID int64) promotion.Purchase {
	return promotion.Purchase{
		DeviceID: it.key.deviceID, OrderID: orderID, UserID: it.event.UserID, ProductID: l.ProductID,
		Quantity: l.Quantity, PriceMinor: l.UnitPriceMinor, At: it.pricedAt(), ReportedAt: it.ReceivedAt,
	}
}

// reprice splits the lines of an order of which promotions price units.
func (b *books) reprice(it *item, v *verdict, orderID int64) {
	if b.doors == nil || !it.canSave() {
		return
	}
	lines := make([]line, 0, len(v.lines)+1)
	for i := range v.lines {
		l := &v.lines[i]
		lines = l.split(lines, b.doors.Price(it.purchase(l, orderID)))
	}
	v.lines = lines
}

// split adds the line to a list in parts: one for each promotion, then what has the price in force.
func (l *line) split(lines []line, portions []promotion.Portion) []line {
	rest := *l
	for _, p := range portions {
		part := *l
		part.Quantity, part.UnitPriceMinor, part.AmountMinor, part.promotionID = p.Quantity, p.PriceMinor, p.PriceMinor*p.Quantity, p.PromotionID
		lines = append(lines, part)
		rest.Quantity -= p.Quantity
	}
	if rest.Quantity == 0 {
		return lines
	}
	rest.AmountMinor = rest.UnitPriceMinor * rest.Quantity
	return append(lines, rest)
}

// evidenceJSON is what an order line keeps of what decided it.
func (l *line) evidenceJSON() []byte {
	if l.promotionID == 0 {
		return l.evidence.JSON()
	}
	return marshal(struct {
		cabinet.Evidence
		PromotionID string `json:"promotionId"`
	}{l.evidence, FormatID(l.promotionID)})
}

// writeDoors comes last, so that the one row of a promotion that many want is held for the shortest time.
func (b *books) writeDoors(tx *gorm.DB, now time.Time) error {
	if b.doors == nil {
		return nil
	}
	return b.doors.Write(tx, now)
}

package settlement

import (
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/inventory"
	"doortab/promotion"
)

// correctionEvidence is what decided a line that a review added.
type correctionEvidence struct {
	Source      string   `json:"source"`
	Rule        Decision `json:"rule"`
	Quantity    int64    `json:"quantity"`
	ReviewID    string   `json:"reviewId"`
	PromotionID string   `json:"promotionId,omitempty"` // whose price the line has
}

// correction makes the lines of a decision.
type correction struct {
	event      *pastEvent
	resolution *Resolution
	orderID    int64
	doors      *promotion.Doors // nil: no promotion can have a part in it
	lines      []OrderLine
}

// price makes the new lines, negative where something is taken back, and returns what promotions then have to write, nil for
// nothing. What is added is priced as at a door, by the claims that are still good and by what a promotion has left. What is taken
// back is the dearest of the product first; of what had a promotion's price, the promotion gets its units back.
func (e *pastEvent) price(
	tx *gorm.DB, attempt int, change map[int64]int64, r *Resolution, orderID int64,
) ([]OrderLine, *promotion.Doors, error) {
	full, uses, err := e.fullPrices(tx, slices.Sorted(maps.Keys(change)))
	if err != nil {
		return nil, nil, err
	}
	c := &correction{event: e, resolution: r, orderID: orderID}
	if !e.restock && e.userID != nil {
		if c.doors, err = e.openDoors(tx, attempt, change, full, uses, orderID); err != nil {
			return nil, nil, err
		}
	}
	for _, product := range slices.Sorted(maps.Keys(change)) {
		if units := change[product]; units < 0 {
			c.takeBack(product, -units, full[product])
		} else {
			c.add(product, units, full[product])
		}
	}
	return c.lines, c.doors, nil
}

// fullPrices are those of units that no promotion prices. A product that is on the order at such a price keeps it.
func (e *pastEvent) fullPrices(tx *gorm.DB, products []int64) (map[int64]int64, []promotion.Use, error) {
	history, err := inventory.ReadPrices(tx, products, e.pricedAt)
	if err != nil {
		return nil, nil, err
	}
	var uses []promotion.Use
	if e.order != nil {
		if uses, err = promotion.ReadUses(tx, e.deviceID, e.order.OrderID); err != nil {
			return nil, nil, err
		}
	}
	charged := map[int64]int64{}
	for _, l := range e.lines() {
		special := func(u promotion.Use) bool { return u.ProductID == l.ProductID && u.PriceMinor == l.UnitPriceMinor }
		if !slices.ContainsFunc(uses, special) {
			charged[l.ProductID] = l.UnitPriceMinor
		}
	}
	full := make(map[int64]int64, len(products))
	for _, product := range products {
		price, known := charged[product]
		if !known {
			price, known = history.At(product, e.pricedAt)
		}
		if !known {
			return nil, nil, fmt.Errorf("product %d: %w", product, inventory.ErrUnknownProduct)
		}
		full[product] = price
	}
	return full, uses, nil
}

// lines are those that the order has so far.
func (e *pastEvent) lines() []OrderLine {
	if e.order == nil {
		return nil
	}
	return e.order.Lines
}

func (e *pastEvent) openDoors(
	tx *gorm.DB, attempt int, change, full map[int64]int64, uses []promotion.Use, orderID int64,
) (*promotion.Doors, error) {
	offers, err := promotion.ReadOffers(tx, database.Now())
	if err != nil {
		return nil, err
	}
	var added []promotion.Purchase
	for product, units := range change {
		if units > 0 {
			added = append(added, e.purchase(product, units, full[product], orderID))
		}
	}
	return promotion.OpenOrder(tx, offers, uses, added, database.LockingFor(attempt))
}

func (e *pastEvent) purchase(product, units, priceMinor, orderID int64) promotion.Purchase {
	return promotion.Purchase{
		DeviceID: e.deviceID, OrderID: orderID, UserID: *e.userID, ProductID: product, Quantity: units, PriceMinor: priceMinor,
		At: e.pricedAt, ReportedAt: e.receivedAt,
	}
}

func (c *correction) add(product, units, priceMinor int64) {
	if c.doors != nil {
		for _, p := range c.doors.Price(c.event.purchase(product, units, priceMinor, c.orderID)) {
			c.line(product, p.Quantity, p.PriceMinor, p.PromotionID)
			units -= p.Quantity
		}
	}
	c.line(product, units, priceMinor, 0)
}

func (c *correction) takeBack(product, units, priceMinor int64) {
	standing := map[int64]int64{} // units by price
	for _, l := range c.event.lines() {
		if l.ProductID == product {
			standing[l.UnitPriceMinor] += l.Quantity
		}
	}
	for _, price := range slices.Backward(slices.Sorted(maps.Keys(standing))) {
		n := min(units, max(standing[price], 0))
		units -= n
		c.takeBackAt(product, n, price)
	}
	c.line(product, -units, priceMinor, 0) // of a restock door, which has no lines
}

// takeBackAt takes back units of one price.
func (c *correction) takeBackAt(product, units, priceMinor int64) {
	if c.doors != nil {
		for _, p := range c.doors.GiveBack(c.event.deviceID, c.orderID, product, priceMinor, units) {
			c.line(product, -p.Quantity, priceMinor, p.PromotionID)
			units -= p.Quantity
		}
	}
	c.line(product, -units, priceMinor, 0)
}

func (c *correction) line(product, units, priceMinor, promotionID int64) {
	if units == 0 {
		return
	}
	evidence := correctionEvidence{Source: "review", Rule: c.resolution.Decision, Quantity: units, ReviewID: FormatID(c.resolution.ReviewID)}
	if promotionID != 0 {
		evidence.PromotionID = FormatID(promotionID)
	}
	c.lines = append(c.lines, OrderLine{
		Origin: originReview, ProductID: product, Quantity: units, UnitPriceMinor: priceMinor, AmountMinor: priceMinor * units,
		Evidence: marshal(evidence),
	})
}

package inventory

import (
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
)

// Prices holds the price history of some products from a moment on. Every product of the catalogue has one.
// They are in the order of time.
type Prices map[int64][]Price

// Price is what a product costs from a moment on, until the next one.
type Price struct {
	ProductID  int64
	ValidFrom  time.Time
	PriceMinor int64
}

// pricesSince finds the price that was in force at a moment by one step into the index, however many there were before it.
const pricesSince = `SELECT q.product_id, q.valid_from, q.price_minor FROM products p JOIN product_prices q ON q.product_id = p.product_id
		AND q.valid_from = (SELECT m.valid_from FROM product_prices m WHERE m.product_id = p.product_id AND m.valid_from <= ?
		ORDER BY m.valid_from DESC LIMIT 1) WHERE p.product_id IN ?
	UNION ALL SELECT product_id, valid_from, price_minor FROM product_prices WHERE product_id IN ? AND valid_from > ?
	ORDER BY product_id, valid_from`

// ReadPrices reads what the products that exist among ids cost at a moment and what they cost since: what was before it may be
// years of prices, which no event asks for.
func ReadPrices(tx *gorm.DB, ids []int64, since time.Time) (Prices, error) {
	prices := make(Prices, len(ids))
	for some := range slices.Chunk(ids, rowsAtOnce) {
		var rows []Price
		if err := tx.Raw(pricesSince, since, some, some, since).Scan(&rows).Error; err != nil {
			return nil, fmt.Errorf("read prices: %w", err)
		}
		for _, row := range rows {
			prices[row.ProductID] = append(prices[row.ProductID], row)
		}
	}
	return prices, nil
}

// At is the price in minor units that was in force at a time (R8), which is not before the moment that they begin with; for a
// time before the product existed its first price. It is false where the product is unknown.
func (p Prices) At(productID int64, at time.Time) (minor int64, known bool) {
	history := p[productID]
	if len(history) == 0 {
		return 0, false
	}
	minor = history[0].PriceMinor
	for _, from := range history[1:] {
		if from.ValidFrom.After(at) {
			break
		}
		minor = from.PriceMinor
	}
	return minor, true
}

package inventory

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Prices holds the price history of some products. Every product of the catalogue has one.
// They are in the order of time.
type Prices map[int64][]Price

// Price is what a product costs from a moment on, until the next one.
type Price struct {
	ProductID  int64
	ValidFrom  time.Time
	PriceMinor int64
}

// ReadPrices reads the history of the products that exist among ids.
func ReadPrices(tx *gorm.DB, ids []int64) (Prices, error) {
	prices := make(Prices, len(ids))
	if len(ids) == 0 {
		return prices, nil
	}
	var rows []Price
	err := tx.Raw(`SELECT product_id, valid_from, price_minor FROM product_prices
		WHERE product_id IN ? ORDER BY product_id, valid_from`, ids).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	for _, row := range rows {
		prices[row.ProductID] = append(prices[row.ProductID], row)
	}
	return prices, nil
}

// At is the price in minor units that was in force at a time (R8); for a time before the
// product existed its first price. It is false where the product is unknown.
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

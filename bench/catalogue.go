package bench

import (
	"context"
	"fmt"

	"doortab/bench/usual"
	"doortab/database"
)

const unitGrams = 345

// fillCatalogue adds the products, each with a weight and a GTIN of its own.
func fillCatalogue(ctx context.Context, db *database.DB) error {
	for i := range products {
		id, gtin := i+1, gtin14(i+1)
		_, err := db.SQL().ExecContext(ctx, `INSERT INTO products (product_id, sku, gtin, gtin14, name, price_minor, unit_weight_g, created_at,
			updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3) - INTERVAL 1 YEAR, UTC_TIMESTAMP(3) - INTERVAL 1 YEAR)`,
			id, fmt.Sprintf("SKU-%d", id), gtin, gtin, fmt.Sprintf("Product %d", id), usual.PriceMinor, unitGrams)
		if err != nil {
			return fmt.Errorf("fill the catalogue: %w", err)
		}
	}
	_, err := db.SQL().ExecContext(ctx, `INSERT INTO product_prices (product_id, valid_from, price_minor)
		SELECT product_id, created_at, price_minor FROM products`)
	if err != nil {
		return fmt.Errorf("fill the price history: %w", err)
	}
	return nil
}

package bench

import (
	"context"
	"fmt"

	"doortab/bench/usual"
	"doortab/database"
)

const (
	unitGrams = 345
	restocked = "00000000-0000-7000-8000-000000000000" // the restock that each cabinet was filled by
)

// fillCatalogue adds the products, each with a weight and a GTIN of its own.
func fillCatalogue(ctx context.Context, db *database.DB) error {
	for i := range products {
		id, gtin := i+1, gtin14(i+1)
		_, err := db.SQL().ExecContext(ctx, `INSERT INTO products (product_id, sku, gtin, gtin14, name, price_minor, unit_weight_g, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3) - INTERVAL 1 YEAR, UTC_TIMESTAMP(3) - INTERVAL 1 YEAR)`,
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

// fillCabinets registers the cabinets from first to last, with a lane, stock and the movement behind it for each product.
func fillCabinets(ctx context.Context, db *database.DB, first, last int) error {
	cabinets, lanes := fmt.Sprintf("seq_%d_to_%d c", first, last), fmt.Sprintf("seq_1_to_%d p", products)
	for _, statement := range []string{
		`INSERT INTO cabinets (device_id, name, site, created_at, updated_at)
			SELECT c.seq, CONCAT('Cabinet ', c.seq), CONCAT('Site ', c.seq DIV 20), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM ` + cabinets,
		`INSERT INTO lanes (device_id, lane, product_id, capacity, par_level)
			SELECT c.seq, p.seq, p.seq, 12, 4 FROM ` + cabinets + ` JOIN ` + lanes + ` ORDER BY c.seq, p.seq`,
		`INSERT INTO restocks (device_id, restock_id, note, actor, created_at)
			SELECT c.seq, '` + restocked + `', 'filled', 'bench', UTC_TIMESTAMP(3) FROM ` + cabinets,
		fmt.Sprintf(`INSERT INTO device_stock (device_id, product_id, stock, version, updated_at)
			SELECT c.seq, p.seq, %d, 1, UTC_TIMESTAMP(3) FROM `, startStock) + cabinets + ` JOIN ` + lanes + ` ORDER BY c.seq, p.seq`,
		fmt.Sprintf(`INSERT INTO stock_movements (device_id, product_id, version, kind, quantity, delta, balance, ref, created_at)
			SELECT c.seq, p.seq, 1, 'restock', %d, %[1]d, %[1]d, '%s', UTC_TIMESTAMP(3) FROM `, startStock, restocked) +
			cabinets + ` JOIN ` + lanes + ` ORDER BY c.seq, p.seq`,
	} {
		if _, err := db.SQL().ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("fill the cabinets %d to %d: %w", first, last, err)
		}
	}
	return nil
}

package usual

import (
	"context"
	"fmt"
)

// Fill gives the cabinets from first to last a stock of each of the products 1 to products.
func (d *Design) Fill(ctx context.Context, first, last, products, stock int64) error {
	err := d.db.WithContext(ctx).Exec(fmt.Sprintf(`INSERT INTO device_stocks (device_id, product_id, stock, version)
		SELECT c.seq, p.seq, ?, 1 FROM seq_%d_to_%d c JOIN seq_1_to_%d p ORDER BY c.seq, p.seq`, first, last, products), stock).Error
	if err != nil {
		return fmt.Errorf("fill the usual design's cabinets: %w", err)
	}
	return nil
}

// Orders counts the orders that it has kept.
func (d *Design) Orders(ctx context.Context) (count int64, err error) {
	if err := d.db.WithContext(ctx).Model(&order{}).Count(&count).Error; err != nil {
		return 0, fmt.Errorf("count the usual design's orders: %w", err)
	}
	return count, nil
}

package usual

import (
	"context"
	"fmt"
)

// cabinetsAtOnce bounds one statement of a filling.
const cabinetsAtOnce = 2000

// Fill gives the cabinets 1 to cabinets a stock of each of the products 1 to products, and the orders of past events, three
// products each, all cabinets in turn.
func (d *Design) Fill(ctx context.Context, cabinets, products, stock, eventsOfEach int) error {
	for first := 1; first <= cabinets; first += cabinetsAtOnce {
		if err := d.fillSome(ctx, first, min(first+cabinetsAtOnce-1, cabinets), cabinets, products, stock, eventsOfEach); err != nil {
			return fmt.Errorf("fill the usual design's cabinets from %d on: %w", first, err)
		}
	}
	return nil
}

func (d *Design) fillSome(ctx context.Context, first, last, cabinets, products, stock, eventsOfEach int) error {
	db := d.db.WithContext(ctx)
	err := db.Exec(fmt.Sprintf(`INSERT INTO device_stocks (device_id, product_id, stock, version)
		SELECT c.seq, p.seq, %d, 1 FROM seq_%d_to_%d c JOIN seq_1_to_%d p ORDER BY c.seq, p.seq`, stock, first, last, products)).Error
	if err != nil || eventsOfEach == 0 {
		return err
	}
	from := fmt.Sprintf("seq_%d_to_%d c JOIN seq_0_to_%d k", first, last, eventsOfEach-1)
	number := fmt.Sprintf("(k.seq * %d + c.seq)", cabinets)
	err = db.Exec(fmt.Sprintf(`INSERT INTO orders (id, order_no, user_id, device_id, close_event_id, status, total_minor, created_at)
		SELECT %s, CONCAT('past-', %[1]s), 1 + c.seq MOD 977, c.seq, CONCAT('past-', %[1]s), %d, %d, UTC_TIMESTAMP(3)
		FROM %s ORDER BY k.seq, c.seq`, number, paid, 3*PriceMinor, from)).Error
	if err != nil {
		return err
	}
	return db.Exec(fmt.Sprintf(`INSERT INTO order_lines (order_id, product_id, quantity, unit_price_minor)
		SELECT %s, 1 + (k.seq * 3 + x.seq) MOD %d, 1, %d FROM %s JOIN seq_0_to_2 x ORDER BY k.seq, c.seq, x.seq`,
		number, products, PriceMinor, from)).Error
}

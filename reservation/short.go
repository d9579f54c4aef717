package reservation

import (
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
)

type lineKey struct {
	Key
	ProductID int64
}

// heldLine is a line of a held reservation, with the stock of its goods.
type heldLine struct {
	Key
	ProductID, LeftQuantity, Stock int64
}

// shortOf tells how many units each line lacks: what is reserved beyond the stock falls to the youngest reservations. The
// lines are ascending by cabinet, product and reservation, of which a younger one has the greater id.
func shortOf(lines []heldLine) map[lineKey]int64 {
	short := map[lineKey]int64{}
	var of Goods
	var older int64
	for _, l := range lines {
		if goods := (Goods{l.DeviceID, l.ProductID}); goods != of {
			of, older = goods, 0
		}
		if lacks := l.LeftQuantity - max(l.Stock-older, 0); lacks > 0 {
			short[lineKey{l.Key, l.ProductID}] = lacks
		}
		older += l.LeftQuantity
	}
	return short
}

// readShort works out what the held ones of a list lack, which depends on all that is held in their cabinets.
func readShort(tx *gorm.DB, list []Reservation, now time.Time) (map[lineKey]int64, error) {
	var devices []int64
	for _, r := range list {
		if r.State == Held {
			devices = append(devices, r.DeviceID)
		}
	}
	if len(devices) == 0 {
		return nil, nil
	}
	slices.Sort(devices)
	var lines []heldLine
	err := tx.Raw(`SELECT l.device_id, l.reservation_id, l.product_id, l.left_quantity,
			COALESCE(s.stock, 0) AS stock
		FROM reservations r
		JOIN reservation_lines l ON l.device_id = r.device_id AND l.reservation_id = r.reservation_id
		LEFT JOIN device_stock s ON s.device_id = l.device_id AND s.product_id = l.product_id
		WHERE r.device_id IN ? AND r.state = ? AND r.until_at > ? AND l.left_quantity > 0
		ORDER BY l.device_id, l.product_id, l.reservation_id`, slices.Compact(devices), Held, now).Scan(&lines).Error
	if err != nil {
		return nil, fmt.Errorf("read what is held of cabinets: %w", err)
	}
	return shortOf(lines), nil
}

package settlement

import (
	"fmt"

	"gorm.io/gorm"

	"doortab/inventory"
)

// A count that was booked later and found more than the books had has made good what they lacked before: what the event took
// since the place of the count is off what was found, in full. An event without a place is never among those.
const readShort = `SELECT x.product_id, SUM(x.quantity) AS quantity FROM discrepancies x
	LEFT JOIN stock_movements m ON m.device_id = x.device_id AND m.product_id = x.product_id AND m.version = x.version
	LEFT JOIN stock_movements_archive a ON a.device_id = x.device_id AND a.product_id = x.product_id AND a.version = x.version
	WHERE x.device_id = ? AND x.product_id IN ? AND x.kind = 'shortfall'
	AND (COALESCE(m.kind, a.kind) = ? AND x.ref = ?
		OR COALESCE(m.kind, a.kind) = ? AND x.ref IN (
			SELECT CONVERT(CONVERT(v.review_id, CHAR) USING ascii) COLLATE ascii_bin FROM reviews v
			WHERE v.device_id = ? AND v.close_event_id = ?))
	AND (? OR NOT EXISTS (SELECT 1 FROM discrepancies c FORCE INDEX (PRIMARY) WHERE c.device_id = x.device_id
		AND c.product_id = x.product_id AND c.version > x.version AND c.kind = 'stocktake' AND c.quantity > 0))
	GROUP BY x.product_id HAVING SUM(x.quantity) > 0`

// short reads, of the products of which a decision gives units back, how many of the event's the books never gave. A count
// that comes meanwhile changes the version of a row that the caller has read.
func (e *pastEvent) short(tx *gorm.DB, moves []inventory.Change) (map[int64]int64, error) {
	var back []int64
	for _, c := range moves {
		if c.Quantity > 0 {
			back = append(back, c.ProductID)
		}
	}
	if len(back) == 0 {
		return nil, nil
	}
	var rows []ProposedLine
	err := tx.Raw(readShort, e.deviceID, back, inventory.Sale, e.closeEventID, inventory.Review, e.deviceID, e.closeEventID,
		e.at == nil).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read shortfalls of %s: %w", e.name(), err)
	}
	short := make(map[int64]int64, len(rows))
	for _, r := range rows {
		short[r.ProductID] = r.Quantity
	}
	return short, nil
}

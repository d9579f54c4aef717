package inventory

import (
	"fmt"

	"gorm.io/gorm"
)

// Shortage is a product of which a cabinet has less than its lanes are meant to have.
type Shortage struct {
	Site      string
	DeviceID  int64
	ProductID int64
	Stock     int64
	ParLevel  int64 // of all its lanes
	ToBring   int64 // units that fill all its lanes: their capacity less the book stock
}

// ShortageKey is a place in the list of shortages.
type ShortageKey struct {
	Site                string
	DeviceID, ProductID int64
}

// cabinetsAtOnce bounds how much of the fleet one statement looks at.
const cabinetsAtOnce = 200

// ReadShortages reads up to limit shortages after a place, in the order of site, cabinet and product; nil means from the
// first. Where site is not empty, it reads those of that site alone. It looks at some cabinets at a time.
func ReadShortages(tx *gorm.DB, site string, after *ShortageKey, limit int) ([]Shortage, error) {
	var list []Shortage
	from := ShortageKey{}
	if after != nil {
		from = *after
	}
	for len(list) < limit {
		cabinets, err := nextCabinets(tx, site, from)
		if err != nil || len(cabinets) == 0 {
			return list, err
		}
		found, err := shortagesOf(tx, cabinets, from, limit-len(list))
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
		last := cabinets[len(cabinets)-1]
		from = ShortageKey{last.Site, last.DeviceID, MaxProductID}
	}
	return list, nil
}

type placed struct {
	Site     string
	DeviceID int64
}

func nextCabinets(tx *gorm.DB, site string, from ShortageKey) ([]placed, error) {
	query := "SELECT site, device_id FROM cabinets WHERE site >= ? AND (site > ? OR device_id >= ?)"
	args := []any{from.Site, from.Site, from.DeviceID}
	if site != "" {
		query, args = "SELECT site, device_id FROM cabinets WHERE site = ? AND device_id >= ?", []any{site, from.DeviceID}
	}
	if from.ProductID == MaxProductID {
		query, args = query+" AND NOT (site = ? AND device_id = ?)", append(args, from.Site, from.DeviceID)
	}
	var cabinets []placed
	err := tx.Raw(query+" ORDER BY site, device_id LIMIT ?", append(args, cabinetsAtOnce)...).Scan(&cabinets).Error
	if err != nil {
		return nil, fmt.Errorf("list cabinets by site: %w", err)
	}
	return cabinets, nil
}

func shortagesOf(tx *gorm.DB, cabinets []placed, from ShortageKey, limit int) ([]Shortage, error) {
	ids := make([]int64, len(cabinets))
	for i, c := range cabinets {
		ids[i] = c.DeviceID
	}
	var found []Shortage
	err := tx.Raw(`SELECT c.site, c.device_id, p.product_id, COALESCE(s.stock, 0) AS stock, p.par_level,
			p.capacity - COALESCE(s.stock, 0) AS to_bring
		FROM (
			SELECT device_id, product_id, SUM(par_level) AS par_level, SUM(capacity) AS capacity
			FROM lanes WHERE device_id IN ? GROUP BY device_id, product_id
		) p
		JOIN cabinets c ON c.device_id = p.device_id
		LEFT JOIN device_stock s ON s.device_id = p.device_id AND s.product_id = p.product_id
		WHERE COALESCE(s.stock, 0) < p.par_level AND NOT (c.site = ? AND c.device_id = ? AND p.product_id <= ?)
		ORDER BY c.site, c.device_id, p.product_id LIMIT ?`, ids, from.Site, from.DeviceID, from.ProductID, limit).Scan(&found).Error
	if err != nil {
		return nil, fmt.Errorf("list what is below par: %w", err)
	}
	return found, nil
}

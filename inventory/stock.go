package inventory

import (
	"context"
	"fmt"
	"time"

	"doortab/database"
)

// StockRow is the book stock of one product in one cabinet.
type StockRow struct {
	ProductID int64
	Stock     int64
	Version   int64
	ParLevel  int64 // of all lanes that hold the product; 0 without a planogram
}

// ListStock reads up to limit rows of a cabinet's book stock with product ids above after, the lowest first.
func ListStock(ctx context.Context, db *database.DB, deviceID, after int64, limit int) ([]StockRow, error) {
	var rows []StockRow
	err := db.Read(ctx).Raw(`SELECT s.product_id, s.stock, s.version, COALESCE(p.par_level, 0) AS par_level
		FROM device_stock s LEFT JOIN (
			SELECT product_id, SUM(par_level) AS par_level FROM lanes WHERE device_id = ? GROUP BY product_id
		) p ON p.product_id = s.product_id
		WHERE s.device_id = ? AND s.product_id > ? ORDER BY s.product_id LIMIT ?`,
		deviceID, deviceID, after, limit).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list stock of cabinet %d: %w", deviceID, err)
	}
	return rows, nil
}

// MovementKey is a place in a cabinet's ledger.
type MovementKey struct {
	CreatedAt          time.Time
	ProductID, Version int64
}

// ListMovements reads up to limit movements of a cabinet that come after the place before, the newest first; nil means
// from the newest. With a productID of 0 it reads those of all products. Their Shortfall stays 0: discrepancies tell it.
func ListMovements(
	ctx context.Context, db *database.DB, deviceID, productID int64, before *MovementKey, limit int,
) ([]Movement, error) {
	query, args := "SELECT * FROM stock_movements WHERE device_id = ?", []any{deviceID}
	order := "created_at DESC, product_id DESC, version DESC"
	if productID != 0 { // one product's versions say what came first, whatever the clocks of two processes said
		query, args, order = query+" AND product_id = ?", append(args, productID), "version DESC"
	}
	switch {
	case before == nil:
	case productID != 0:
		query, args = query+" AND version < ?", append(args, before.Version)
	default:
		query += " AND created_at <= ? AND (created_at < ? OR product_id < ? OR product_id = ? AND version < ?)"
		args = append(args, before.CreatedAt, before.CreatedAt, before.ProductID, before.ProductID, before.Version)
	}
	var rows []movementRow
	err := db.Read(ctx).Raw(query+" ORDER BY "+order+" LIMIT ?", append(args, limit)...).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list movements of cabinet %d: %w", deviceID, err)
	}
	movements := make([]Movement, len(rows))
	for i, row := range rows {
		movements[i] = row.movement()
	}
	return movements, nil
}

type movementRow struct {
	DeviceID, ProductID, Version int64
	Kind                         MovementKind
	Quantity, Delta, Balance     int64
	Ref                          string
	CreatedAt                    time.Time
}

func (r movementRow) movement() Movement {
	return Movement{
		Change: Change{
			Key: Key{r.DeviceID, r.ProductID}, Kind: r.Kind, Quantity: r.Quantity, Ref: r.Ref,
		},
		Version: r.Version, Delta: r.Delta, Balance: r.Balance, CreatedAt: r.CreatedAt,
	}
}

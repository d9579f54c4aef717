package inventory

import (
	"context"
	"fmt"
	"math"
	"time"

	"gorm.io/gorm"

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
// from the newest. With a productID it reads those of that product, archived ones too; with 0 those of all products that
// are live. Their Shortfall stays 0: discrepancies tell it.
func ListMovements(
	ctx context.Context, db *database.DB, deviceID, productID int64, before *MovementKey, limit int,
) ([]Movement, error) {
	var rows []movementRow
	var err error
	if productID != 0 {
		rows, err = readHistory(db.Read(ctx), Key{deviceID, productID}, before, limit)
	} else {
		rows, err = readNewest(db.Read(ctx), deviceID, before, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("list movements of cabinet %d: %w", deviceID, err)
	}
	movements := make([]Movement, len(rows))
	for i, row := range rows {
		movements[i] = row.movement()
	}
	return movements, nil
}

const movementFields = "device_id, product_id, version, kind, quantity, delta, balance, ref, created_at"

// readHistory goes by versions, which say what came first whatever the clocks of two processes said.
func readHistory(tx *gorm.DB, of Key, before *MovementKey, limit int) (rows []movementRow, err error) {
	last := int64(math.MaxInt64)
	if before != nil {
		last = before.Version - 1
	}
	part := func(table string) string {
		return "(SELECT " + movementFields + " FROM " + table + ` WHERE device_id = ? AND product_id = ? AND version <= ?
			ORDER BY version DESC LIMIT ?)`
	}
	err = tx.Raw(part("stock_movements")+" UNION ALL "+part("stock_movements_archive")+" ORDER BY version DESC LIMIT ?",
		of.DeviceID, of.ProductID, last, limit, of.DeviceID, of.ProductID, last, limit, limit).Scan(&rows).Error
	return rows, err
}

func readNewest(tx *gorm.DB, deviceID int64, before *MovementKey, limit int) (rows []movementRow, err error) {
	query, args := "SELECT "+movementFields+" FROM stock_movements WHERE device_id = ?", []any{deviceID}
	if before != nil {
		query += " AND created_at <= ? AND (created_at < ? OR product_id < ? OR product_id = ? AND version < ?)"
		args = append(args, before.CreatedAt, before.CreatedAt, before.ProductID, before.ProductID, before.Version)
	}
	err = tx.Raw(query+" ORDER BY created_at DESC, product_id DESC, version DESC LIMIT ?", append(args, limit)...).Scan(&rows).Error
	return rows, err
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

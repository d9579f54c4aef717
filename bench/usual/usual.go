// Package usual is the usual design of the field, as a yardstick: gorm, one transaction for each
// closed door, a one-shot Redis token before it, an optimistic version on each product's row with
// three tries and then FOR UPDATE, one order and a batch of its lines.
//
// It is written to be as fast as this design gets: READ COMMITTED by the session and not by a
// statement of its own, parameters interpolated by the client, no transaction around single writes,
// products in ascending order so that no two doors lock each other out, and only the tables and
// indexes that the design needs.
package usual

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// PriceMinor is what every product costs, in minor units.
const PriceMinor = 500

const (
	optimisticTries = 3
	tokenLife       = 10 * time.Minute
	paid            = 1
)

// What [Design.Settle] returns beside errors of the database.
var (
	ErrDuplicate = errors.New("the event's token is taken")
	ErrShort     = errors.New("stock is too low")
	ErrBusy      = errors.New("the row changed under a lock")
)

// Event is one closed door. Its lines are in ascending order of products, each product once.
type Event struct {
	DeviceID     int64
	CloseEventID string // up to 40 characters
	UserID       int64
	Lines        []Line
}

// Line is one product of an event.
type Line struct{ ProductID, Quantity int64 }

// deviceStock is a row of book stock.
type deviceStock struct {
	ID        int64 `gorm:"primaryKey"`
	DeviceID  int64 `gorm:"uniqueIndex:uk_device_product"`
	ProductID int64 `gorm:"uniqueIndex:uk_device_product"`
	Stock     int64
	Version   int64
}

// TableName is gorm's hook.
func (deviceStock) TableName() string { return "device_stocks" }

// order is one settled door.
type order struct {
	ID           int64  `gorm:"primaryKey"`
	OrderNo      string `gorm:"size:40;uniqueIndex"`
	UserID       int64
	DeviceID     int64  `gorm:"uniqueIndex:uk_event"`
	CloseEventID string `gorm:"size:64;uniqueIndex:uk_event"`
	Status       int8
	TotalMinor   int64
	CreatedAt    time.Time
}

// TableName is gorm's hook.
func (order) TableName() string { return "orders" }

// orderLine is one product of an order.
type orderLine struct {
	ID             int64 `gorm:"primaryKey"`
	OrderID        int64 `gorm:"index"`
	ProductID      int64
	Quantity       int64
	UnitPriceMinor int64
}

// TableName is gorm's hook.
func (orderLine) TableName() string { return "order_lines" }

// Design is the usual design on one database and one Redis. It is safe for concurrent use.
type Design struct {
	db     *gorm.DB
	tokens *redis.Client // nil: no token is taken
	prefix string
}

// Open connects to a MariaDB database by its DSN and to a Redis by its URL; no Redis where that is
// empty. Each worker that settles at one time has a connection of its own.
func Open(dsn, redisURL string, workers int) (*Design, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("database DSN cannot be read: write it as user:password@tcp(host:port)/schema")
	}
	config.ParseTime, config.Loc, config.InterpolateParams = true, time.UTC, true
	config.Params = map[string]string{"tx_isolation": "'READ-COMMITTED'"}
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{DSNConfig: config}), &gorm.Config{
		Logger: logger.Discard, SkipDefaultTransaction: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open the usual design's database: %w", err)
	}
	d := &Design{db: db, prefix: "usual:" + config.DBName + ":"}
	if err := d.Workers(workers); err != nil {
		return nil, err
	}
	if redisURL == "" {
		return d, nil
	}
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, errors.Join(errors.New("Redis URL cannot be read: write it as redis://[:password@]host:port/0"), d.Close())
	}
	options.PoolSize, options.DisableIdentity = max(workers, 16), true
	d.tokens = redis.NewClient(options)
	return d, nil
}

// Workers sets the number of database connections.
func (d *Design) Workers(workers int) error {
	pool, err := d.db.DB()
	if err != nil {
		return fmt.Errorf("find the pool: %w", err)
	}
	pool.SetMaxOpenConns(workers)
	pool.SetMaxIdleConns(workers)
	return nil
}

// Close ends the connections.
func (d *Design) Close() error {
	var errs []error
	if d.tokens != nil {
		errs = append(errs, d.tokens.Close())
	}
	if pool, err := d.db.DB(); err == nil {
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}

// Migrate makes the tables.
func (d *Design) Migrate(ctx context.Context) error {
	if err := d.db.WithContext(ctx).AutoMigrate(&deviceStock{}, &order{}, &orderLine{}); err != nil {
		return fmt.Errorf("make the usual design's tables: %w", err)
	}
	return nil
}

// Settle takes the event's token and keeps its order. A token that is taken answers [ErrDuplicate];
// it stays taken when the transaction behind it fails, as it does in this design.
func (d *Design) Settle(ctx context.Context, e Event) error {
	if err := d.Take(ctx, e); err != nil {
		return fmt.Errorf("settle %d/%s: %w", e.DeviceID, e.CloseEventID, err)
	}
	err := d.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return keep(tx, e) })
	if err != nil {
		return fmt.Errorf("settle %d/%s: %w", e.DeviceID, e.CloseEventID, err)
	}
	return nil
}

// Take takes the event's token alone.
func (d *Design) Take(ctx context.Context, e Event) error {
	if d.tokens == nil {
		return nil
	}
	fresh, err := d.tokens.SetNX(ctx, d.token(e), 1, tokenLife).Result()
	if err != nil {
		return fmt.Errorf("take the token: %w", err)
	}
	if !fresh {
		return ErrDuplicate
	}
	return nil
}

// Forget gives the event's token back, so that an event that was not settled can be tried again.
func (d *Design) Forget(ctx context.Context, e Event) error {
	if d.tokens == nil {
		return nil
	}
	if err := d.tokens.Del(ctx, d.token(e)).Err(); err != nil {
		return fmt.Errorf("give the token of %d/%s back: %w", e.DeviceID, e.CloseEventID, err)
	}
	return nil
}

func (d *Design) token(e Event) string {
	return fmt.Sprintf("%s%d:%s", d.prefix, e.DeviceID, e.CloseEventID)
}

func keep(tx *gorm.DB, e Event) error {
	total := int64(0)
	for _, l := range e.Lines {
		if err := deduct(tx, e.DeviceID, l); err != nil {
			return err
		}
		total += l.Quantity * PriceMinor
	}
	o := order{
		OrderNo: e.CloseEventID, UserID: e.UserID, DeviceID: e.DeviceID, CloseEventID: e.CloseEventID, Status: paid, TotalMinor: total,
	}
	if err := tx.Create(&o).Error; err != nil {
		return fmt.Errorf("insert order: %w", err)
	}
	lines := make([]orderLine, len(e.Lines))
	for i, l := range e.Lines {
		lines[i] = orderLine{OrderID: o.ID, ProductID: l.ProductID, Quantity: l.Quantity, UnitPriceMinor: PriceMinor}
	}
	if err := tx.Create(&lines).Error; err != nil {
		return fmt.Errorf("insert order lines: %w", err)
	}
	return nil
}

func deduct(tx *gorm.DB, deviceID int64, l Line) error {
	for try := range optimisticTries + 1 {
		done, err := tryDeduct(tx, deviceID, l, try == optimisticTries)
		if err != nil || done {
			return err
		}
	}
	return fmt.Errorf("product %d: %w", l.ProductID, ErrBusy)
}

// tryDeduct returns false where another writer changed the row between its reading and its writing.
func tryDeduct(tx *gorm.DB, deviceID int64, l Line, lock bool) (done bool, err error) {
	read := tx
	if lock {
		read = tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
	}
	var row deviceStock
	if err := read.Where("device_id = ? AND product_id = ?", deviceID, l.ProductID).Take(&row).Error; err != nil {
		return false, fmt.Errorf("read product %d: %w", l.ProductID, err)
	}
	if row.Stock < l.Quantity {
		return false, fmt.Errorf("product %d: %w", l.ProductID, ErrShort)
	}
	result := tx.Model(&deviceStock{}).Where("id = ? AND version = ?", row.ID, row.Version).
		Updates(map[string]any{"stock": row.Stock - l.Quantity, "version": row.Version + 1})
	if result.Error != nil {
		return false, fmt.Errorf("write product %d: %w", l.ProductID, result.Error)
	}
	return result.RowsAffected == 1, nil
}

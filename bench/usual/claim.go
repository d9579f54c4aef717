package usual

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// lockLife is how long a user's lock holds where nobody gives it back.
const lockLife = 10 * time.Second

// What [Design.Claim] returns beside errors of the database.
var (
	ErrSoldOut = errors.New("all units are claimed")
	ErrLimit   = errors.New("the user has a claim")
	ErrPressed = errors.New("the user's lock is taken")
)

// goods is what a promotion has left.
type goods struct {
	ID       int64 `gorm:"primaryKey"`
	Quantity int64
}

// TableName is gorm's hook.
func (goods) TableName() string { return "promotion_goods" }

// goodsClaim is a unit of a user.
type goodsClaim struct {
	ID        int64 `gorm:"primaryKey"`
	GoodsID   int64 `gorm:"uniqueIndex:uk_goods_user"`
	UserID    int64 `gorm:"uniqueIndex:uk_goods_user"`
	CreatedAt time.Time
}

// TableName is gorm's hook.
func (goodsClaim) TableName() string { return "promotion_claims" }

// Offer makes a promotion of so many units, one for each user, and the tables for it.
func (d *Design) Offer(ctx context.Context, promotionID, quantity int64) error {
	db := d.db.WithContext(ctx)
	if err := db.AutoMigrate(&goods{}, &goodsClaim{}); err != nil {
		return fmt.Errorf("make the usual design's tables of claims: %w", err)
	}
	if err := db.Create(&goods{ID: promotionID, Quantity: quantity}).Error; err != nil {
		return fmt.Errorf("make promotion %d of the usual design: %w", promotionID, err)
	}
	return nil
}

// Claim takes one unit for a user: a lock for the user in Redis, that owner's alone, then one transaction which locks the row of
// the goods. [ErrSoldOut], [ErrLimit] and [ErrPressed] are refusals.
func (d *Design) Claim(ctx context.Context, promotionID, userID int64) error {
	lock, err := redislock.Obtain(ctx, d.tokens, fmt.Sprintf("%sclaim:%d:%d", d.prefix, promotionID, userID), lockLife, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return ErrPressed
	}
	if err != nil {
		return fmt.Errorf("lock user %d: %w", userID, err)
	}
	release := hold(ctx, lock)
	err = d.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return claim(tx, promotionID, userID) })
	return errors.Join(err, release())
}

// hold refreshes a lock until it is released. A lock that was lost all the same is no failure of what was done under it: the
// unique key of claims has kept the user to one.
func hold(ctx context.Context, lock *redislock.Lock) (release func() error) {
	ctx = context.WithoutCancel(ctx)
	refreshing, stop := context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(lockLife / 3)
		defer ticker.Stop()
		for {
			select {
			case <-refreshing.Done():
				return
			case <-ticker.C:
				_ = lock.Refresh(refreshing, lockLife, nil) // the next one tries again
			}
		}
	}()
	return func() error {
		stop()
		if err := lock.Release(ctx); err != nil && !errors.Is(err, redislock.ErrLockNotHeld) {
			return fmt.Errorf("release the user's lock: %w", err)
		}
		return nil
	}
}

func claim(tx *gorm.DB, promotionID, userID int64) error {
	var g goods
	if err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Take(&g, promotionID).Error; err != nil {
		return fmt.Errorf("lock promotion %d: %w", promotionID, err)
	}
	if g.Quantity < 1 {
		return ErrSoldOut
	}
	var held int64
	if err := tx.Model(&goodsClaim{}).Where("goods_id = ? AND user_id = ?", promotionID, userID).Count(&held).Error; err != nil {
		return fmt.Errorf("count claims of user %d: %w", userID, err)
	}
	if held > 0 {
		return ErrLimit
	}
	if err := tx.Model(&g).Update("quantity", g.Quantity-1).Error; err != nil {
		return fmt.Errorf("write promotion %d: %w", promotionID, err)
	}
	if err := tx.Create(&goodsClaim{GoodsID: promotionID, UserID: userID}).Error; err != nil {
		return fmt.Errorf("insert claim of user %d: %w", userID, err)
	}
	return nil
}

// Claimed is how many units of a promotion are claimed.
func (d *Design) Claimed(ctx context.Context, promotionID int64) (n int64, err error) {
	if err := d.db.WithContext(ctx).Model(&goodsClaim{}).Where("goods_id = ?", promotionID).Count(&n).Error; err != nil {
		return 0, fmt.Errorf("count claims of the usual design: %w", err)
	}
	return n, nil
}

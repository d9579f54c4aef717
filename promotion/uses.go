package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// useKey names a row of promotion_uses; claimID is 0 where the promotion needs none.
type useKey struct{ deviceID, orderID, promotionID, claimID int64 }

func compareUses(a, b useKey) int {
	return cmp.Or(cmp.Compare(a.deviceID, b.deviceID), cmp.Compare(a.orderID, b.orderID),
		cmp.Compare(a.promotionID, b.promotionID), cmp.Compare(a.claimID, b.claimID))
}

// use is one in the making; before is as it was read, without units where it is new.
type use struct {
	Use
	before Use
}

// use notes units of a purchase.
func (d *Doors) use(p Purchase, o *Offer, claimID, units int64) {
	k := useKey{p.DeviceID, p.OrderID, o.PromotionID, claimID}
	if d.uses[k] == nil {
		d.uses[k] = &use{Use: Use{
			DeviceID: p.DeviceID, OrderID: p.OrderID, PromotionID: o.PromotionID, ClaimID: claimID, UserID: p.UserID,
			ProductID: p.ProductID, PriceMinor: o.PriceMinor,
		}}
	}
	d.uses[k].Quantity += units
}

// Use is what an order has of a promotion.
type Use struct {
	DeviceID    int64
	OrderID     int64
	PromotionID int64
	ClaimID     int64 // 0: the promotion needs none
	UserID      int64
	ProductID   int64
	PriceMinor  int64
	Quantity    int64 // units, ever
	GivenBack   int64 // of them
}

// ReadUses reads what an order has of promotions. tx may be a plain read.
func ReadUses(tx *gorm.DB, deviceID, orderID int64) ([]Use, error) {
	var list []Use
	err := tx.Raw(`SELECT u.device_id, u.order_id, u.promotion_id, u.claim_id, u.user_id, u.product_id, p.price_minor, u.quantity, u.given_back
		FROM promotion_uses u JOIN promotions p ON p.promotion_id = u.promotion_id
		WHERE u.device_id = ? AND u.order_id = ? ORDER BY u.promotion_id, u.claim_id`, deviceID, orderID).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("read what order %d has of promotions: %w", orderID, err)
	}
	return list, nil
}

// OpenOrder is [OpenDoors] for an order that has uses already: purchases join them, and [Doors.GiveBack] takes from them.
// Whoever calls it holds a lock that keeps others from changing the order.
func OpenOrder(tx *gorm.DB, offers *Offers, uses []Use, purchases []Purchase, locking database.Locking) (*Doors, error) {
	d := &Doors{offers: offers, accounts: map[int64]*account{}, uses: map[useKey]*use{}}
	for _, u := range uses {
		d.uses[useKey{u.DeviceID, u.OrderID, u.PromotionID, u.ClaimID}] = &use{Use: u, before: u}
		d.count(u.PromotionID, u.UserID, 0)
	}
	return d, d.open(tx, purchases, locking)
}

// GiveBack takes units of a product off an order that was read, of those that have a price, and returns the promotions of those
// that had one: their quota and their person get the units back. Claims stay used.
func (d *Doors) GiveBack(deviceID, orderID, productID, priceMinor, units int64) []Portion {
	var portions []Portion
	for _, k := range slices.SortedFunc(maps.Keys(d.uses), compareUses) {
		u := d.uses[k]
		if k.deviceID != deviceID || k.orderID != orderID || u.ProductID != productID || u.PriceMinor != priceMinor {
			continue
		}
		if n := min(units, u.Quantity-u.GivenBack); n > 0 {
			units -= n
			u.GivenBack += n
			d.count(k.promotionID, u.UserID, -n)
			portions = addPortion(portions, Portion{k.promotionID, priceMinor, n})
		}
	}
	return portions
}

// Return is what a claim's person gets back of units that a door had used.
type Return struct {
	PromotionID int64
	ClaimID     int64
	UserID      int64
	Quantity    int64
}

// Returns are what [Doors.GiveBack] has taken back of claims. Who counts persons elsewhere too is told, once it is committed.
func (d *Doors) Returns() []Return {
	var list []Return
	for _, k := range slices.SortedFunc(maps.Keys(d.uses), compareUses) {
		if u := d.uses[k]; k.claimID != 0 && u.GivenBack > u.before.GivenBack {
			list = append(list, Return{k.promotionID, k.claimID, u.UserID, u.GivenBack - u.before.GivenBack})
		}
	}
	return list
}

var (
	useKeyColumns = []database.Column{
		database.Int("device_id"), database.Int("order_id"), database.Int("promotion_id"), database.Int("claim_id"),
		database.Int("quantity"), database.Int("given_back"),
	}
	useColumns = []string{
		"device_id", "order_id", "promotion_id", "claim_id", "user_id", "product_id", "quantity", "given_back", "created_at",
	}
)

func (d *Doors) writeUses(tx *gorm.DB, now time.Time) error {
	var fresh, known [][]any
	for _, k := range slices.SortedFunc(maps.Keys(d.uses), compareUses) {
		switch u := d.uses[k]; {
		case u.Use == u.before:
		case u.before.Quantity == 0:
			fresh = append(fresh, []any{
				k.deviceID, k.orderID, k.promotionID, k.claimID, u.UserID, u.ProductID, u.Quantity, u.GivenBack, now,
			})
		default:
			known = append(known, []any{
				k.deviceID, k.orderID, k.promotionID, k.claimID, u.before.Quantity, u.before.GivenBack, u.Quantity, u.GivenBack,
			})
		}
	}
	err := database.UpdateAll(tx, "promotion_uses", useKeyColumns, useKeyColumns[4:], known)
	if err != nil {
		return err
	}
	err = database.Insert(tx, "promotion_uses", useColumns, fresh, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("insert into promotion_uses: %w", database.ErrConflict)
	}
	return err
}

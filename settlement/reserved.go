package settlement

import (
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/inventory"
	"doortab/reservation"
)

// openHolds reads what is reserved of the goods that a group's shoppers took, where the mark says that anything can be.
func openHolds(tx *gorm.DB, items []*item, verdicts []verdict, mark int64, now time.Time) (*reservation.Holds, error) {
	if !reservation.Possible(mark, now) {
		return nil, nil
	}
	var goods []reservation.Goods
	var shoppers []reservation.Shopper
	for i, it := range items {
		if it.event.Kind != cabinet.KindSale {
			continue
		}
		shoppers = append(shoppers, it.shopper())
		for _, l := range verdicts[i].lines {
			goods = append(goods, reservation.Goods{DeviceID: it.key.deviceID, ProductID: l.ProductID})
		}
	}
	return reservation.OpenHolds(tx, goods, shoppers)
}

func (it *item) shopper() reservation.Shopper {
	return reservation.Shopper{DeviceID: it.key.deviceID, UserID: it.event.UserID}
}

// pickUp uses up what the shopper had reserved of what was taken, and tells whether that leaves others short. Staff pick up
// nothing (R11); units that a stock-take has counted already say nothing of the stock of now (R13).
func pickUp(holds *reservation.Holds, it *item, m inventory.Movement) (othersLack bool) {
	if it.event.Kind != cabinet.KindSale {
		return false
	}
	d := reservation.Door{Shopper: it.shopper(), OpenedAt: it.pricedAt(), ReceivedAt: it.ReceivedAt}
	lack := holds.Take(d, reservation.Goods(m.Key), -m.Quantity, m.Balance)
	counted := m.Delta == 0 && m.Shortfall == 0
	return lack && !counted
}

// openHolds reads what is reserved of the goods of which a review may add units.
func (e *pastEvent) openHolds(tx *gorm.DB, moves []inventory.Change) (*reservation.Holds, error) {
	if e.restock || e.userID == nil {
		return nil, nil
	}
	goods := make([]reservation.Goods, len(moves))
	for i, c := range moves {
		goods[i] = reservation.Goods(c.Key)
	}
	return reservation.OpenHolds(tx, goods, []reservation.Shopper{e.shopper()})
}

func (e *pastEvent) shopper() reservation.Shopper {
	return reservation.Shopper{DeviceID: e.deviceID, UserID: *e.userID}
}

// pickUp uses up what the shopper had reserved of units that a review adds. What it gives back stays used.
func (e *pastEvent) pickUp(holds *reservation.Holds, m inventory.Movement) {
	if holds != nil && m.Quantity < 0 {
		holds.Take(reservation.Door{Shopper: e.shopper(), OpenedAt: e.pricedAt, ReceivedAt: e.receivedAt}, reservation.Goods(m.Key), -m.Quantity, 0)
	}
}

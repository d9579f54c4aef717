package promotion_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

// A group of many doors, in each way of reading: everybody has a claim, and the last ones find the quota of the other promotion
// empty.
func TestDoorsOfManyPersons(t *testing.T) {
	t.Parallel()
	for name, locking := range map[string]database.Locking{
		"optimistic": database.Optimistic, "for update": database.ForUpdate, "no wait": database.NoWait,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			const persons, quota = 900, 700
			claimed, free := s.live(cola(persons, 1)), cola(quota, 1)
			free.NeedsClaim, free.PriceMinor = false, 200
			free = s.live(free)
			asks := make([]promotion.Ask, persons)
			purchases := make([]promotion.Purchase, persons)
			for n := range int64(persons) {
				asks[n] = ask(1+n, 1, 1)
				purchases[n] = promotion.Purchase{
					DeviceID: 1001, OrderID: 1 + n, UserID: 1 + n, ProductID: 7, Quantity: 3, PriceMinor: 500, At: database.Now(), ReportedAt: database.Now(),
				}
			}
			s.take(claimed, asks...)
			priced := map[int64]int64{}
			err := s.inTx(func(tx *gorm.DB) error {
				offers, err := promotion.ReadOffers(tx, database.Now())
				if err != nil {
					return err
				}
				doors, err := promotion.OpenDoors(tx, offers, purchases, locking)
				if err != nil {
					return err
				}
				for _, p := range purchases {
					for _, portion := range doors.Price(p) {
						priced[portion.PromotionID] += portion.Quantity
					}
				}
				return doors.Write(tx, database.Now())
			})
			if err != nil || priced[claimed.PromotionID] != persons || priced[free.PromotionID] != quota {
				t.Errorf("%v: %v", priced, err)
			}
			s.checkBooks(claimed)
			s.checkBooks(free)
			if n := s.number("SELECT COUNT(*) FROM claims WHERE state <> 'used'"); n != 0 {
				t.Errorf("%d claims are not used", n)
			}
		})
	}
}

// What others did since the doors were opened makes their write a conflict, and leaves nothing of it.
func TestDoorsThatOthersOvertake(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s shop, claim promotion.Claim) error{
		"the last unit": func(s shop, _ promotion.Claim) error { return s.buy(43) },
		"the person":    func(s shop, _ promotion.Claim) error { return s.buy(42) },
		"the claim": func(s shop, claim promotion.Claim) error {
			return s.inTx(func(tx *gorm.DB) error {
				_, err := promotion.GiveBack(tx, claim, promotion.Returned, database.Now())
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			claimed, free := s.live(cola(9, 1)), cola(1, 1)
			free.NeedsClaim, free.PriceMinor = false, 50
			if name == "the person" {
				free.Quota = 9
			}
			free = s.live(free)
			claim := s.take(claimed, ask(42, 1, 1))[0]
			err := s.inTx(func(tx *gorm.DB) error {
				doors, err := s.open(tx, 42, 2, 500)
				if err != nil {
					return err
				}
				if err := meanwhile(s, claim); err != nil {
					return err
				}
				return database.Final(doors.Write(tx, database.Now()))
			})
			if !errors.Is(err, database.ErrConflict) {
				t.Error(err)
			}
			s.checkBooks(claimed)
			s.checkBooks(free)
		})
	}
}

// open opens a door of a user who takes so many units of a price, and prices them.
func (s shop) open(tx *gorm.DB, userID, units, priceMinor int64) (*promotion.Doors, error) {
	offers, err := promotion.ReadOffers(tx, database.Now())
	if err != nil {
		return nil, err
	}
	p := promotion.Purchase{
		DeviceID: 1001, OrderID: database.NewID(database.Now()), UserID: userID, ProductID: 7, Quantity: units, PriceMinor: priceMinor,
		At: database.Now(), ReportedAt: database.Now(),
	}
	doors, err := promotion.OpenDoors(tx, offers, []promotion.Purchase{p}, database.Optimistic)
	if err == nil {
		doors.Price(p)
	}
	return doors, err
}

// buy sells a unit that costs more than the promotion without claims and less than the other one, in a transaction of its own.
func (s shop) buy(userID int64) error {
	return s.inTx(func(tx *gorm.DB) error {
		doors, err := s.open(tx, userID, 1, 60)
		if err != nil {
			return err
		}
		return doors.Write(tx, database.Now())
	})
}

// A quota that has less taken than an order gives back is not a conflict, which another try would mend.
func TestUnitsThatAQuotaNeverGave(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	free := cola(9, 1)
	free.NeedsClaim, free.PriceMinor = false, 50
	s.live(free)
	if err := s.buy(42); err != nil {
		t.Fatal(err)
	}
	s.exec("UPDATE promotion_quota SET taken = 0")
	err := s.inTx(func(tx *gorm.DB) error {
		uses, err := promotion.ReadUses(tx, 1001, s.number("SELECT order_id FROM promotion_uses"))
		if err != nil {
			return err
		}
		doors, err := promotion.OpenOrder(tx, new(promotion.Offers), uses, nil, database.Optimistic)
		if err != nil {
			return err
		}
		if got := doors.GiveBack(1001, uses[0].OrderID, 7, 50, 3); len(got) != 1 || got[0].Quantity != 1 {
			t.Errorf("of one unit, %+v came back", got)
		}
		return doors.Write(tx, database.Now())
	})
	if err == nil || errors.Is(err, database.ErrConflict) || !strings.Contains(err.Error(), "reconcile") {
		t.Error(err)
	}
	if n := s.number("SELECT given_back FROM promotion_uses"); n != 0 {
		t.Errorf("%d units are given back", n)
	}
}

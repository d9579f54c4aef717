package claims_test

import (
	"fmt"
	"slices"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/services/servicestest"
)

// A unit that a review takes off an order is its person's to claim again, and is counted once however often Redis is told.
func TestAReviewThatTakesAUnitBackLowersThePersonsCount(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(9, 2)
	used, err := f.Claim(t.Context(), f.request(p, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	f.atDoor(func(offers *promotion.Offers, tx *gorm.DB) (*promotion.Doors, error) {
		purchase := promotion.Purchase{
			DeviceID: 1001, OrderID: 7, UserID: 1, ProductID: p.ProductID, Quantity: 2, PriceMinor: p.PriceMinor + 1,
			At: database.Now(), ReportedAt: database.Now(),
		}
		doors, err := promotion.OpenDoors(tx, offers, []promotion.Purchase{purchase}, database.Optimistic)
		if err == nil {
			doors.Price(purchase)
		}
		return doors, err
	})
	_, err = f.Claim(t.Context(), f.request(p, 1, 1))
	refusedAs(t, err, promotion.LimitReached)
	doors := f.atDoor(func(offers *promotion.Offers, tx *gorm.DB) (*promotion.Doors, error) {
		uses, err := promotion.ReadUses(tx, 1001, 7)
		if err != nil {
			return nil, err
		}
		doors, err := promotion.OpenOrder(tx, offers, uses, nil, database.Optimistic)
		if err == nil {
			doors.GiveBack(1001, 7, p.ProductID, p.PriceMinor, 1)
		}
		return doors, err
	})
	for range 2 {
		f.TakenBack(t.Context(), 55, doors.Returns())
	}
	var counts []string
	for bucket := range 2 {
		counts = append(counts, f.client.HVals(t.Context(), f.bucketKey(p, 1, bucket)+"users").Val()...)
	}
	if !slices.Equal(counts, []string{"1"}) {
		t.Errorf("Redis counts %s for the one person", counts)
	}
	if c, err := f.Claim(t.Context(), f.request(p, 1, 1)); err != nil || c.ClaimID == used.ClaimID {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = f.Claim(t.Context(), f.request(p, 1, 1))
	refusedAs(t, err, promotion.LimitReached)
}

// counted is what Redis counts for a person in an epoch.
func (f fast) counted(p promotion.Promotion, epoch int64, userID int64) string {
	f.Helper()
	for bucket := range f.buckets {
		if n := f.client.HGet(f.Context(), f.bucketKey(p, epoch, bucket)+"users", fmt.Sprint(userID)).Val(); n != "" {
			return n
		}
	}
	return "0"
}

// While counters are loaded nobody can be told; who gives a unit back just then may claim again all the same.
func TestAUnitThatGoesBackWhileCountersWarm(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(9, 1)
	c, err := f.Claim(t.Context(), f.request(p, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE promotion_epochs SET state = 'warming' WHERE promotion_id = ?", p.PromotionID)
	if _, err := f.GiveBack(t.Context(), c.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE promotion_epochs SET state = 'open' WHERE promotion_id = ?", p.PromotionID)
	f.until("the person's count without it", func() bool { return f.counted(p, 1, 1) == "0" })
	if _, err := f.Claim(t.Context(), f.request(p, 1, 1)); err != nil {
		t.Error(err)
	}
}

// Whoever tells of a unit that went back before counters were loaded must not have it taken off them.
func TestAUnitThatWentBackBeforeCountersWereLoaded(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(9, 2)
	back, err := f.Claim(t.Context(), f.request(p, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Claim(t.Context(), f.request(p, 1, 1)); err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE promotion_epochs SET state = 'warming' WHERE promotion_id = ?", p.PromotionID) // nobody is told in time
	if _, err := f.GiveBack(t.Context(), back.ClaimID, func(promotion.Claim) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if err := f.db.InTx(t.Context(), func(tx *gorm.DB) error { return promotion.EndEpochs(tx, p.PromotionID) }); err != nil {
		t.Fatal(err)
	}
	f.until("a second epoch", func() bool {
		e, err := promotion.CurrentEpoch(f.db.Read(t.Context()), p.PromotionID)
		return err == nil && e.Epoch == 2 && e.State == promotion.EpochOpen
	})
	told := false
	for bucket := range f.buckets {
		told = told || f.client.HExists(t.Context(), f.bucketKey(p, 2, bucket)+"tokens", fmt.Sprint("returned claim ", back.ClaimID)).Val()
	}
	if n := f.counted(p, 2, 1); n != "1" || !told {
		t.Errorf("Redis counts %s for the person, and knows of the unit that went back: %v", n, told)
	}
}

// atDoor writes what somebody makes of the offers, in one transaction.
func (f fast) atDoor(decide func(*promotion.Offers, *gorm.DB) (*promotion.Doors, error)) (doors *promotion.Doors) {
	f.Helper()
	err := f.db.InTx(f.Context(), func(tx *gorm.DB) error {
		offers, err := promotion.ReadOffers(tx, database.Now())
		if err != nil {
			return err
		}
		if doors, err = decide(offers, tx); err != nil {
			return err
		}
		return doors.Write(tx, database.Now())
	})
	if err != nil {
		f.Fatal(err)
	}
	return doors
}

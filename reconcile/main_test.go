package reconcile_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/promotion"
	"doortab/reconcile"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

// shop is a schema with product 7 and what tests do in it.
type shop struct {
	*testing.T
	db *database.DB

	orders atomic.Int64
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, db: databasetest.New(t)}
	s.exec(`INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at)
		VALUES (7, 'COLA', 'Cola', 500, NOW(3), NOW(3))`)
	return s
}

// exec runs a statement that has to change something.
func (s *shop) exec(statement string, args ...any) {
	s.Helper()
	result := s.db.Read(s.Context()).Exec(statement, args...)
	if result.Error != nil || result.RowsAffected == 0 {
		s.Errorf("%s %v: %d rows, %v", statement, args, result.RowsAffected, result.Error)
	}
}

// define runs a statement that changes no rows.
func (s *shop) define(statement string) {
	s.Helper()
	if err := s.db.Read(s.Context()).Exec(statement).Error; err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
}

func (s *shop) number(statement string, args ...any) (n int64) {
	s.Helper()
	if err := s.db.Read(s.Context()).Raw(statement, args...).Scan(&n).Error; err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
	return n
}

func (s *shop) inTx(work func(tx *gorm.DB) error) {
	s.Helper()
	if err := s.db.InTx(s.Context(), work); err != nil {
		s.Error(err)
	}
}

// live makes a promotion that gives units, 5 to each person.
func (s *shop) live(quota int64, way promotion.Way) int64 {
	s.Helper()
	now := database.Now()
	var p promotion.Promotion
	s.inTx(func(tx *gorm.DB) (err error) {
		p, err = promotion.Create(tx, promotion.Promotion{
			Name: "Cola for 1", ProductID: 7, PriceMinor: 100, Quota: quota, PerUser: 5, NeedsClaim: true, Way: way,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		}, now)
		if err == nil {
			p, err = promotion.Transition(tx, p.PromotionID, promotion.Live, now)
		}
		return err
	})
	return p.PromotionID
}

// token is one of a user in a promotion.
func token(userID int64, n byte) promotion.TokenID {
	return promotion.TokenID{byte(userID >> 16), byte(userID >> 8), byte(userID), n}
}

// claim gives a person units.
func (s *shop) claim(promotionID, userID, quantity int64, source *promotion.Source) promotion.Claim {
	s.Helper()
	a := promotion.Ask{UserID: userID, TokenID: token(userID, 1), Quantity: quantity, At: database.Now(), Source: source}
	if source != nil {
		a.ClaimID = database.NewID(database.Now())
	}
	var claims []promotion.Claim
	s.inTx(func(tx *gorm.DB) (err error) {
		claims, err = promotion.Take(tx, promotionID, []promotion.Ask{a}, database.Now())
		return err
	})
	if claims[0].State != promotion.Held {
		s.Fatalf("claim of user %d: %s %s", userID, claims[0].State, claims[0].Reason)
	}
	return claims[0]
}

// sell has an order use units of a claim, as a door would, and returns the order's id.
func (s *shop) sell(c promotion.Claim, units int64) int64 {
	s.Helper()
	id := s.orders.Add(1)
	s.exec(`INSERT INTO orders (order_id, device_id, close_event_id, user_id, status, currency, total_minor, created_at)
		VALUES (?, 1001, ?, ?, 'open', 'CNY', 100, NOW(3))`, id, fmt.Sprint("event-", id), c.UserID)
	s.inTx(func(tx *gorm.DB) error {
		err := tx.Exec(`INSERT INTO promotion_uses (device_id, order_id, promotion_id, claim_id, user_id, product_id, quantity, created_at)
			VALUES (1001, ?, ?, ?, ?, 7, ?, NOW(3))`, id, c.PromotionID, c.ClaimID, c.UserID, units).Error
		if err != nil {
			return err
		}
		return tx.Exec(`UPDATE claims SET state = IF(left_quantity = ?, 'used', state), left_quantity = left_quantity - ? WHERE claim_id = ?`,
			units, units, c.ClaimID).Error
	})
	return id
}

// epoch opens one with two buckets of units each, and returns its number.
func (s *shop) epoch(promotionID, units int64) (epoch int64) {
	s.Helper()
	s.inTx(func(tx *gorm.DB) error {
		e, _, err := promotion.BeginEpoch(tx, promotionID, 0, 2, database.Now())
		if err != nil {
			return err
		}
		epoch = e.Epoch
		if err := promotion.OpenEpoch(tx, promotionID, epoch); err != nil {
			return err
		}
		_, err = promotion.Lease(tx, promotionID, epoch, nil, []promotion.Want{{Bucket: 0, Need: units}, {Bucket: 1, Need: units}})
		return err
	})
	return epoch
}

func (s *shop) service() *reconcile.Service { return reconcile.New(reconcile.Config{DB: s.db}) }

// run reconciles everything and returns the differences as "cause target", sorted, with those that it repaired apart.
func (s *shop) run(service *reconcile.Service, repairs bool) (standing, repaired []string) {
	s.Helper()
	r, err := service.Run(s.Context(), reconcile.Options{Origin: reconcile.Command, Everything: true, Repairs: repairs})
	if err != nil {
		s.Fatal(err)
	}
	found, err := reconcile.ReadDifferences(s.Context(), s.db, r.RunID, 10_000)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range found {
		if d.Repaired {
			repaired = append(repaired, string(d.Cause)+" "+d.Target)
		} else {
			standing = append(standing, string(d.Cause)+" "+d.Target)
		}
	}
	if r.State != reconcile.Done || r.Found != int64(len(found)) || r.Repaired != int64(len(repaired)) {
		s.Errorf("record says %s, %d found, %d repaired; it lists %d and %d", r.State, r.Found, r.Repaired, len(found), len(repaired))
	}
	slices.Sort(standing)
	slices.Sort(repaired)
	return standing, repaired
}

// endEpoch ends the epoch of a promotion.
func endEpoch(promotionID int64) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error { return promotion.EndEpochs(tx, promotionID) }
}

func number(n int64) string { return fmt.Sprint(n) }

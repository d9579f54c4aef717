package promotion_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/promotion"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

// shop is a schema with product 7 and what tests do with promotions.
type shop struct {
	*testing.T
	db *database.DB
}

func newShop(t *testing.T) shop {
	t.Helper()
	s := shop{t, databasetest.New(t)}
	s.exec(`INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at)
		VALUES (7, 'COLA', 'Cola', 500, NOW(3), NOW(3))`)
	return s
}

func (s shop) exec(statement string, args ...any) {
	s.Helper()
	if err := s.db.Read(s.Context()).Exec(statement, args...).Error; err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
}

func (s shop) number(statement string, args ...any) (n int64) {
	s.Helper()
	if err := s.db.Read(s.Context()).Raw(statement, args...).Scan(&n).Error; err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
	return n
}

func (s shop) inTx(work func(tx *gorm.DB) error) error { return s.db.InTx(s.Context(), work) }

// cola is a promotion that lasts from an hour ago to an hour from now.
func cola(quota, perUser int64) promotion.Promotion {
	now := database.Now()
	return promotion.Promotion{
		Name: "Cola for 1", ProductID: 7, PriceMinor: 100, Quota: quota, PerUser: perUser, NeedsClaim: true,
		StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	}
}

func (s shop) create(p promotion.Promotion) (made promotion.Promotion, err error) {
	err = s.inTx(func(tx *gorm.DB) (err error) {
		made, err = promotion.Create(tx, p, database.Now())
		return err
	})
	return made, err
}

func (s shop) live(p promotion.Promotion) promotion.Promotion {
	s.Helper()
	p, err := s.create(p)
	if err != nil {
		s.Fatal(err)
	}
	return s.become(p, promotion.Live)
}

func (s shop) become(p promotion.Promotion, to promotion.State) promotion.Promotion {
	s.Helper()
	p, err := s.transition(p, to)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func (s shop) transition(p promotion.Promotion, to promotion.State) (made promotion.Promotion, err error) {
	err = s.inTx(func(tx *gorm.DB) (err error) {
		made, err = promotion.Transition(tx, p.PromotionID, to, database.Now())
		return err
	})
	return made, err
}

// ask is one of a user with the n-th token.
func ask(userID int64, n byte, quantity int64) promotion.Ask {
	return promotion.Ask{UserID: userID, TokenID: promotion.TokenID{byte(userID >> 8), byte(userID), n}, Quantity: quantity, At: database.Now()}
}

func (s shop) take(p promotion.Promotion, asks ...promotion.Ask) []promotion.Claim {
	s.Helper()
	claims, err := s.tryTake(p, asks...)
	if err != nil {
		s.Fatal(err)
	}
	s.checkBooks(p)
	return claims
}

func (s shop) tryTake(p promotion.Promotion, asks ...promotion.Ask) (claims []promotion.Claim, err error) {
	err = s.inTx(func(tx *gorm.DB) (err error) {
		claims, err = promotion.Take(tx, p.PromotionID, asks, database.Now())
		return err
	})
	return claims, err
}

// checkBooks compares quota and person counters to what they stand for.
func (s shop) checkBooks(p promotion.Promotion) {
	s.Helper()
	id := p.PromotionID
	taken := s.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", id)
	held := s.number("SELECT COALESCE(SUM(left_quantity), 0) FROM claims WHERE promotion_id = ? AND state = 'held'", id)
	used := s.number("SELECT COALESCE(SUM(quantity - given_back), 0) FROM promotion_uses WHERE promotion_id = ?", id)
	leased := s.number(`SELECT COALESCE(SUM(b.granted - b.revoked - b.written), 0) FROM promotion_buckets b
		JOIN promotion_epochs e ON e.promotion_id = b.promotion_id AND e.epoch = b.epoch
		WHERE b.promotion_id = ? AND e.state = 'open'`, id)
	if taken != held+used+leased {
		s.Errorf("taken %d, but held %d + used %d + leased %d", taken, held, used, leased)
	}
	wrong := s.number(`SELECT COUNT(*) FROM promotion_users u WHERE u.promotion_id = ? AND u.taken <>
		(SELECT COALESCE(SUM(left_quantity), 0) FROM claims c WHERE c.promotion_id = u.promotion_id AND c.user_id = u.user_id AND c.state = 'held')
		+ (SELECT COALESCE(SUM(quantity - given_back), 0) FROM promotion_uses x WHERE x.promotion_id = u.promotion_id AND x.user_id = u.user_id)`, id)
	if wrong != 0 {
		s.Errorf("%d person counters are wrong", wrong)
	}
}

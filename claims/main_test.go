package claims_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/claims"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/promotion"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

// shop is a schema with product 7, and a service that takes claims there.
type shop struct {
	*testing.T
	*claims.Service
	db     *database.DB
	dsn    string
	tokens *promotion.Tokens
}

func newShop(t *testing.T) shop {
	t.Helper()
	db, dsn := databasetest.NewWithDSN(t)
	s := shop{t, serve(t, db), db, dsn, promotion.NewTokens(db)}
	s.exec(`INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at)
		VALUES (7, 'COLA', 'Cola', 500, NOW(3), NOW(3))`)
	return s
}

func serve(t *testing.T, db *database.DB) *claims.Service {
	service := claims.New(claims.Config{DB: db})
	t.Cleanup(service.Close)
	return service
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

// live is a promotion of product 7 that lasts from an hour ago to an hour from now.
func (s shop) live(quota, perUser int64) (p promotion.Promotion) {
	s.Helper()
	now := database.Now()
	err := s.db.InTx(s.Context(), func(tx *gorm.DB) (err error) {
		p, err = promotion.Create(tx, promotion.Promotion{
			Name: "Cola for 1", ProductID: 7, PriceMinor: 100, Quota: quota, PerUser: perUser, NeedsClaim: true,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		}, now)
		if err == nil {
			p, err = promotion.Transition(tx, p.PromotionID, promotion.Live, now)
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// request is a user's with a fresh token.
func (s shop) request(p promotion.Promotion, userID, quantity int64) claims.Request {
	s.Helper()
	r := claims.Request{Purpose: promotion.Purpose{PromotionID: p.PromotionID, UserID: userID, App: "shopper"}, Quantity: quantity}
	token, _, err := s.tokens.Issue(s.Context(), r.Purpose, database.Now())
	if err != nil {
		s.Fatal(err)
	}
	r.Token = token
	return r
}

// checkBooks compares quota and person counters to what they stand for.
func (s shop) checkBooks(p promotion.Promotion) {
	s.Helper()
	held := s.number("SELECT COALESCE(SUM(left_quantity), 0) FROM claims WHERE promotion_id = ? AND state = 'held'", p.PromotionID)
	used := s.number("SELECT COALESCE(SUM(quantity - given_back), 0) FROM promotion_uses WHERE promotion_id = ?", p.PromotionID)
	if taken := s.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); taken != held+used {
		s.Errorf("taken %d, but held %d + used %d", taken, held, used)
	}
	if counted := s.number("SELECT COALESCE(SUM(taken), 0) FROM promotion_users WHERE promotion_id = ?", p.PromotionID); counted != held+used {
		s.Errorf("persons have %d, but held %d + used %d", counted, held, used)
	}
}

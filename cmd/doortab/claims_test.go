package main

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/claims"
	"doortab/database"
	"doortab/promotion"
	"doortab/services/servicestest"
)

func TestANodeTakesClaimsTheRedisWay(t *testing.T) {
	t.Parallel()
	url := servicestest.Redis(t).URL()
	for name, c := range map[string]struct {
		config nodeConfig
		redis  bool
	}{
		"its Redis":        {nodeConfig{RedisURL: url}, true},
		"one of their own": {nodeConfig{countersFlag: countersFlag{ClaimsRedisURL: url}}, true},
		"none":             {nodeConfig{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startedNode(t, c.config)
			p := n.livePromotion(t)
			of := promotion.Purpose{PromotionID: p.PromotionID, UserID: 1, App: "shopper"}
			token, _, err := promotion.NewTokens(n.db).Issue(t.Context(), of, database.Now())
			if err != nil {
				t.Fatal(err)
			}
			made, err := n.claims.Claim(t.Context(), claims.Request{Purpose: of, Token: token, Quantity: 1})
			if err != nil || made.State != promotion.Held || made.Source != nil != c.redis {
				t.Errorf("%+v, %v", made, err)
			}
			if c.redis && n.metric(t, "doortab_prededuction_total", "ok") != 1 {
				t.Error("the metrics know of no answer")
			}
		})
	}
}

// livePromotion is one of the Redis way.
func (n *node) livePromotion(t *testing.T) (p promotion.Promotion) {
	t.Helper()
	now := database.Now()
	err := n.db.InTx(t.Context(), func(tx *gorm.DB) (err error) {
		err = tx.Exec(`INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at)
			VALUES (777, 'COLA-777', 'Cola', 500, ?, ?)`, now, now).Error
		if err != nil {
			return err
		}
		p, err = promotion.Create(tx, promotion.Promotion{
			Name: "Cola for 1", ProductID: 777, PriceMinor: 100, Quota: 10, PerUser: 1, NeedsClaim: true, Way: promotion.Redis,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		}, now)
		if err == nil {
			p, err = promotion.Transition(tx, p.PromotionID, promotion.Live, now)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

package settlement_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/promotion"
	"doortab/settlement"
)

// insist settles an event as a cabinet does, which sends it again until it has a receipt.
func (s *shop) insist(deviceID int64, payload string) (tries int) {
	for tries = 1; tries < 30; tries++ {
		if a := s.settle(deviceID, payload)[0]; a.Receipt != nil {
			return tries
		}
	}
	s.t.Errorf("%s has no receipt after %d tries", payload, tries)
	return tries
}

// TestPromotionsInACrowd: a few persons claim, return claims, let them expire and buy at many cabinets in two processes, while
// their orders are corrected: every unit is accounted for.
func TestPromotionsInACrowd(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	services := []*shop{s, s.another(nil)}
	claimed := s.promotion(promotion.Promotion{ProductID: 7, PriceMinor: 50, NeedsClaim: true, Quota: 60, PerUser: 20})
	s.promotion(promotion.Promotion{Quota: 90, PerUser: 40})
	s.promotion(promotion.Promotion{ProductID: 8, PriceMinor: 1, Quota: 30, PerUser: 12})
	var crowd sync.WaitGroup
	for n := range int64(6) {
		device, random := 1001+n, rand.New(rand.NewPCG(9, uint64(n)))
		s.cabinet(device, 7, 500, 8, 500)
		crowd.Go(func() {
			for round := range 25 {
				id, user := fmt.Sprint("e", round), 42+random.Int64N(3)
				services[n%2].insist(device, event(device, id, fmt.Sprintf(`"userId":%d`, user), items(7, 1+random.Int64N(3), 8, 1)))
				if random.IntN(2) == 0 {
					s.correct(device, id, random.Int64N(3))
				}
			}
		})
		crowd.Go(func() {
			for token := range 25 {
				s.press(claimed, promotion.Ask{
					UserID: 42 + n%3, Quantity: 1 + int64(token%3), At: receivedAt, TokenID: promotion.TokenID{byte(n), byte(token), 1},
				}, token%2 == 0)
			}
		})
	}
	crowd.Wait()
	s.checkPromotions()
	s.audited()
}

// correct reopens the order of an event and leaves so many units of product 7 on it.
func (s *shop) correct(deviceID int64, event string, units int64) {
	review, err := s.reopen(s.orderOf(deviceID, event).OrderID)
	if err != nil {
		s.t.Error(err)
		return
	}
	lines := []settlement.ProposedLine{{ProductID: 8, Quantity: 2}}
	if units > 0 {
		lines = append(lines, settlement.ProposedLine{ProductID: 7, Quantity: units})
	}
	r := settlement.Resolution{ReviewID: review.ReviewID, Decision: settlement.Amend, Lines: lines, Note: "x"}
	for range 10 {
		if _, err = s.resolve(r); !errors.Is(err, database.ErrConflict) {
			break
		}
	}
	if err != nil {
		s.t.Error(err)
	}
}

// press claims, and gives back what it got where it is told to.
func (s *shop) press(p promotion.Promotion, ask promotion.Ask, regret bool) {
	ctx := auditlog.WithActor(s.t.Context(), "ann")
	var claim promotion.Claim
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		claims, err := promotion.Take(tx, p.PromotionID, []promotion.Ask{ask}, database.Now())
		if err == nil {
			claim = claims[0]
		}
		return err
	})
	if err == nil && claim.State == promotion.Held && regret {
		s.end(claim.ClaimID, []promotion.ClaimState{promotion.Returned, promotion.Expired}[claim.Quantity%2])
	}
	if err != nil && !errors.Is(err, database.ErrConflict) {
		s.t.Error(err)
	}
}

// checkPromotions adds up what quota and persons of each promotion must be.
func (s *shop) checkPromotions() {
	s.t.Helper()
	const of = `SELECT %[1]s, SUM(n) FROM (
		SELECT %[1]s, left_quantity AS n FROM claims WHERE state = 'held' UNION ALL
		SELECT %[1]s, quantity - given_back FROM promotion_uses) x GROUP BY %[1]s HAVING SUM(n) > 0 ORDER BY %[1]s`
	for key, counted := range map[string]string{
		"promotion_id":          "SELECT promotion_id, taken FROM promotion_quota WHERE taken > 0 ORDER BY promotion_id",
		"promotion_id, user_id": "SELECT promotion_id, user_id, taken FROM promotion_users WHERE taken > 0 ORDER BY promotion_id, user_id",
	} {
		if want, got := s.rows(fmt.Sprintf(of, key)), s.rows(counted); !slices.Equal(want, got) || len(want) == 0 {
			s.t.Errorf("by %s: %s, counted %s", key, want, got)
		}
	}
}

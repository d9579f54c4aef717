package reconcile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/promotion"
)

// planted is one kind of difference: plant makes the n-th one in a promotion of its own kind and returns cause and target.
type planted struct {
	name     string
	proven   bool
	times    int
	leased   bool // claims come through leases
	apart    bool // one for each promotion
	plant    func(s *shop, promotionID int64, n int, c promotion.Claim) string
	together bool // may stand beside others that are proven
}

func person(cause string, promotionID, userID int64) string {
	return fmt.Sprintf("%s promotion_users promotion=%d user=%d", cause, promotionID, userID)
}

func quota(cause string, promotionID int64) string {
	return fmt.Sprintf("%s promotion_quota promotion=%d", cause, promotionID)
}

func claimed(cause string, c promotion.Claim) string {
	return fmt.Sprintf("%s claims claim=%d", cause, c.ClaimID)
}

func used(cause string, c promotion.Claim, order int64) string {
	return fmt.Sprintf("%s promotion_uses device=1001 order=%d promotion=%d claim=%d", cause, order, c.PromotionID, c.ClaimID)
}

func bucket(cause string, promotionID, epoch int64, n int) string {
	return fmt.Sprintf("%s promotion_buckets promotion=%d epoch=%d bucket=%d", cause, promotionID, epoch, n)
}

// kinds plant 160 differences that the database shows. Each claim is of 2 units, by a person of its own.
var kinds = []planted{
	{name: "quota too high", proven: true, times: 10, apart: true, together: true,
		plant: func(s *shop, id int64, n int, _ promotion.Claim) string {
			s.exec("UPDATE promotion_quota SET taken = taken + ? WHERE promotion_id = ?", n+1, id)
			return quota("quota_drift", id)
		}},
	{name: "quota too low", proven: true, times: 5, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.exec("UPDATE promotion_quota SET taken = taken - 1 WHERE promotion_id = ?", id)
			return quota("quota_drift", id)
		}},
	{name: "quota lost", proven: true, times: 1, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.exec("DELETE FROM promotion_quota WHERE promotion_id = ?", id)
			return quota("quota_drift", id)
		}},
	{name: "oversold", times: 3, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.exec("UPDATE promotion_quota SET quota = 1, taken = 1 WHERE promotion_id = ?", id)
			s.exec("UPDATE promotions SET quota = 1 WHERE promotion_id = ?", id)
			return quota("oversold", id)
		}},
	{name: "person too high", proven: true, times: 20, together: true,
		plant: func(s *shop, id int64, n int, c promotion.Claim) string {
			s.exec("UPDATE promotion_users SET taken = taken + ? WHERE promotion_id = ? AND user_id = ?", n+1, id, c.UserID)
			return person("person_counter_drift", id, c.UserID)
		}},
	{name: "person too low", proven: true, times: 20, together: true,
		plant: func(s *shop, id int64, _ int, c promotion.Claim) string {
			s.exec("UPDATE promotion_users SET taken = 0 WHERE promotion_id = ? AND user_id = ?", id, c.UserID)
			return person("person_counter_drift", id, c.UserID)
		}},
	{name: "person lost", proven: true, times: 10, together: true,
		plant: func(s *shop, id int64, _ int, c promotion.Claim) string {
			s.exec("DELETE FROM promotion_users WHERE promotion_id = ? AND user_id = ?", id, c.UserID)
			return person("person_counter_drift", id, c.UserID)
		}},
	{name: "person made up", proven: true, times: 5,
		plant: func(s *shop, id int64, _ int, c promotion.Claim) string {
			s.exec("INSERT INTO promotion_users (promotion_id, user_id, taken, version) VALUES (?, ?, 3, 1)", id, c.UserID+9000)
			return person("person_counter_drift", id, c.UserID+9000)
		}},
	{name: "over the limit", times: 5,
		plant: func(s *shop, id int64, _ int, c promotion.Claim) string {
			s.exec("UPDATE claims SET quantity = 6, left_quantity = 6 WHERE claim_id = ?", c.ClaimID)
			s.exec("UPDATE promotion_users SET taken = 6 WHERE promotion_id = ? AND user_id = ?", id, c.UserID)
			s.exec("UPDATE promotion_quota SET taken = taken + 4 WHERE promotion_id = ?", id)
			return person("over_limit", id, c.UserID)
		}},
	{name: "claim has units that a door used", proven: true, times: 10, together: true,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			s.sell(c, 1)
			s.exec("UPDATE claims SET left_quantity = 2 WHERE claim_id = ?", c.ClaimID)
			return claimed("claim_left_drift", c)
		}},
	{name: "used claim has units", proven: true, times: 5, together: true,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			s.sell(c, 2)
			s.exec("UPDATE claims SET left_quantity = 1 WHERE claim_id = ?", c.ClaimID)
			return claimed("claim_left_drift", c)
		}},
	{name: "claim lacks units", times: 10,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			s.exec("UPDATE claims SET left_quantity = 1 WHERE claim_id = ?", c.ClaimID)
			return claimed("claim_left_drift", c)
		}},
	{name: "claim held that doors used", proven: true, times: 5, together: true,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			s.sell(c, 2)
			s.exec("UPDATE claims SET state = 'held' WHERE claim_id = ?", c.ClaimID)
			return claimed("claim_not_ended", c)
		}},
	{name: "claim used by nobody", times: 5,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			s.exec("UPDATE claims SET state = 'used', left_quantity = 0 WHERE claim_id = ?", c.ClaimID)
			return claimed("claim_used_without_use", c)
		}},
	{name: "use lost", times: 5,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			order := s.sell(c, 2)
			s.exec("DELETE FROM promotion_uses WHERE order_id = ?", order)
			return claimed("claim_used_without_use", c)
		}},
	{name: "claim overused", times: 5,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			order := s.sell(c, 2)
			s.exec("UPDATE promotion_uses SET quantity = 3 WHERE order_id = ?", order)
			return claimed("claim_overused", c)
		}},
	{name: "overdue claim", proven: true, times: 10, together: true,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			s.exec("UPDATE claims SET expires_at = NOW(3) - INTERVAL 1 HOUR WHERE claim_id = ?", c.ClaimID)
			return claimed("overdue_claim", c)
		}},
	{name: "order lost", times: 5,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			order := s.sell(c, 2)
			s.exec("DELETE FROM orders WHERE order_id = ?", order)
			return used("use_without_order", c, order)
		}},
	{name: "claim of a use lost", times: 5,
		plant: func(s *shop, _ int64, _ int, c promotion.Claim) string {
			order := s.sell(c, 2)
			s.exec("DELETE FROM claims WHERE claim_id = ?", c.ClaimID)
			return used("use_without_claim", c, order)
		}},
	{name: "bucket has written too little", proven: true, times: 3, leased: true, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.exec("UPDATE promotion_buckets SET written = written - 1 WHERE promotion_id = ? AND bucket = 1", id)
			return bucket("bucket_written_drift", id, 1, 1)
		}},
	{name: "bucket has written too much", proven: true, times: 3, leased: true, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.exec("UPDATE promotion_buckets SET written = written + 1 WHERE promotion_id = ? AND bucket = 0", id)
			return bucket("bucket_written_drift", id, 1, 0)
		}},
	{name: "lease kept, the quota gave it back", proven: true, times: 2, leased: true, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.inTx(endEpoch(id))
			s.exec("UPDATE promotion_buckets SET revoked = revoked - 2 WHERE promotion_id = ? AND bucket = 1", id)
			return bucket("lease_not_given_back", id, 1, 1)
		}},
	{name: "lease kept, the quota too", proven: true, times: 2, leased: true, apart: true,
		plant: func(s *shop, id int64, _ int, _ promotion.Claim) string {
			s.inTx(endEpoch(id))
			s.exec("UPDATE promotion_buckets SET revoked = revoked - 2 WHERE promotion_id = ? AND bucket = 1", id)
			s.exec("UPDATE promotion_quota SET taken = taken + 2 WHERE promotion_id = ?", id)
			return bucket("lease_not_given_back", id, 1, 1)
		}},
	{name: "reserved too high", proven: true, times: 3, apart: true,
		plant: func(s *shop, _ int64, n int, _ promotion.Claim) string {
			s.exec("INSERT INTO reserved_stock (device_id, product_id, reserved) VALUES (?, 7, 4)", 2000+n)
			return fmt.Sprintf("reserved_drift reserved_stock device=%d product=7", 2000+n)
		}},
	{name: "overdue reservation", proven: true, times: 3, apart: true,
		plant: func(s *shop, _ int64, n int, _ promotion.Claim) string {
			s.reserve(int64(4000+n), "-1 HOUR")
			s.exec("INSERT INTO reserved_stock (device_id, product_id, reserved) VALUES (?, 7, 2)", 4000+n)
			return fmt.Sprintf("overdue_reservation reservations device=%d reservation=%d", 4000+n, 4000+n)
		}},
	{name: "reserved too low", proven: true, times: 3, apart: true,
		plant: func(s *shop, _ int64, n int, _ promotion.Claim) string {
			s.reserve(int64(3000+n), "1 HOUR")
			return fmt.Sprintf("reserved_drift reserved_stock device=%d product=7", 3000+n)
		}},
}

// reserve makes a reservation of 2 units that nobody has counted.
func (s *shop) reserve(deviceID int64, until string) {
	s.Helper()
	s.exec("INSERT INTO reservation_lines (device_id, reservation_id, product_id, quantity, left_quantity) VALUES (?, ?, 7, 2, 2)", deviceID, deviceID)
	s.exec(`INSERT INTO reservations (device_id, reservation_id, user_id, app, state, version, until_at, created_at, updated_at)
		VALUES (?, ?, 42, 'shopper', 'held', 1, NOW(3) + INTERVAL `+until+`, NOW(3), NOW(3))`, deviceID, deviceID)
}

// claims makes n claims of 2 units by persons of their own, through leases where these are to come so.
func (s *shop) claims(promotionID int64, n int, leased bool) (list []promotion.Claim) {
	s.Helper()
	if leased {
		s.epoch(promotionID, int64(2*n))
	}
	for i := range n {
		var source *promotion.Source
		if leased {
			source = &promotion.Source{Epoch: 1, Bucket: i % 2, StreamMS: 1, StreamNo: int64(i)}
		}
		list = append(list, s.claim(promotionID, int64(100+i), 2, source))
	}
	return list
}

func TestPlantedDifferencesAreFoundAndThoseProvenMended(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var standing, proven []string
	for _, k := range kinds {
		id := s.live(10_000, promotion.Database)
		claims := s.claims(id, max(k.times, 4), k.leased)
		for n := range k.times {
			if k.apart && n > 0 {
				id = s.live(10_000, promotion.Database)
				claims = s.claims(id, 4, k.leased)
			}
			wrong := k.plant(s, id, n, claims[n%len(claims)])
			if k.proven {
				proven = append(proven, wrong)
			} else {
				standing = append(standing, wrong)
			}
		}
	}
	mixed := s.live(10_000, promotion.Database)
	claims := s.claims(mixed, len(kinds), false)
	for i, k := range kinds {
		if k.together {
			proven = append(proven, k.plant(s, mixed, 0, claims[i]))
		}
	}
	slices.Sort(standing)
	slices.Sort(proven)
	all := slices.Sorted(slices.Values(slices.Concat(standing, proven)))
	t.Logf("%d differences planted", len(all))

	service := s.service()
	found, _ := s.run(service, false)
	if diff := cmp.Diff(all, found); diff != "" {
		t.Fatalf("differences (- planted, + found):\n%s", diff)
	}
	found, repaired := s.run(service, true)
	if diff := cmp.Diff(standing, found); diff != "" {
		t.Errorf("left after the repair (- planted, + found):\n%s", diff)
	}
	if diff := cmp.Diff(proven, repaired); diff != "" {
		t.Errorf("repaired (- planted, + found):\n%s", diff)
	}
	if found, _ = s.run(service, false); !slices.Equal(found, standing) {
		t.Errorf("the next run finds (- planted, + found):\n%s", cmp.Diff(standing, found))
	}
	if n := s.number("SELECT COUNT(*) FROM audit_log WHERE action = 'reconcile.repair'"); n != int64(len(proven)) {
		t.Errorf("audit log has %d repairs, not %d", n, len(proven))
	}
}

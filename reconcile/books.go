package reconcile

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// books are a promotion's counters and what they should be, as one snapshot has them.
type books struct {
	PromotionID int64
	Quota       int64
	PerUser     int64
	State       string
	Taken       *int64 // nil: there is no row
	Due         int64  // units that persons have

	persons []person  // whose counters differ, or who have too many
	claims  []claim   // that don't fit their uses
	uses    []use     // that lack their order or their claim
	overdue []overdue // claims
	buckets []bucket
}

// person is one person's counter and what it should be.
type person struct {
	UserID  int64
	Taken   int64
	Due     int64
	Version int64 // 0: there is no row
}

// claim is one with the units that orders have of it.
type claim struct {
	ClaimID  int64
	UserID   int64
	Quantity int64
	Unused   int64
	Used     int64
	State    string
}

// use is a row of promotion_uses.
type use struct {
	DeviceID, OrderID, ClaimID, UserID, Quantity int64

	HasOrder, HasClaim bool
}

// overdue is a claim that nobody has ended.
type overdue struct{ ClaimID, UserID, Unused int64 }

// bucket is what an epoch's bucket was leased, and the units of the claims that came through it.
type bucket struct {
	Epoch                     int64
	Bucket                    int
	Granted, Revoked, Written int64
	Open                      bool
	Claimed                   int64
}

func (b bucket) left() int64 { return b.Granted - b.Revoked - b.Written }

// dueRows are the units that persons have of a promotion. A claim that is held or used counts whole, whatever its left_quantity
// and its uses say, so that a wrong one of these isn't taken for a wrong counter too.
const dueRows = `(SELECT c.user_id, c.quantity AS units FROM claims c WHERE c.promotion_id = @promotion AND c.state IN ('held', 'used')
	UNION ALL
	SELECT x.user_id, IF(c.state IN ('held', 'used'), 0, x.quantity) - x.given_back FROM promotion_uses x
	LEFT JOIN claims c ON c.claim_id = x.claim_id AND c.promotion_id = x.promotion_id AND c.user_id = x.user_id
	WHERE x.promotion_id = @promotion)`

const readCounters = `SELECT p.promotion_id, p.quota, p.per_user, p.state, q.taken,
	(SELECT CAST(COALESCE(SUM(d.units), 0) AS SIGNED) FROM ` + dueRows + ` d) AS due
	FROM promotions p LEFT JOIN promotion_quota q ON q.promotion_id = p.promotion_id WHERE p.promotion_id = @promotion`

const readPersons = `SELECT user_id, CAST(SUM(taken) AS SIGNED) AS taken, CAST(SUM(units) AS SIGNED) AS due, MAX(version) AS version
	FROM (SELECT user_id, taken, 0 AS units, version FROM promotion_users WHERE promotion_id = @promotion
		UNION ALL SELECT d.user_id, 0, d.units, 0 FROM ` + dueRows + ` d) b
	GROUP BY user_id HAVING SUM(taken) <> SUM(units) OR SUM(units) > @per_user ORDER BY user_id`

const readClaims = `SELECT c.claim_id, c.user_id, c.quantity, c.left_quantity AS unused, CAST(COALESCE(x.used, 0) AS SIGNED) AS used, c.state
	FROM claims c LEFT JOIN (SELECT claim_id, user_id, SUM(quantity) AS used FROM promotion_uses
		WHERE promotion_id = @promotion AND claim_id <> 0 GROUP BY claim_id, user_id) x
	ON x.claim_id = c.claim_id AND x.user_id = c.user_id
	WHERE c.promotion_id = @promotion AND (c.left_quantity + COALESCE(x.used, 0) <> IF(c.state = 'refused', 0, c.quantity)
		OR c.state = 'used' AND c.left_quantity > 0 OR c.state = 'held' AND c.left_quantity = 0)
	ORDER BY c.claim_id`

const readUses = `SELECT * FROM (SELECT x.device_id, x.order_id, x.claim_id, x.user_id, x.quantity,
		EXISTS (SELECT 1 FROM orders o WHERE o.order_id = x.order_id AND o.device_id = x.device_id)
		OR EXISTS (SELECT 1 FROM orders_archive o WHERE o.order_id = x.order_id AND o.device_id = x.device_id) AS has_order,
		x.claim_id = 0 OR EXISTS (SELECT 1 FROM claims c
			WHERE c.claim_id = x.claim_id AND c.promotion_id = x.promotion_id AND c.user_id = x.user_id) AS has_claim
	FROM promotion_uses x WHERE x.promotion_id = @promotion) u
	WHERE NOT has_order OR NOT has_claim ORDER BY device_id, order_id, claim_id`

const readOverdue = `SELECT claim_id, user_id, left_quantity AS unused FROM claims
	WHERE promotion_id = @promotion AND state = 'held' AND expires_at < @overdue ORDER BY claim_id`

const readBuckets = `SELECT b.epoch, b.bucket, b.granted, b.revoked, b.written, COALESCE(e.state = 'open', FALSE) AS open,
	CAST(COALESCE(c.claimed, 0) AS SIGNED) AS claimed
	FROM promotion_buckets b LEFT JOIN promotion_epochs e ON e.promotion_id = b.promotion_id AND e.epoch = b.epoch
	LEFT JOIN (SELECT epoch, bucket, SUM(quantity) AS claimed FROM claims WHERE promotion_id = @promotion AND epoch IS NOT NULL
		GROUP BY epoch, bucket) c ON c.epoch = b.epoch AND c.bucket = b.bucket
	WHERE b.promotion_id = @promotion ORDER BY b.epoch, b.bucket`

// readBooks reads a promotion's books. tx holds them still: by a snapshot, or by locks on the quota and the buckets.
func readBooks(tx *gorm.DB, promotionID int64, now time.Time) (*books, error) {
	args := map[string]any{"promotion": promotionID, "overdue": now.Add(-overdueFor)}
	var found []*books
	if err := tx.Raw(readCounters, args).Scan(&found).Error; err != nil {
		return nil, fmt.Errorf("read the counters of promotion %d: %w", promotionID, err)
	}
	if len(found) == 0 {
		return &books{PromotionID: promotionID}, nil // removed meanwhile
	}
	b := found[0]
	args["per_user"] = b.PerUser
	for _, part := range []struct {
		query string
		into  any
	}{
		{readPersons, &b.persons}, {readClaims, &b.claims}, {readUses, &b.uses}, {readOverdue, &b.overdue}, {readBuckets, &b.buckets},
	} {
		if err := tx.Raw(part.query, args).Scan(part.into).Error; err != nil {
			return nil, fmt.Errorf("read the books of promotion %d: %w", promotionID, err)
		}
	}
	return b, nil
}

package audit

import (
	"context"
	"database/sql"
	"fmt"
)

const readQuotas = `
SELECT p.promotion_id, p.quota, q.quota, q.taken,
       COALESCE((SELECT SUM(c.left_quantity) FROM claims c WHERE c.promotion_id = p.promotion_id AND c.state = 'held'), 0),
       COALESCE((SELECT SUM(u.quantity - u.given_back) FROM promotion_uses u WHERE u.promotion_id = p.promotion_id), 0),
       COALESCE((SELECT SUM(b.granted - b.revoked - b.written) FROM promotion_buckets b
         JOIN promotion_epochs e ON e.promotion_id = b.promotion_id AND e.epoch = b.epoch
         WHERE b.promotion_id = p.promotion_id AND e.state = 'open'), 0)
  FROM promotions p FORCE INDEX (PRIMARY)
  LEFT JOIN promotion_quota q ON q.promotion_id = p.promotion_id
 ORDER BY p.promotion_id`

// quotas checks that what is taken of each is what claims hold, orders have and open epochs lease.
func (a *auditor) quotas(ctx context.Context) error {
	var promotion, quota, held, used, leased int64
	var kept, taken sql.Null[int64]
	return a.each(ctx, readQuotas, []any{&promotion, &quota, &kept, &taken, &held, &used, &leased}, func() {
		a.i6.Rows++
		key := fmt.Sprintf("promotion_quota promotion=%d", promotion)
		switch {
		case !taken.Valid:
			a.i6.violated("%s: no row", key)
		case kept.V != quota:
			a.i6.violated("%s: quota %d, the promotion's is %d", key, kept.V, quota)
		case taken.V != held+used+leased:
			a.i6.violated("%s: taken %d, but %d held, %d used and %d leased", key, taken.V, held, used, leased)
		}
	})
}

const ofPerson = `
       COALESCE((SELECT SUM(c.left_quantity) FROM claims c FORCE INDEX (claims_user)
         WHERE c.user_id = t.user_id AND c.state = 'held' AND c.promotion_id = t.promotion_id), 0),
       COALESCE((SELECT SUM(u.quantity - u.given_back) FROM promotion_uses u FORCE INDEX (promotion_uses_promotion)
         WHERE u.promotion_id = t.promotion_id AND u.user_id = t.user_id), 0)`

const readPersons = `
SELECT t.promotion_id, t.user_id, t.taken, p.per_user,` + ofPerson + `
  FROM promotion_users t FORCE INDEX (PRIMARY)
  LEFT JOIN promotions p ON p.promotion_id = t.promotion_id
 ORDER BY t.promotion_id, t.user_id`

// readUncounted finds persons who have something and no counter.
const readUncounted = `
SELECT t.promotion_id, t.user_id, 0, 0,` + ofPerson + `
  FROM (SELECT c.promotion_id, c.user_id FROM claims c WHERE c.state = 'held'
         UNION SELECT u.promotion_id, u.user_id FROM promotion_uses u WHERE u.quantity > u.given_back) t
 WHERE NOT EXISTS (SELECT 1 FROM promotion_users x WHERE x.promotion_id = t.promotion_id AND x.user_id = t.user_id)
 ORDER BY t.promotion_id, t.user_id`

// persons checks that each counter is what the person's claims hold and orders have, and within the limit.
func (a *auditor) persons(query string) func(context.Context) error {
	return func(ctx context.Context) error {
		var promotion, user, taken, held, used int64
		var limit sql.Null[int64]
		return a.each(ctx, query, []any{&promotion, &user, &taken, &limit, &held, &used}, func() {
			a.i6.Rows++
			key := fmt.Sprintf("promotion_users promotion=%d user=%d", promotion, user)
			switch {
			case taken != held+used:
				a.i6.violated("%s: taken %d, but %d held and %d used", key, taken, held, used)
			case limit.Valid && taken > limit.V:
				a.i6.violated("%s: taken %d, the limit is %d", key, taken, limit.V)
			}
		})
	}
}

const readKeptLeases = `
SELECT b.promotion_id, b.epoch, b.bucket, b.granted - b.revoked - b.written, COALESCE(e.state, 'missing')
  FROM promotion_buckets b FORCE INDEX (PRIMARY)
  LEFT JOIN promotion_epochs e ON e.promotion_id = b.promotion_id AND e.epoch = b.epoch
 ORDER BY b.promotion_id, b.epoch, b.bucket`

// leases checks that only open epochs have any.
func (a *auditor) leases(ctx context.Context) error {
	var promotion, epoch, bucket, left int64
	var state string
	return a.each(ctx, readKeptLeases, []any{&promotion, &epoch, &bucket, &left, &state}, func() {
		a.i6.Rows++
		if left != 0 && state != "open" {
			a.i6.violated("promotion_buckets promotion=%d epoch=%d bucket=%d: %d units leased, the epoch is %s", promotion, epoch, bucket, left, state)
		}
	})
}

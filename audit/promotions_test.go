package audit_test

import (
	"fmt"
	"testing"
)

// promoted is a cabinet whose order has a unit for a claim, one by a promotion without claims, of which a review took one back,
// and one at its price.
func (b books) promoted() {
	for _, table := range []string{"promotions", "promotion_quota", "promotion_users", "promotion_uses", "claims"} {
		b.exec("DELETE FROM " + table)
	}
	b.fill()
	b.exec("INSERT INTO restocks VALUES (1003, 'restock-1', '', 'ann', ?)", settledAt)
	b.movement(1003, 7, 1, "restock", 9, 9, 9, "restock-1")
	b.movement(1003, 7, 2, "sale", -4, -4, 5, "promoted")
	b.movement(1003, 7, 3, "review", 1, 1, 6, "210")
	b.stock(1003, 7, 6, 3, nil)
	b.settled(1003, "promoted", 120, "open", line(7, 1, 100), line(7, 2, 200), line(7, 1, 500))
	b.exec(`UPDATE order_lines SET evidence = '{"rule":"cabinet_count","promotionId":"302"}' WHERE order_id = 120 AND line = 2`)
	b.exec("INSERT INTO order_lines VALUES (1003, 120, 4, 'review', 7, -1, 200, -200, '{}')")
	b.exec("UPDATE orders SET total_minor = 800 WHERE order_id = 120")
	b.review(210, 1003, "promoted", 120, nil)
	b.decided(210, "amended")
	for id, price := range map[int64]int64{301: 100, 302: 200} {
		b.exec(`INSERT INTO promotions (promotion_id, name, product_id, price_minor, quota, per_user, needs_claim, starts_at, ends_at, claim_ttl_s,
			way, state, created_at, updated_at) VALUES (?, 'x', 7, ?, 10, 9, ?, ?, ?, 900, 'database', 'live', ?, ?)`,
			id, price, id == 301, settledAt, settledAt, settledAt, settledAt)
	}
	for id, c := range map[int64]struct {
		state          string
		quantity, left int64
	}{401: {"used", 1, 0}, 402: {"held", 2, 2}, 403: {"returned", 1, 1}, 404: {"expired", 3, 3}, 405: {"refused", 5, 0}} {
		b.exec(`INSERT INTO claims (claim_id, promotion_id, user_id, token_id, app, quantity, left_quantity, state, expires_at, created_at,
			updated_at) VALUES (?, 301, 42, ?, '', ?, ?, ?, ?, ?, ?)`,
			id, digestOf(c.state)[:16], c.quantity, c.left, c.state, settledAt, settledAt, settledAt)
	}
	b.exec("INSERT INTO promotion_quota VALUES (301, 10, 3), (302, 10, 1)")
	b.exec("INSERT INTO promotion_users VALUES (301, 42, 3, 1), (302, 42, 1, 1)")
	b.exec("INSERT INTO promotion_uses VALUES (1003, 120, 301, 401, 42, 7, 1, 0, ?), (1003, 120, 302, 0, 42, 7, 2, 1, ?)", settledAt, settledAt)
}

// miscounted is what the counters of a promotion and its only person don't count.
func miscounted(promotion, taken, held, used int) []string {
	return []string{
		fmt.Sprintf("I6 promotion_quota promotion=%d: taken %d, but %d held, %d used and 0 leased", promotion, taken, held, used),
		fmt.Sprintf("I6 promotion_users promotion=%d user=42: taken %d, but %d held and %d used", promotion, taken, held, used),
	}
}

func TestSoundPromotionsPass(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.promoted()
	if report := run(t, b.db); !report.OK() {
		t.Error(violations(t, report))
	}
}

func TestPromotionsThatDontFit(t *testing.T) {
	const used, free = "promotion_uses device=1003 order=120 promotion=301 claim=401", "promotion_uses device=1003 order=120 promotion=302 claim=0"
	findAllIn(t, books.promoted, []plant{
		{
			name: "more used than the lines have at its price", sql: []string{"UPDATE promotion_uses SET given_back = 0 WHERE promotion_id = 302"},
			want: append([]string{"I3 " + free + ": the order's lines have 1 of product 7 at 200, its uses 2"}, miscounted(302, 1, 0, 2)...),
		},
		{
			name: "a use that is gone", sql: []string{"DELETE FROM promotion_uses WHERE promotion_id = 302"},
			want: append([]string{
				"I3 order_lines device=1003 order=120 line=2: at the price of a promotion that promotion_uses doesn't have for this order",
			}, miscounted(302, 1, 0, 0)...),
		},
		{
			name: "the use of a claim that is gone", sql: []string{"DELETE FROM promotion_uses WHERE promotion_id = 301"},
			want: append([]string{"I3 claims claim=401: used, 0 of 1 left, 0 used"}, miscounted(301, 3, 2, 0)...),
		},
		{
			name: "a claim that has left what was used", sql: []string{"UPDATE claims SET left_quantity = 1, state = 'held' WHERE claim_id = 401"},
			want: append([]string{"I3 claims claim=401: held, 1 of 1 left, 1 used"}, miscounted(301, 3, 3, 1)...),
		},
		{
			name: "a claim that lost a unit", sql: []string{"UPDATE claims SET left_quantity = 1 WHERE claim_id = 402"},
			want: append([]string{"I3 claims claim=402: held, 1 of 2 left, 0 used"}, miscounted(301, 3, 1, 1)...),
		},
		{
			name: "a claim that is used up and held", sql: []string{"UPDATE claims SET state = 'held' WHERE claim_id = 401"},
			want: []string{"I3 claims claim=401: held, 0 of 1 left, 1 used"},
		},
		{
			name: "a refused claim with units", sql: []string{"UPDATE claims SET left_quantity = 1 WHERE claim_id = 405"},
			want: []string{"I3 claims claim=405: refused, with 1 left and 0 used"},
		},
		{
			name: "a claim in a state that doesn't exist", sql: []string{"UPDATE claims SET state = 'lost' WHERE claim_id = 402"},
			want: append([]string{`I4 claims claim=402: state "lost" is none that is ever written`}, miscounted(301, 3, 0, 1)...),
		},
		{
			name: "no promotion", sql: []string{"DELETE FROM promotions WHERE promotion_id = 301", "DELETE FROM claims WHERE claim_id > 402"},
			want: []string{
				"I4 " + used + ": no such promotion", "I4 claims claim=401: no promotion=301", "I4 claims claim=402: no promotion=301",
			},
		},
		{
			name: "another product", sql: []string{"UPDATE promotion_uses SET product_id = 8 WHERE promotion_id = 301"},
			want: []string{"I4 " + used + ": of product 8, the promotion is of product 7"},
		},
		{
			name: "no order", sql: []string{"UPDATE promotion_uses SET order_id = 121 WHERE promotion_id = 301"},
			want: []string{"I4 promotion_uses device=1003 order=121 promotion=301 claim=401: no such order"},
		},
		{
			name: "somebody else's order", sql: []string{"UPDATE promotion_uses SET user_id = 43 WHERE promotion_id = 302"},
			want: []string{
				"I4 " + free + ": of user=43, the order is of user=42",
				"I6 promotion_users promotion=302 user=42: taken 1, but 0 held and 0 used",
				"I6 promotion_users promotion=302 user=43: taken 0, but 0 held and 1 used",
			},
		},
		{
			name: "no claim", sql: []string{"DELETE FROM claims WHERE claim_id = 401"},
			want: []string{"I4 " + used + ": no such claim"},
		},
		{
			name: "somebody else's claim", sql: []string{"UPDATE claims SET user_id = 43 WHERE claim_id = 401"},
			want: []string{
				"I3 claims claim=401: used, 0 of 1 left, 0 used", "I4 " + used + ": of user=42, the claim is of promotion=301 and user=43",
			},
		},
	})
}

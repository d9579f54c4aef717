package audit

import (
	"context"
	"database/sql"
	"fmt"
)

// used is one row of promotion_uses with what it belongs to.
type used struct {
	device, order, promotion, claim int64
	user, product                   int64
	special, price                  sql.Null[int64] // the promotion's product and price; null: there is none
	known                           bool            // the order is there
	charged                         sql.Null[int64] // its user
	claimOf, claimedBy              sql.Null[int64] // the claim's promotion and user; null: there is none
	onOrder, kept                   int64           // units of that product at that price, by the lines and by the uses of the order
}

func (u *used) key() string {
	return fmt.Sprintf("promotion_uses device=%d order=%d promotion=%d claim=%d", u.device, u.order, u.promotion, u.claim)
}

// unitsAtPrice adds up an order's units at a promotion's price in a table of lines.
func unitsAtPrice(lines string) string {
	return `COALESCE((SELECT SUM(l.quantity) FROM ` + lines + ` l WHERE l.device_id = u.device_id AND l.order_id = u.order_id
         AND l.product_id = p.product_id AND l.unit_price_minor = p.price_minor), 0)`
}

var readUses = `
SELECT u.device_id, u.order_id, u.promotion_id, u.claim_id, u.user_id, u.product_id, p.product_id, p.price_minor,
       o.order_id IS NOT NULL OR oa.order_id IS NOT NULL, COALESCE(o.user_id, oa.user_id), c.promotion_id, c.user_id,
       ` + unitsAtPrice("order_lines") + ` + ` + unitsAtPrice("order_lines_archive") + `,
       (SELECT SUM(x.quantity - x.given_back) FROM promotion_uses x JOIN promotions q ON q.promotion_id = x.promotion_id
         WHERE x.device_id = u.device_id AND x.order_id = u.order_id AND q.product_id = p.product_id AND q.price_minor = p.price_minor)
  FROM promotion_uses u FORCE INDEX (PRIMARY)
  LEFT JOIN promotions p ON p.promotion_id = u.promotion_id
  LEFT JOIN orders o ON o.order_id = u.order_id AND o.device_id = u.device_id
  LEFT JOIN orders_archive oa ON oa.order_id = u.order_id AND oa.device_id = u.device_id
  LEFT JOIN claims c ON c.claim_id = u.claim_id
 ORDER BY u.device_id, u.order_id, u.promotion_id, u.claim_id`

// uses checks that each is of an order, a promotion and a claim that are there and fit, and that the lines of its order have as
// many units at the promotion's price as were used and not given back.
func (a *auditor) uses(ctx context.Context) error {
	var u used
	var kept sql.Null[int64]
	row := []any{
		&u.device, &u.order, &u.promotion, &u.claim, &u.user, &u.product, &u.special, &u.price, &u.known, &u.charged,
		&u.claimOf, &u.claimedBy, &u.onOrder, &kept,
	}
	return a.each(ctx, readUses, row, func() {
		u.kept = kept.V
		a.i3.Rows++
		a.i4.Rows++
		for _, problem := range u.strays() {
			a.i4.violated("%s: %s", u.key(), problem)
		}
		if u.known && u.special.Valid && u.onOrder != u.kept {
			a.i3.violated("%s: the order's lines have %d of product %d at %d, its uses %d",
				u.key(), u.onOrder, u.special.V, u.price.V, u.kept)
		}
	})
}

// strays says what a use belongs to and isn't there, or is somebody else's.
func (u *used) strays() (found []string) {
	switch {
	case !u.special.Valid:
		found = append(found, "no such promotion")
	case u.special.V != u.product:
		found = append(found, fmt.Sprintf("of product %d, the promotion is of product %d", u.product, u.special.V))
	}
	switch {
	case !u.known:
		found = append(found, "no such order")
	case u.charged.V != u.user:
		found = append(found, fmt.Sprintf("of user=%d, the order is of %s", u.user, person(u.charged)))
	}
	switch {
	case u.claim == 0:
	case !u.claimOf.Valid:
		found = append(found, "no such claim")
	case u.claimOf.V != u.promotion || u.claimedBy.V != u.user:
		found = append(found, fmt.Sprintf("of user=%d, the claim is of promotion=%d and user=%d", u.user, u.claimOf.V, u.claimedBy.V))
	}
	return found
}

// unusedPromotion tells that a line names a promotion in its evidence of which its order has no use.
const unusedPromotion = `INSTR(COALESCE(l.evidence, la.evidence, ''), '"promotionId":"') > 0 AND NOT EXISTS (
         SELECT 1 FROM promotion_uses u WHERE u.device_id = o.device_id AND u.order_id = o.order_id AND u.promotion_id = CONVERT(
           SUBSTRING_INDEX(SUBSTRING_INDEX(COALESCE(l.evidence, la.evidence), '"promotionId":"', -1), '"', 1), UNSIGNED))`

const readClaims = `
SELECT c.claim_id, c.state, c.quantity, c.left_quantity, p.promotion_id IS NOT NULL, c.promotion_id,
       COALESCE((SELECT SUM(u.quantity) FROM promotion_uses u FORCE INDEX (promotion_uses_promotion)
         WHERE u.promotion_id = c.promotion_id AND u.user_id = c.user_id AND u.claim_id = c.claim_id), 0)
  FROM claims c FORCE INDEX (PRIMARY)
  LEFT JOIN promotions p ON p.promotion_id = c.promotion_id
 ORDER BY c.claim_id`

// claims checks that what a claim was for is what doors used of it and what it has left, or had when it came to its end.
func (a *auditor) claims(ctx context.Context) error {
	var claim, quantity, left, promotion, uses int64
	var state string
	var known bool
	return a.each(ctx, readClaims, []any{&claim, &state, &quantity, &left, &known, &promotion, &uses}, func() {
		a.i3.Rows++
		a.i4.Rows++
		key := fmt.Sprintf("claims claim=%d", claim)
		if !known {
			a.i4.violated("%s: no promotion=%d", key, promotion)
		}
		switch state {
		case "refused":
			if left != 0 || uses != 0 {
				a.i3.violated("%s: refused, with %d left and %d used", key, left, uses)
			}
			return
		case "held", "used", "returned", "expired":
		default:
			a.i4.violated("%s: state %q is none that is ever written", key, state)
		}
		if left+uses != quantity || (left == 0) != (state == "used") {
			a.i3.violated("%s: %s, %d of %d left, %d used", key, state, left, quantity, uses)
		}
	})
}

package settlement_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/promotion"
)

// deals are promotions as a plain model has them. Each has a price of its own, which names it.
type deals struct {
	free []*deal   // the cheapest first
	kept []*deal   // that need a claim
	held []*pledge // the one that expires first before the others
}

type deal struct {
	promotion.Promotion
	taken int64
	users map[int64]int64
}

type pledge struct {
	*deal
	claimID, user, left int64
	before              int // seconds that it was taken before the doors
}

// openDeals makes promotions of products 7 and 8: some run out, some by their limit, some need claims.
func (s *shop) openDeals() *deals {
	d := &deals{}
	for _, p := range []promotion.Promotion{
		{ProductID: 7, PriceMinor: 100, Quota: 40, PerUser: 9},
		{ProductID: 7, PriceMinor: 200, Quota: 1000, PerUser: 30},
		{ProductID: 8, PriceMinor: 101, Quota: 60, PerUser: 50},
		{ProductID: 9, PriceMinor: 250, Quota: 60, PerUser: 50}, // no less than the price in force
	} {
		d.free = append(d.free, &deal{s.promotion(p), 0, map[int64]int64{}})
	}
	for _, p := range []promotion.Promotion{
		{ProductID: 7, PriceMinor: 300, Quota: 50, PerUser: 20, NeedsClaim: true},
		{ProductID: 8, PriceMinor: 102, Quota: 50, PerUser: 20, NeedsClaim: true},
		{ProductID: 8, PriceMinor: 103, Quota: 50, PerUser: 20, NeedsClaim: true},
	} {
		d.kept = append(d.kept, &deal{s.promotion(p), 0, map[int64]int64{}})
	}
	return d
}

func (d *deal) take(user, units int64) {
	d.taken += units
	d.users[user] += units
}

// left is what a person may still have.
func (d *deal) left(user int64) int64 { return min(d.Quota-d.taken, d.PerUser-d.users[user]) }

// claim has a user claim units, as far as there are any, so many seconds before the doors.
func (d *deals) claim(s *shop, kind *deal, user, units int64, before int) {
	units = min(units, kind.left(user))
	if units < 1 || slices.ContainsFunc(d.held, func(p *pledge) bool { return p.before == before }) {
		return
	}
	kind.take(user, units)
	d.held = append(d.held, &pledge{kind, s.claim(kind.Promotion, user, units, before).ClaimID, user, units, before})
	slices.SortFunc(d.held, func(a, b *pledge) int { return cmp.Compare(b.before, a.before) })
}

// end has a claim returned or expired.
func (d *deals) end(s *shop, n int, to promotion.ClaimState) {
	p := d.held[n]
	if ended := s.end(p.claimID, to); ended != (p.left > 0) {
		s.t.Errorf("claim with %d left ended: %v", p.left, ended)
	}
	p.take(p.user, -p.left)
	d.held = slices.Delete(d.held, n, n+1)
}

// prices says how many units of a product a person buys at which price.
func (d *deals) prices(user, product, units int64) map[int64]int64 {
	at := map[int64]int64{}
	if d != nil && user != 0 {
		for _, p := range d.held {
			if n := min(p.left, units); p.user == user && p.ProductID == product && n > 0 {
				p.left -= n
				units -= n
				at[p.PriceMinor] += n
			}
		}
		for _, f := range d.free {
			if n := min(f.left(user), units); f.ProductID == product && f.PriceMinor < priceOf[product] && n > 0 {
				f.take(user, n)
				units -= n
				at[f.PriceMinor] += n
			}
		}
	}
	at[priceOf[product]] += units
	return at
}

// giveBack has units come back that a person had at a price.
func (d *deals) giveBack(user, product, price, units int64) {
	for _, one := range slices.Concat(d.free, d.kept) {
		if one.ProductID == product && one.PriceMinor == price && price != priceOf[product] {
			one.take(user, -units)
		}
	}
}

func (d *deals) compare(s *shop) {
	s.t.Helper()
	var want []string
	for _, one := range slices.Concat(d.free, d.kept) {
		want = append(want, fmt.Sprintf("%d|%d|0", one.PromotionID, one.taken))
		for _, user := range slices.Collect(maps.Keys(one.users)) {
			if n := one.users[user]; n != 0 {
				want = append(want, fmt.Sprintf("%d|%d|%d", one.PromotionID, n, user))
			}
		}
	}
	slices.Sort(want)
	got := s.rows(`SELECT promotion_id, taken, 0 FROM promotion_quota
		UNION ALL SELECT promotion_id, taken, user_id FROM promotion_users WHERE taken <> 0`)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		s.t.Errorf("units of promotions and of their persons: %s", diff)
	}
}

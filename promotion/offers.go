package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
)

// Offer is what a door needs to know of a promotion.
type Offer struct {
	PromotionID int64
	ProductID   int64
	PriceMinor  int64
	PerUser     int64
	NeedsClaim  bool
	Site        string
	State       State
	StartsAt    time.Time
	EndsAt      time.Time
	ClaimTTLS   int64 `gorm:"column:claim_ttl_s"`
}

// applies tells whether an offer without claims lowers a price at a moment. What a claim promised, it promised when it was made.
func (o *Offer) applies(at time.Time, priceMinor int64) bool {
	return !o.NeedsClaim && o.State == Live && !at.Before(o.StartsAt) && at.Before(o.EndsAt) && o.PriceMinor < priceMinor
}

// Offers are the promotions that can price units at a door: those that are live, and those of which claims may still be held.
type Offers struct {
	byProduct map[int64][]Offer // the cheapest first
	byID      map[int64]Offer
	sited     bool // one of them is of one site alone
}

// None tells that no promotion is there.
func (o *Offers) None() bool { return len(o.byID) == 0 }

// Of tells whether a promotion may price units of a product.
func (o *Offers) Of(productID int64) bool { return len(o.byProduct[productID]) > 0 }

// claimsOutlast is how long after its end a promotion may still have claims that are held: as long as one lives, and as long again
// for a door that was opened in time and reports late.
const claimsOutlast = 2 * MaxClaimTTL

const readOffers = `SELECT promotion_id, product_id, price_minor, per_user, needs_claim, site, state, starts_at, ends_at, claim_ttl_s
	FROM promotions WHERE state IN ? OR state = ? AND needs_claim AND updated_at >= ?`

// ReadOffers reads them as they are.
func ReadOffers(tx *gorm.DB, now time.Time) (*Offers, error) {
	var rows []Offer
	err := tx.Raw(readOffers, []State{Live, Paused}, Ended, now.Add(-claimsOutlast)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read the promotions of doors: %w", err)
	}
	o := &Offers{byProduct: map[int64][]Offer{}, byID: make(map[int64]Offer, len(rows))}
	for _, row := range rows {
		o.byProduct[row.ProductID] = append(o.byProduct[row.ProductID], row)
		o.byID[row.PromotionID] = row
		o.sited = o.sited || row.Site != ""
	}
	for _, list := range o.byProduct {
		slices.SortFunc(list, func(a, b Offer) int {
			return cmp.Or(cmp.Compare(a.PriceMinor, b.PriceMinor), cmp.Compare(a.PromotionID, b.PromotionID))
		})
	}
	return o, nil
}

// keptFor bounds how long a change can stay unseen that raised no mark: by SQL of somebody's own, or by a restored database.
const keptFor = 5 * time.Second

// OfferCache keeps [Offers] as long as the mark of promotions stands where it was. Its zero value is empty. It is safe for
// concurrent use.
type OfferCache struct{ kept atomic.Pointer[keptOffers] }

type keptOffers struct {
	mark  int64
	until time.Time
	*Offers
}

// Read returns the offers behind a mark that tx has read before. What it reads anew is at least as new as the mark, and whoever
// changes it raises the mark again.
func (c *OfferCache) Read(tx *gorm.DB, mark int64, now time.Time) (*Offers, error) {
	if kept := c.kept.Load(); kept != nil && kept.mark == mark && now.Before(kept.until) {
		return kept.Offers, nil
	}
	offers, err := ReadOffers(tx, now)
	if err != nil {
		return nil, err
	}
	c.kept.Store(&keptOffers{mark, now.Add(keptFor), offers})
	return offers, nil
}

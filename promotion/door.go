package promotion

import (
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// Purchase is what an order has of one product.
type Purchase struct {
	DeviceID   int64
	OrderID    int64 // not asked for by [OpenDoors] and [OpenOrder]
	UserID     int64
	ProductID  int64
	Quantity   int64
	PriceMinor int64     // of a unit without any promotion
	At         time.Time // the moment whose prices hold (R8)
	ReportedAt time.Time // when the door's event came: what was claimed after it was for another door
}

// Portion is the part of a purchase that one promotion prices.
type Portion struct {
	PromotionID int64
	PriceMinor  int64
	Quantity    int64
}

// Doors works out which units of the purchases of one transaction have a promotion's price: [OpenDoors] reads what is held and
// left, Price decides in memory, so that a purchase sees what the one before it took, Write writes all of it.
type Doors struct {
	offers   *Offers
	sites    map[int64]string    // of cabinets, where one matters
	accounts map[int64]*account  // by promotion
	pledges  map[int64][]*pledge // by person, those that expire first before the others
	uses     map[useKey]*use
}

// account is what a promotion has left, and what its persons have.
type account struct {
	left    int64
	moved   int64 // taken from the quota; below 0: given back to it
	users   map[int64]userCount
	counted map[int64]int64 // units to count for each person; one that has a key is read
}

// pledge is a claim that is held.
type pledge struct {
	claimID     int64
	promotionID int64
	userID      int64
	left        int64
	before      int64 // left as read
	expiresAt   time.Time
}

// OpenDoors reads what purchases need, and nothing of products that no promotion is of.
func OpenDoors(tx *gorm.DB, offers *Offers, purchases []Purchase, locking database.Locking) (*Doors, error) {
	d := &Doors{offers: offers, accounts: map[int64]*account{}, uses: map[useKey]*use{}}
	return d, d.open(tx, purchases, locking)
}

func (d *Doors) open(tx *gorm.DB, purchases []Purchase, locking database.Locking) error {
	if err := d.readSites(tx, purchases); err != nil {
		return err
	}
	claimants := map[int64]bool{}
	for _, p := range purchases {
		for i := range d.offers.byProduct[p.ProductID] {
			switch o := &d.offers.byProduct[p.ProductID][i]; {
			case o.NeedsClaim:
				claimants[p.UserID] = true
			case o.applies(p.At, p.PriceMinor) && d.covers(o, p.DeviceID):
				d.count(o.PromotionID, p.UserID, 0)
			}
		}
	}
	if err := d.readAccounts(tx, locking); err != nil {
		return err
	}
	return d.readPledges(tx, slices.Sorted(maps.Keys(claimants)), locking)
}

// Price decides which units of a purchase have a special price, and notes their use: those of the person's claims first, the
// ones that expire first before the others, then those of promotions without claims, the cheapest first. The rest has the price
// that it has without promotions: a limit or an empty quota caps what is cheaper, never the sale. A special price only ever
// lowers, so that amounts stay within what they are without it.
func (d *Doors) Price(p Purchase) []Portion {
	var portions []Portion
	rest := p.Quantity
	use := func(o *Offer, claimID, units int64) {
		rest -= units
		d.use(p, o, claimID, units)
		portions = addPortion(portions, Portion{o.PromotionID, o.PriceMinor, units})
	}
	for _, c := range d.pledges[p.UserID] {
		o := d.offers.byID[c.promotionID]
		if units := min(rest, c.left); units > 0 && d.redeemable(c, &o, p) {
			c.left -= units
			use(&o, c.claimID, units)
		}
	}
	for i := range d.offers.byProduct[p.ProductID] {
		o := &d.offers.byProduct[p.ProductID][i]
		if !o.applies(p.At, p.PriceMinor) || !d.covers(o, p.DeviceID) {
			continue
		}
		if units := min(rest, d.free(o, p.UserID)); units > 0 {
			d.count(o.PromotionID, p.UserID, units)
			use(o, 0, units)
		}
	}
	return portions
}

// addPortion keeps one portion for each promotion.
func addPortion(portions []Portion, more Portion) []Portion {
	for i := range portions {
		if portions[i].PromotionID == more.PromotionID {
			portions[i].Quantity += more.Quantity
			return portions
		}
	}
	return append(portions, more)
}

func (d *Doors) covers(o *Offer, deviceID int64) bool {
	return o.Site == "" || o.Site == d.sites[deviceID]
}

// redeemable: whatever became of its promotion meanwhile, a claim is good until it expires.
func (d *Doors) redeemable(c *pledge, o *Offer, p Purchase) bool {
	madeAt := c.expiresAt.Add(-time.Duration(o.ClaimTTLS) * time.Second)
	return o.ProductID == p.ProductID && o.PriceMinor < p.PriceMinor && d.covers(o, p.DeviceID) &&
		p.At.Before(c.expiresAt) && !madeAt.After(p.ReportedAt)
}

// free is how many units a person may have without a claim.
func (d *Doors) free(o *Offer, userID int64) int64 {
	a := d.accounts[o.PromotionID]
	return min(a.left-a.moved, o.PerUser-a.users[userID].taken-a.counted[userID])
}

// count counts units for a person; units below 0 are given back.
func (d *Doors) count(promotionID, userID, units int64) {
	a := d.accounts[promotionID]
	if a == nil {
		a = &account{counted: map[int64]int64{}}
		d.accounts[promotionID] = a
	}
	a.moved += units
	a.counted[userID] += units
}

package promotion

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// decision is what becomes of a group of asks. Nothing of it is written yet.
type decision struct {
	promotion Promotion
	facts     *facts
	now       time.Time

	claims  []Claim             // an answer for each ask
	kept    []Claim             // the rows to insert
	quota   int64               // units to take from the quota, less those to give back
	left    int64               // units of the quota that nobody has yet
	leased  map[bucketKey]int64 // units to take from buckets' leases
	counted map[int64]int64     // units to count for each person
	made    map[TokenID]Claim   // claims of this group, by token and by id
	minted  map[int64]Claim
}

// decide is a pure function of its arguments but for the ids that it mints.
func decide(p Promotion, f *facts, asks []Ask, left int64, now time.Time) *decision {
	d := &decision{
		promotion: p, facts: f, now: now, left: left, claims: make([]Claim, len(asks)),
		leased: map[bucketKey]int64{}, counted: map[int64]int64{}, made: map[TokenID]Claim{}, minted: map[int64]Claim{},
	}
	for i, a := range asks {
		d.claims[i] = d.answer(a)
	}
	return d
}

func (d *decision) answer(a Ask) Claim {
	c, known := d.withID(a)
	if known && c.isOf(a) {
		return c // an entry of the stream that is read again
	}
	if known { // two processes minted one id in one millisecond
		a.ClaimID = 0
	}
	first, known := d.facts.byToken[a.TokenID]
	if !known {
		first, known = d.made[a.TokenID]
	}
	if known {
		return d.repeat(a, first)
	}
	reason := d.refusal(a)
	switch {
	case reason == "":
		return d.give(a)
	case a.Source != nil:
		return d.refuseLate(a, reason)
	default:
		return d.claim(a, Refused, reason)
	}
}

// withID finds the claim that has the id of an entry of the stream.
func (d *decision) withID(a Ask) (c Claim, known bool) {
	if a.Source == nil {
		return Claim{}, false
	}
	if c, known = d.facts.written[a.ClaimID]; !known {
		c, known = d.minted[a.ClaimID]
	}
	return c, known
}

// isOf tells whether the claim was written for an entry of the stream.
func (c Claim) isOf(a Ask) bool { return c.TokenID == a.TokenID || c.TokenID == spareToken(a.ClaimID) }

// repeat answers an ask whose token has made a claim. Of an entry of the stream that was another's, only the place is kept: it
// must be known when it is read again. One whose id another claim has leaves nothing: what it took comes back with the end of the epoch.
func (d *decision) repeat(a Ask, first Claim) Claim {
	if a.Source != nil && a.ClaimID != 0 {
		spare := a
		spare.TokenID = spareToken(a.ClaimID)
		d.refuseLate(spare, TokenUsed)
	}
	if first.UserID != a.UserID || first.Quantity != a.Quantity || first.App != a.App {
		return d.claim(a, Refused, TokenUsed)
	}
	return first
}

// spareToken stands in for a token that another claim has, whose unique key would not bear it twice.
func spareToken(claimID int64) TokenID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("spare token "), uint64(claimID))) //nolint:gosec // bits, not a number
	return TokenID(sum[:16])
}

func (d *decision) refusal(a Ask) Refusal {
	switch {
	case a.Source == nil && !d.promotion.NeedsClaim:
		return NoClaimNeeded
	case a.Source == nil && !d.promotion.LiveAt(a.At):
		return NotLive
	case a.Source != nil && !d.promotion.gaveAt(a.At):
		return NotLive
	case a.Source == nil && d.left < a.Quantity:
		return SoldOut
	case d.facts.users[a.UserID].taken+d.counted[a.UserID]+a.Quantity > d.promotion.PerUser:
		return LimitReached
	case d.left < a.Quantity && !d.isLeased(a):
		return SoldOut
	default:
		return ""
	}
}

// isLeased tells whether the books have the units in the bucket that an ask came from.
func (d *decision) isLeased(a Ask) bool {
	if a.Source == nil {
		return false
	}
	key := a.Source.key()
	return d.facts.leased[key]-d.leased[key] >= a.Quantity
}

func (d *decision) give(a Ask) Claim {
	if d.isLeased(a) {
		d.leased[a.Source.key()] += a.Quantity
	} else {
		d.quota += a.Quantity
		d.left -= a.Quantity
	}
	d.counted[a.UserID] += a.Quantity
	c := d.claim(a, Held, "")
	c.ClaimID, c.Unused = d.id(a), a.Quantity
	return d.keep(c)
}

func (d *decision) keep(c Claim) Claim {
	d.made[c.TokenID], d.minted[c.ClaimID] = c, c
	d.kept = append(d.kept, c)
	return c
}

// refuseLate keeps a refusal of what was answered already, and lets units that were leased for it go back.
func (d *decision) refuseLate(a Ask, reason Refusal) Claim {
	if d.isLeased(a) {
		d.leased[a.Source.key()] += a.Quantity
		d.quota -= a.Quantity
		d.left += a.Quantity
	}
	c := d.claim(a, Refused, reason)
	c.ClaimID = d.id(a)
	return d.keep(c)
}

func (d *decision) claim(a Ask, state ClaimState, reason Refusal) Claim {
	return Claim{
		PromotionID: d.promotion.PromotionID, UserID: a.UserID, TokenID: a.TokenID, App: a.App, Quantity: a.Quantity, State: state,
		Reason: reason, Source: a.Source, ExpiresAt: a.At.Add(d.promotion.ClaimTTL()), CreatedAt: d.now,
	}
}

// id mints one that no other claim of the group has, those with an id from another process included.
func (d *decision) id(a Ask) int64 {
	if a.ClaimID != 0 {
		return a.ClaimID
	}
	for {
		id := database.NewID(d.now)
		if _, taken := d.minted[id]; !taken {
			return id
		}
	}
}

// write writes all but the quota.
func (d *decision) write(tx *gorm.DB) error {
	if err := d.writeLeases(tx); err != nil {
		return err
	}
	if err := d.writeUsers(tx); err != nil {
		return err
	}
	slices.SortFunc(d.kept, func(a, b Claim) int { return cmp.Compare(a.ClaimID, b.ClaimID) })
	return insertClaims(tx, d.kept, d.now)
}

package reconcile

import "fmt"

// judge names what doesn't fit. It is a pure function of the books.
func (b *books) judge() []Difference {
	if b.State == "" {
		return nil
	}
	list := b.judgeClaims()
	list = append(list, b.judgeUses()...)
	for _, p := range b.persons {
		target := fmt.Sprintf("promotion_users promotion=%d user=%d", b.PromotionID, p.UserID)
		if p.Taken != p.Due {
			list = append(list, b.difference(PersonCounterDrift, target, p.Taken, p.Due, key{userID: p.UserID}))
		}
		if p.Due > b.PerUser {
			list = append(list, b.difference(OverLimit, target, p.Due, b.PerUser, key{userID: p.UserID}))
		}
	}
	for _, o := range b.overdue {
		list = append(list, b.difference(OverdueClaim, claimTarget(o.ClaimID), o.Unused, 0, key{claimID: o.ClaimID, userID: o.UserID}))
	}
	l := b.judgeLeases()
	list = append(list, l.differences...)
	return append(list, b.judgeQuota(l)...)
}

func (b *books) difference(cause Cause, target string, counted, due int64, of key) Difference {
	return Difference{PromotionID: b.PromotionID, Cause: cause, Target: target, Counted: counted, Due: due, key: of}
}

func claimTarget(claimID int64) string { return fmt.Sprintf("claims claim=%d", claimID) }

func (b *books) judgeClaims() (list []Difference) {
	for _, c := range b.claims {
		note := func(cause Cause, counted, due int64) {
			list = append(list, b.difference(cause, claimTarget(c.ClaimID), counted, due, key{claimID: c.ClaimID, userID: c.UserID}))
		}
		due := c.Quantity - c.Used
		switch {
		case c.State == "refused" && c.Used > 0:
			note(ClaimOverused, c.Used, 0)
		case c.State == "refused":
			note(ClaimLeftDrift, c.Unused, 0)
		case due < 0:
			note(ClaimOverused, c.Used, c.Quantity)
		case c.State == "used" && due > 0:
			note(ClaimUsedWithoutUse, c.Quantity, c.Used)
		case c.State == "held" && due == 0 && c.Unused == 0:
			note(ClaimNotEnded, 0, 0)
		default:
			note(ClaimLeftDrift, c.Unused, due)
		}
	}
	return list
}

func (b *books) judgeUses() (list []Difference) {
	for _, x := range b.uses {
		target := fmt.Sprintf("promotion_uses device=%d order=%d promotion=%d claim=%d", x.DeviceID, x.OrderID, b.PromotionID, x.ClaimID)
		of := key{claimID: x.ClaimID, userID: x.UserID}
		if !x.HasOrder {
			list = append(list, b.difference(UseWithoutOrder, target, x.Quantity, 0, of))
		}
		if !x.HasClaim {
			list = append(list, b.difference(UseWithoutClaim, target, x.Quantity, 0, of))
		}
	}
	return list
}

// leases are the leased units that the quota should count, and what is wrong with them.
type leases struct {
	differences []Difference
	due         int64
	kept        int64 // by epochs that are over
}

// judgeLeases compares what buckets have written with the claims that came through them. A claim from the stream takes its units
// from the quota itself where its bucket has no such units in the books: such claims exceed what the bucket has written and are
// no difference, which the quota shows.
func (b *books) judgeLeases() (l leases) {
	var drifted []bucket
	beyond := int64(0) // claims that may have come from the quota itself
	for _, k := range b.buckets {
		switch {
		case k.Claimed < k.Written:
			drifted = append(drifted, k)
		case k.Open && k.Claimed > k.Written:
			drifted = append(drifted, k)
			beyond += k.Claimed - k.Written
		}
		if k.Open {
			l.due += k.Granted - k.Revoked - k.Claimed
		} else if k.left() > 0 {
			l.kept += k.left()
			l.differences = append(l.differences, b.leaseDifference(LeaseNotGivenBack, k, k.left(), 0))
		}
	}
	fromQuota := beyond > 0 && b.Taken != nil && *b.Taken == b.Due+l.due+beyond
	if fromQuota {
		l.due += beyond
	}
	for _, k := range drifted {
		if k.Claimed < k.Written || !fromQuota {
			l.differences = append(l.differences, b.leaseDifference(BucketWrittenDrift, k, k.Written, k.Claimed))
		}
	}
	return l
}

func (b *books) leaseDifference(cause Cause, k bucket, counted, due int64) Difference {
	target := fmt.Sprintf("promotion_buckets promotion=%d epoch=%d bucket=%d", b.PromotionID, k.Epoch, k.Bucket)
	return b.difference(cause, target, counted, due, key{epoch: k.Epoch, bucket: k.Bucket})
}

// judgeQuota: a lease that wasn't given back is not a wrong quota too.
func (b *books) judgeQuota(l leases) []Difference {
	target := fmt.Sprintf("promotion_quota promotion=%d", b.PromotionID)
	due := b.Due + l.due
	switch {
	case due > b.Quota:
		return []Difference{b.difference(Oversold, target, due, b.Quota, key{})}
	case b.Taken == nil:
		return []Difference{b.difference(QuotaDrift, target, 0, due, key{})}
	case *b.Taken != due && (l.kept == 0 || *b.Taken != due+l.kept):
		return []Difference{b.difference(QuotaDrift, target, *b.Taken, due, key{})}
	}
	return nil
}

package reconcile

// proven picks the differences of the books that can be mended: counters whose rows agree among themselves. Rows are facts, and
// where two of them disagree, a person has to find out which one is wrong.
func (b *books) proven(found []Difference) (list []Difference) {
	doubted := map[int64]bool{} // persons
	for _, d := range found {
		if b.isDoubt(d) {
			doubted[d.key.userID] = true
		}
	}
	leasesProven := b.leasesProven()
	quotaProven := len(doubted) == 0
	for _, d := range found {
		ok := false
		switch d.Cause {
		case PersonCounterDrift:
			ok = !doubted[d.key.userID]
		case ClaimLeftDrift, ClaimNotEnded:
			ok = !b.isDoubt(d)
		case LeaseNotGivenBack:
			ok = true
		case BucketWrittenDrift:
			ok = leasesProven && b.isWritable(d.key)
			quotaProven = quotaProven && ok
		case QuotaDrift:
			ok = quotaProven // it is the last one
		}
		if ok {
			list = append(list, d)
		}
	}
	return list
}

// isDoubt: a claim with too few units left may lack the use of a sale, so only one with too many is known to be wrong.
func (b *books) isDoubt(d Difference) bool {
	switch d.Cause {
	case ClaimUsedWithoutUse, ClaimOverused, UseWithoutOrder, UseWithoutClaim:
		return true
	case ClaimLeftDrift:
		return d.Counted < d.Due
	}
	return false
}

// leasesProven: where the quota agrees with the claims, it is the buckets that are wrong; where a person's counter is too high, a
// claim may be missing instead.
func (b *books) leasesProven() bool {
	for _, p := range b.persons {
		if p.Taken > p.Due {
			return false
		}
	}
	l := b.judgeLeases()
	return b.Taken != nil && (*b.Taken == b.Due+l.due || *b.Taken == b.Due+l.due+l.kept)
}

func (b *books) isWritable(of key) bool {
	for _, k := range b.buckets {
		if k.Epoch == of.epoch && k.Bucket == of.bucket {
			return k.Open && k.Claimed <= k.Granted-k.Revoked
		}
	}
	return false
}

package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"doortab/claims"
	"doortab/promotion"
)

// judge names where the counters in Redis and the database differ. It is a pure function of what was read.
func (x *sold) judge() (list []Difference) {
	for bucket, b := range x.buckets {
		switch {
		case x.behind[bucket]:
		case !b.Known:
			list = append(list, x.difference(RedisBucketMissing, bucket, "", 0, leaseOf(x.last, bucket).Left(), key{}))
		default:
			list = append(list, x.judgeBucket(bucket, b)...)
		}
	}
	return list
}

func (x *sold) difference(cause Cause, bucket int, what string, counted, due int64, of key) Difference {
	of.epoch, of.bucket = x.epoch.Epoch, bucket
	return Difference{
		PromotionID: x.epoch.PromotionID, Cause: cause, Counted: counted, Due: due, key: of,
		Target: fmt.Sprintf("redis promotion=%d epoch=%d bucket=%d%s", x.epoch.PromotionID, x.epoch.Epoch, bucket, what),
	}
}

func (x *sold) judgeBucket(bucket int, b claims.Snapshot) []Difference {
	list := x.judgeLease(bucket, b)
	unwritten, more := x.judgeSales(bucket, b)
	list = append(list, more...)
	var units int64
	for _, n := range unwritten {
		units += n
	}
	list = append(list, x.judgeUnits(bucket, b, units)...)
	if b.Whole {
		list = append(list, x.judgePersons(bucket, b, unwritten)...)
	}
	return list
}

// judgeLease: what was granted goes to Redis second and what is revoked comes from there first, so that each is at most on its
// way; what the other side had a while before must have arrived.
func (x *sold) judgeLease(bucket int, b claims.Snapshot) (list []Difference) {
	first, last := leaseOf(x.first, bucket), leaseOf(x.last, bucket)
	if b.Granted < first.Granted || b.Granted > last.Granted {
		list = append(list, x.difference(RedisLeaseDrift, bucket, " granted", b.Granted, last.Granted, key{}))
	}
	if b.Revoked < first.Revoked || b.Revoked > last.Revoked {
		list = append(list, x.difference(RedisLeaseDrift, bucket, " revoked", b.Revoked, last.Revoked, key{}))
	}
	return list
}

// leaseOf is what a bucket was leased; nothing where its row is missing.
func leaseOf(list []promotion.Bucket, bucket int) promotion.Bucket {
	for _, b := range list {
		if b.Bucket == bucket {
			return b
		}
	}
	return promotion.Bucket{Bucket: bucket}
}

// judgeUnits: the lease itself may be what differs, so units that fit either side of it are right.
func (x *sold) judgeUnits(bucket int, b claims.Snapshot, unwritten int64) []Difference {
	taken := x.written[bucket] + unwritten
	due := b.Granted - b.Revoked - taken
	last := leaseOf(x.last, bucket)
	for _, granted := range []int64{b.Granted, last.Granted} {
		for _, revoked := range []int64{b.Revoked, last.Revoked} {
			if b.Units == granted-revoked-taken {
				return nil
			}
		}
	}
	return []Difference{x.difference(RedisUnitsDrift, bucket, "", b.Units, due, key{})}
}

// judgeSales compares order tokens with claims, and returns the units of each person that were sold and are in no row: those
// that the person's count has too.
func (x *sold) judgeSales(bucket int, b claims.Snapshot) (unwritten map[int64]int64, list []Difference) {
	unwritten = map[int64]int64{}
	if !b.Whole {
		return unwritten, nil
	}
	known := make(map[int64]bool, len(b.Sales))
	for _, token := range slices.SortedFunc(maps.Keys(b.Sales), compareTokens) {
		sale := b.Sales[token]
		known[sale.ClaimID] = true
		of := key{claimID: sale.ClaimID, userID: sale.UserID}
		r, written := x.rows[sale.ClaimID]
		note := func(cause Cause, counted, due int64) {
			list = append(list, x.difference(cause, bucket, fmt.Sprintf(" claim=%d", sale.ClaimID), counted, due, of))
		}
		switch {
		case written && (r.UserID != sale.UserID || r.Quantity != sale.Quantity):
			note(RedisTokenDrift, sale.Quantity, r.Quantity)
		case written:
		case b.Users[sale.UserID]-unwritten[sale.UserID]-x.most(sale.UserID) >= sale.Quantity:
			unwritten[sale.UserID] += sale.Quantity
			note(RedisSoldUnwritten, sale.Quantity, 0)
		default:
			note(RedisTokenUnknown, sale.Quantity, 0)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.rows)) {
		if r := x.rows[id]; r.Bucket != nil && *r.Bucket == bucket && !known[id] {
			list = append(list, x.difference(RedisTokenMissing, bucket, fmt.Sprintf(" claim=%d", id), 0, r.Quantity, key{claimID: id, userID: r.UserID}))
		}
	}
	return unwritten, list
}

func compareTokens(a, b promotion.TokenID) int { return slices.Compare(a[:], b[:]) }

// least and most are what Redis may have counted for a person.
func (x *sold) least(userID int64) int64 { return x.persons[userID].Due - x.persons[userID].Beyond }

func (x *sold) most(userID int64) int64 { return x.persons[userID].Due + x.persons[userID].Ended }

func (x *sold) judgePersons(bucket int, b claims.Snapshot, unwritten map[int64]int64) (list []Difference) {
	persons := map[int64]bool{}
	for id := range b.Users {
		persons[id] = true
	}
	for id := range x.persons {
		if claims.BucketOf(x.epoch, id) == bucket {
			persons[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(persons)) {
		counted := b.Users[id] - unwritten[id]
		if counted < x.least(id) || counted > x.most(id) {
			due := x.persons[id].Due + unwritten[id]
			list = append(list, x.difference(RedisPersonDrift, bucket, fmt.Sprintf(" user=%d", id), b.Users[id], due, key{userID: id}))
		}
	}
	return list
}

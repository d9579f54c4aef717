package promotion

import (
	"fmt"

	"gorm.io/gorm"

	"doortab/database"
)

// Bucket is what one bucket of an epoch was leased, in units, all of them running totals.
type Bucket struct {
	Bucket  int
	Granted int64
	Revoked int64 // given back
	Written int64 // of claims that are in the database
}

// Left is what the bucket has, or sold without that being written.
func (b Bucket) Left() int64 { return b.Granted - b.Revoked - b.Written }

const selectedBuckets = `SELECT bucket, granted, revoked, written FROM promotion_buckets
	WHERE promotion_id = ? AND epoch = ? ORDER BY bucket`

// Buckets reads the buckets of an epoch, in their order.
func Buckets(tx *gorm.DB, promotionID, epoch int64) ([]Bucket, error) {
	return readBuckets(tx, promotionID, epoch, selectedBuckets)
}

func lockBuckets(tx *gorm.DB, promotionID, epoch int64) ([]Bucket, error) {
	return readBuckets(tx, promotionID, epoch, selectedBuckets+" FOR UPDATE")
}

func readBuckets(tx *gorm.DB, promotionID, epoch int64, query string) (found []Bucket, err error) {
	if err := tx.Raw(query, promotionID, epoch).Scan(&found).Error; err != nil {
		return nil, fmt.Errorf("read the buckets of epoch %d of promotion %d: %w", epoch, promotionID, err)
	}
	return found, nil
}

// Want is what a bucket asks for: at least Need units where there are as many, and up to Most where the quota is large.
type Want struct {
	Bucket     int
	Need, Most int64
}

// Lease notes what buckets gave back, revoked being each one's running total as Redis tells it, and grants units to those
// that want some, in order: Most while the quota is far from its end, Need or what is left where it is near. It returns all
// buckets as they are now, and [ErrEpochOver] where the epoch isn't open.
func Lease(tx *gorm.DB, promotionID, epoch int64, revoked map[int]int64, wants []Want) ([]Bucket, error) {
	free, err := lockQuota(tx, promotionID)
	if err != nil {
		return nil, err
	}
	current, err := CurrentEpoch(tx, promotionID)
	if err != nil {
		return nil, err
	}
	if current.Epoch != epoch || current.State != EpochOpen {
		return nil, fmt.Errorf("lease units to epoch %d of promotion %d: %w", epoch, promotionID, ErrEpochOver)
	}
	buckets, err := lockBuckets(tx, promotionID, epoch)
	if err != nil {
		return nil, err
	}
	back := noteRevoked(buckets, revoked)
	granted := grant(buckets, wants, free+back)
	if err := moveLockedQuota(tx, promotionID, granted-back); err != nil {
		return nil, err
	}
	return buckets, writeBuckets(tx, promotionID, epoch, buckets)
}

// noteRevoked never takes more back than a bucket has: a Redis that was restored from an old copy may tell anything.
func noteRevoked(buckets []Bucket, revoked map[int]int64) (back int64) {
	for i := range buckets {
		b := &buckets[i]
		more := min(revoked[b.Bucket]-b.Revoked, b.Left())
		if more > 0 {
			b.Revoked += more
			back += more
		}
	}
	return back
}

// grant gives each want its need first, and then the rest of its most, but no more than half of a fair share of what is left.
func grant(buckets []Bucket, wants []Want, free int64) (granted int64) {
	give := func(bucket int, units int64) {
		for i := range buckets {
			if buckets[i].Bucket == bucket && units > 0 {
				buckets[i].Granted += units
				granted += units
				free -= units
			}
		}
	}
	for _, w := range wants {
		give(w.Bucket, min(w.Need, free))
	}
	for _, w := range wants {
		give(w.Bucket, min(w.Most-w.Need, free/int64(2*len(buckets))))
	}
	return granted
}

func writeBuckets(tx *gorm.DB, promotionID, epoch int64, buckets []Bucket) error {
	rows := make([][]any, len(buckets))
	for i, b := range buckets {
		rows[i] = []any{promotionID, epoch, b.Bucket, b.Granted, b.Revoked}
	}
	_, err := database.UpdateEach(tx, "promotion_buckets",
		[]database.Column{database.Int("promotion_id"), database.Int("epoch"), database.Int("bucket")},
		[]database.Column{database.Int("granted"), database.Int("revoked")}, rows)
	return err
}

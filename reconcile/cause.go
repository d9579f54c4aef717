package reconcile

import "fmt"

// Cause is the stable name of what is wrong. docs/promotions.md says of each what it means and what mends it.
type Cause string

// Causes that the database alone shows.
const (
	QuotaDrift          Cause = "quota_drift"            // promotion_quota.taken isn't the sum of what was taken
	Oversold            Cause = "oversold"               // more was taken than the quota has
	PersonCounterDrift  Cause = "person_counter_drift"   // promotion_users.taken isn't the sum of what the person has
	OverLimit           Cause = "over_limit"             // a person has more than the promotion's limit
	ClaimLeftDrift      Cause = "claim_left_drift"       // claims.left_quantity isn't what no door has used
	ClaimNotEnded       Cause = "claim_not_ended"        // held, though doors have used all of it
	ClaimUsedWithoutUse Cause = "claim_used_without_use" // used, but by no order, or not by as many units
	ClaimOverused       Cause = "claim_overused"         // orders have more of it than it has
	OverdueClaim        Cause = "overdue_claim"          // held long after its time
	UseWithoutOrder     Cause = "use_without_order"
	UseWithoutClaim     Cause = "use_without_claim"
	BucketWrittenDrift  Cause = "bucket_written_drift" // promotion_buckets.written isn't the sum of the bucket's claims
	LeaseNotGivenBack   Cause = "lease_not_given_back" // an epoch that is over has units

	ReservedDrift      Cause = "reserved_drift" // reserved_stock.reserved isn't the sum of held reservations
	OverdueReservation Cause = "overdue_reservation"
)

// Causes that an open epoch's counters in Redis show, as of a position of their bucket's stream.
const (
	RedisBucketMissing Cause = "redis_bucket_missing" // Redis has lost a bucket
	RedisLeaseDrift    Cause = "redis_lease_drift"    // what was granted or revoked isn't what the database has
	RedisUnitsDrift    Cause = "redis_units_drift"    // the units left aren't what was leased less what was sold
	RedisPersonDrift   Cause = "redis_person_drift"   // a person's count isn't what the person has
	RedisSoldUnwritten Cause = "redis_sold_unwritten" // units were sold, and neither a row nor the stream has the claim
	RedisTokenUnknown  Cause = "redis_token_unknown"  //nolint:gosec // no secret: a token speaks of a claim that nobody sold
	RedisTokenDrift    Cause = "redis_token_drift"    //nolint:gosec // no secret: a token's claim has another person or quantity than its row
	RedisTokenMissing  Cause = "redis_token_missing"  // a claim came through the bucket, which doesn't know its token
)

// Difference is one thing that doesn't fit.
type Difference struct {
	PromotionID int64 // 0: of a reservation
	Cause       Cause
	Target      string // table and key, as in "promotion_users promotion=5 user=42"
	Counted     int64  // what is there, in units
	Due         int64  // what should be
	Repaired    bool

	key key
}

// key names what a difference is of; which of it counts depends on the cause.
type key struct {
	userID, claimID, epoch int64
	bucket                 int
	deviceID, productID    int64
	reservationID          int64
}

// String is the difference in one line.
func (d Difference) String() string {
	text := fmt.Sprintf("%s %s: %d, but %d due", d.Cause, d.Target, d.Counted, d.Due)
	if d.Repaired {
		text += " (repaired)"
	}
	return text
}

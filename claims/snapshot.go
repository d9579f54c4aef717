package claims

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"doortab/promotion"
)

// wholeFields is how many persons or tokens of a bucket a snapshot reads: Redis answers nobody else meanwhile.
const wholeFields = 50_000

// Snapshot is what one bucket of an epoch holds at one moment.
type Snapshot struct {
	Known bool // false: Redis has lost the bucket, or never had it

	Units, Granted, Revoked int64 // of the lease: left, and running totals

	// Whole tells that persons and tokens were few enough to be read.
	Whole bool
	Users map[int64]int64            // units of each person
	Sales map[promotion.TokenID]Sale // what each order token made

	Fence Position // of the last entry that the stream has had
}

// Sale is what a bucket keeps of a claim.
type Sale struct{ ClaimID, UserID, Quantity int64 }

// Position is a place in a stream.
type Position struct{ MS, No int64 }

// String is the position as Redis writes it.
func (p Position) String() string { return fmt.Sprintf("%d-%d", p.MS, p.No) }

// BucketOf is the bucket of an epoch that a person's claims come through.
func BucketOf(e promotion.Epoch, userID int64) int { return (&epoch{Epoch: e}).bucket(userID) }

// Snapshot reads one bucket, all of it as of one moment. It changes nothing.
func (r *Redis) Snapshot(ctx context.Context, e promotion.Epoch, bucket int) (s Snapshot, err error) {
	k := r.epoch(e).keys[bucket]
	fields, err := r.client.HLen(ctx, k.tokens).Result()
	if err != nil {
		return s, fmt.Errorf("read %s: %w", k.tokens, err)
	}
	s.Whole = fields <= wholeFields
	var units, users, sales *redis.MapStringStringCmd
	var stream *redis.XInfoStreamCmd
	_, err = r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		units = p.HGetAll(ctx, k.units)
		if s.Whole {
			users, sales = p.HGetAll(ctx, k.users), p.HGetAll(ctx, k.tokens)
		}
		stream = p.XInfoStream(ctx, k.stream)
		return nil
	})
	if err != nil && !redis.HasErrorPrefix(err, "no such key") {
		return s, fmt.Errorf("read bucket %d of epoch %d of promotion %d: %w", bucket, e.Epoch, e.PromotionID, err)
	}
	if _, s.Known = units.Val()["units"]; !s.Known || stream.Err() != nil {
		return Snapshot{}, nil
	}
	if s.Fence, err = readPosition(stream.Val().LastGeneratedID); err != nil {
		return s, err
	}
	for name, into := range map[string]*int64{"units": &s.Units, "granted": &s.Granted, "revoked": &s.Revoked} {
		if *into, err = strconv.ParseInt(units.Val()[name], 10, 64); err != nil {
			return s, fmt.Errorf("read %s of %s: %w", name, k.units, err)
		}
	}
	if !s.Whole {
		return s, nil
	}
	s.Sales = readSales(sales.Val())
	s.Users, err = readUsers(k.users, users.Val())
	return s, err
}

func readPosition(id string) (p Position, err error) {
	ms, no, _ := strings.Cut(id, "-")
	if p.MS, err = strconv.ParseInt(ms, 10, 64); err == nil {
		p.No, err = strconv.ParseInt(no, 10, 64)
	}
	if err != nil {
		return p, fmt.Errorf("read the position %q of a stream: %w", id, err)
	}
	return p, nil
}

func readUsers(key string, fields map[string]string) (map[int64]int64, error) {
	users := make(map[int64]int64, len(fields))
	for field, value := range fields {
		id, err := strconv.ParseInt(field, 10, 64)
		if err == nil {
			users[id], err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("read person %q of %s: %w", field, key, err)
		}
	}
	return users, nil
}

// readSales leaves out what the hash holds beside tokens: notes of the claims that were given back.
func readSales(fields map[string]string) map[promotion.TokenID]Sale {
	sales := make(map[promotion.TokenID]Sale, len(fields))
	for field, value := range fields {
		var s Sale
		n, err := fmt.Sscan(value, &s.ClaimID, &s.UserID, &s.Quantity)
		if n == 3 && err == nil && len(field) == len(promotion.TokenID{}) {
			sales[promotion.TokenID([]byte(field))] = s
		}
	}
	return sales
}

// WrittenUpTo tells whether nothing up to a position of a bucket's stream waits to be written.
func (r *Redis) WrittenUpTo(ctx context.Context, e promotion.Epoch, bucket int, fence Position) (bool, error) {
	stream := r.epoch(e).keys[bucket].stream
	waiting, err := r.client.XRangeN(ctx, stream, "-", fence.String(), 1).Result()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", stream, err)
	}
	return len(waiting) == 0, nil
}

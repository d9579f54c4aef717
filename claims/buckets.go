package claims

import (
	"fmt"

	"doortab/promotion"
)

const (
	defaultBuckets = 8
	writers        = "writers" // the consumer group of each stream
)

// epoch is an epoch with the keys of its buckets.
type epoch struct {
	promotion.Epoch

	keys []keys
}

// keys are those of one bucket: units is a hash of counters, users one of persons' units, tokens one of the claims that order
// tokens made, stream what the database has yet to get. They have one hash tag, so that a script may use them on a cluster.
type keys struct {
	all                          []string
	units, users, tokens, stream string
}

func (r *Redis) epoch(e promotion.Epoch) *epoch {
	made := &epoch{Epoch: e, keys: make([]keys, e.Buckets)}
	for bucket := range made.keys {
		tag := fmt.Sprintf("%s%d:%d:%d}:", r.prefix, e.PromotionID, e.Epoch, bucket)
		k := keys{units: tag + "units", users: tag + "users", tokens: tag + "tokens", stream: tag + "stream"}
		k.all = []string{k.units, k.users, k.tokens, k.stream}
		made.keys[bucket] = k
	}
	return made
}

// bucket is the one of a person, the same in every process.
func (e *epoch) bucket(userID int64) int {
	mixed := uint64(userID) * 0x9e3779b97f4a7c15  //nolint:gosec // bits, not a number
	return int((mixed >> 32) % uint64(e.Buckets)) //nolint:gosec // below the number of buckets
}

package claims

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"doortab/promotion"
)

// reading is the commands that read one bucket's stream.
type reading struct {
	bucket int
	fresh  *redis.XStreamSliceCmd
	taken  *redis.XAutoClaimCmd    // nil: what others took isn't looked for
	old    *redis.XMessageSliceCmd // nil: what is in nobody's hands isn't
}

// read takes entries that nobody has taken, and abandoned ones where u asks for them, and leaves the buckets in u that may have
// more.
func (c *counters) read(ctx context.Context, u *unread) ([]streamed, error) {
	var readings []reading
	_, err := c.redis.pipeline(ctx, func(p pipeliner) {
		for bucket := range u.buckets {
			readings = append(readings, c.addReading(ctx, p, u, bucket))
		}
	})
	if err != nil {
		return nil, err
	}
	var entries []streamed
	for _, r := range readings {
		messages, err := r.messages()
		if err != nil { // its stream or group is gone
			c.lose(u.epoch)
			clear(u.buckets)
			break
		}
		if len(messages) < readEntries {
			delete(u.buckets, r.bucket)
		}
		for _, message := range messages {
			entry, err := readStreamed(u.epoch, r.bucket, message)
			entry.malformed = err
			entries = append(entries, entry)
		}
	}
	c.hold(entries)
	return entries, nil
}

func (c *counters) addReading(ctx context.Context, p pipeliner, u *unread, bucket int) reading {
	stream := u.epoch.keys[bucket].stream
	r := reading{bucket: bucket, fresh: p.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: writers, Consumer: c.service.consumer, Streams: []string{stream, ">"}, Count: readEntries, Block: -1,
	})}
	if u.abandoned {
		r.taken = p.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Group: writers, Consumer: c.service.consumer, Stream: stream, MinIdle: abandonedAfter, Start: "0-0", Count: readEntries,
		})
	}
	if u.abandoned && u.epoch.State == promotion.EpochDraining {
		// Redis may have lost a part of what it was told before it restarted: an entry that nobody will get is written too.
		before := strconv.FormatInt(time.Now().Add(-abandonedAfter).UnixMilli(), 10)
		r.old = p.XRangeN(ctx, stream, "-", before, readEntries)
	}
	return r
}

func (r reading) messages() (messages []redis.XMessage, err error) {
	if err := r.fresh.Err(); err != nil && err != redis.Nil { //nolint:errorlint // go-redis returns it as it is
		return nil, err
	}
	for _, stream := range r.fresh.Val() {
		messages = append(messages, stream.Messages...)
	}
	if r.taken == nil {
		return messages, nil
	}
	if err := r.taken.Err(); err != nil {
		return nil, err
	}
	abandoned, _ := r.taken.Val()
	messages = append(messages, abandoned...)
	if r.old != nil {
		messages = append(messages, r.old.Val()...)
	}
	return messages, nil
}

// hold notes that the sales of entries are in this process's hands.
func (c *counters) hold(entries []streamed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range entries {
		for _, s := range c.sold[entry.ask.ClaimID] {
			s.inHand = true
		}
	}
}

// acknowledge removes entries that are in the database. What it can't remove is written once more later, which changes nothing.
func (c *counters) acknowledge(ctx context.Context, entries []streamed) {
	ids := map[string][]string{}
	for _, entry := range entries {
		stream := entry.epoch.keys[entry.bucket].stream
		ids[stream] = append(ids[stream], entry.id)
	}
	if len(ids) == 0 {
		return
	}
	_, err := c.redis.pipeline(ctx, func(p pipeliner) {
		for stream, ids := range ids {
			p.XDel(ctx, stream, ids...) // first: an entry that is acknowledged and still there would be nobody's
			p.XAck(ctx, stream, writers, ids...)
		}
	})
	if err != nil {
		c.service.log.Debug("Entries that are written could not be removed.", "promotion", c.promotionID, "error", err)
	}
}

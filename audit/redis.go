package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"doortab/database"
)

// fenceWait is how long what Redis has sold may take to get into the database.
const fenceWait = 10 * time.Second

// counters are what one bucket of an open epoch holds in Redis at one moment.
type counters struct {
	promotion, epoch, bucket int64
	since                    time.Time // when the epoch was begun
	revokedBefore            int64     // as the database had it before

	missing, behind         bool
	units, granted, revoked int64
	users                   map[string]string
	ms, no                  int64 // the last place in the stream
}

func (c *counters) key() string {
	return fmt.Sprintf("redis promotion=%d epoch=%d bucket=%d", c.promotion, c.epoch, c.bucket)
}

// openRedis takes the address of a server or, with addr in its query, of a cluster.
func openRedis(address string) (redis.UniversalClient, error) {
	logging.Disable() // what it logs of its own accord is also returned

	// The cause may quote the URL, which may hold a password.
	unreadable := errors.New("Redis URL cannot be read: write it as redis://[:password@]host:port/0")
	if u, err := url.Parse(address); err == nil && u.Query().Has("addr") {
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, unreadable
		}
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, unreadable
	}
	return redis.NewClient(o), nil
}

// readRedis reads the counters of every open epoch, and waits until the database has what they had sold by then.
func readRedis(ctx context.Context, db *database.DB, client redis.UniversalClient) (list []counters, err error) {
	var installation string
	if err := db.SQL().QueryRowContext(ctx, "SELECT installation_id FROM installation").Scan(&installation); err != nil {
		return nil, fmt.Errorf("audit: read the installation's name: %w", err)
	}
	rows, err := db.SQL().QueryContext(ctx, `SELECT b.promotion_id, b.epoch, b.bucket, b.revoked, e.created_at FROM promotion_epochs e
		JOIN promotion_buckets b ON b.promotion_id = e.promotion_id AND b.epoch = e.epoch WHERE e.state = 'open'`)
	if err != nil {
		return nil, fmt.Errorf("audit: read open epochs: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err below says what matters
	for rows.Next() {
		var c counters
		if err := rows.Scan(&c.promotion, &c.epoch, &c.bucket, &c.revokedBefore, &c.since); err != nil {
			return nil, fmt.Errorf("audit: read open epochs: %w", err)
		}
		list = append(list, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("audit: read open epochs: %w", err)
	}
	deadline := time.Now().Add(fenceWait)
	for i := range list {
		c := &list[i]
		tag := fmt.Sprintf("doortab:{%s:%d:%d:%d}:", installation, c.promotion, c.epoch, c.bucket)
		if err := c.read(ctx, client, tag, deadline); err != nil {
			return nil, fmt.Errorf("audit %s: the counters in Redis can't be read (check DOORTAB_REDIS_URL and the server): %w", c.key(), err)
		}
	}
	return list, nil
}

func (c *counters) read(ctx context.Context, client redis.UniversalClient, tag string, deadline time.Time) error {
	var units, users *redis.MapStringStringCmd
	var stream *redis.XInfoStreamCmd
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		units, users, stream = p.HGetAll(ctx, tag+"units"), p.HGetAll(ctx, tag+"users"), p.XInfoStream(ctx, tag+"stream")
		return nil
	})
	if c.missing = units.Val()["units"] == "" || stream.Err() != nil; c.missing {
		if redis.HasErrorPrefix(err, "no such key") {
			err = nil
		}
		return err
	}
	ms, no, _ := strings.Cut(stream.Val().LastGeneratedID, "-")
	for text, into := range map[string]*int64{ms: &c.ms, no: &c.no} {
		if *into, err = strconv.ParseInt(text, 10, 64); err != nil {
			return err
		}
	}
	for name, into := range map[string]*int64{"units": &c.units, "granted": &c.granted, "revoked": &c.revoked} {
		if *into, err = strconv.ParseInt(units.Val()[name], 10, 64); err != nil {
			return err
		}
	}
	c.users = users.Val()
	return c.await(ctx, client, tag+"stream", stream.Val().LastGeneratedID, deadline)
}

// await waits until the stream has nothing up to a place any more.
func (c *counters) await(ctx context.Context, client redis.UniversalClient, stream, place string, deadline time.Time) error {
	for {
		left, err := client.XRangeN(ctx, stream, "-", place, 1).Result()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			c.behind = true
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const readSold = `
SELECT b.granted, COALESCE((SELECT SUM(c.quantity) FROM claims c WHERE c.promotion_id = b.promotion_id AND c.epoch = b.epoch
         AND c.bucket = b.bucket AND (c.stream_ms < ? OR c.stream_ms = ? AND c.stream_no <= ?)), 0)
  FROM promotion_buckets b JOIN promotion_epochs e ON e.promotion_id = b.promotion_id AND e.epoch = b.epoch
 WHERE e.state = 'open' AND b.promotion_id = ? AND b.epoch = ? AND b.bucket = ?`

// checkRedis compares counters with the claims of the same place in their stream. Epochs that are over meanwhile are passed over.
func (a *auditor) checkRedis(list []counters) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range list {
			c := &list[i]
			var granted, sold int64
			open := false
			err := a.each(ctx, readSold, []any{&granted, &sold}, func() { open = true }, c.ms, c.ms, c.no, c.promotion, c.epoch, c.bucket)
			if err != nil {
				return err
			}
			if !open {
				continue
			}
			a.i6.Rows++
			a.checkCounters(c, granted, sold)
			if c.missing || c.behind {
				continue
			}
			if err := a.checkCounted(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
}

func (a *auditor) checkCounters(c *counters, granted, sold int64) {
	switch {
	case c.missing:
		a.i6.violated("%s: Redis doesn't have it, the epoch is open", c.key())
	case c.behind:
		a.i6.violated("%s: what was sold up to %d-%d isn't written", c.key(), c.ms, c.no)
	case c.granted > granted:
		a.i6.violated("%s: %d units granted, promotion_buckets says %d", c.key(), c.granted, granted)
	case c.revoked < c.revokedBefore:
		a.i6.violated("%s: %d units given back, promotion_buckets says %d", c.key(), c.revoked, c.revokedBefore)
	case c.units != c.granted-c.revoked-sold:
		a.i6.violated("%s: %d units left of %d, but claims have %d", c.key(), c.units, c.granted-c.revoked, sold)
	}
}

// readCounted adds up the claims of persons of a bucket. odd ones are left alone: what Redis may count of them depends on what it
// has heard since.
const readCounted = `
SELECT c.user_id, SUM(c.quantity), SUM(NOT (c.state IN ('held', 'used') AND IF(c.epoch <=> ?,
         c.stream_ms < ? OR c.stream_ms = ? AND c.stream_no <= ?, c.created_at < ? - INTERVAL 1 MINUTE))),
       EXISTS (SELECT 1 FROM promotion_uses u WHERE u.promotion_id = c.promotion_id AND u.user_id = c.user_id AND u.given_back > 0)
  FROM claims c WHERE c.promotion_id = ?
   AND c.user_id IN (SELECT x.user_id FROM claims x WHERE x.promotion_id = c.promotion_id AND x.epoch = ? AND x.bucket = ?)
 GROUP BY c.promotion_id, c.user_id ORDER BY c.user_id`

func (a *auditor) checkCounted(ctx context.Context, c *counters) error {
	var user, quantity, odd int64
	var refunded sql.Null[bool]
	return a.each(ctx, readCounted, []any{&user, &quantity, &odd, &refunded}, func() {
		a.i6.Rows++
		counted := c.users[strconv.FormatInt(user, 10)]
		if odd == 0 && !refunded.V && counted != strconv.FormatInt(quantity, 10) {
			a.i6.violated("%s user=%d: %q units counted, the person's claims have %d", c.key(), user, counted, quantity)
		}
	}, c.epoch, c.ms, c.ms, c.no, c.since, c.promotion, c.epoch, c.bucket)
}

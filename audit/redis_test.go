package audit_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"doortab/audit"
	"doortab/services/servicestest"
)

// sold is a promotion whose open epoch has sold 5 of 20 units through one bucket, 2 and 3 to two persons; a sixth is sold later.
func (b books) sold(client *redis.Client) (tag string) {
	b.t.Helper()
	b.promoted()
	for _, table := range []string{"promotion_epochs", "promotion_buckets"} {
		b.exec("DELETE FROM " + table)
	}
	b.exec("INSERT INTO promotion_epochs VALUES (301, 1, 'open', 1, NOW(3))")
	b.exec("INSERT INTO promotion_buckets VALUES (301, 1, 0, 20, 4, 5)")
	b.exec("UPDATE promotion_quota SET quota = 100, taken = 3 + 5 + 11 WHERE promotion_id = 301")
	b.exec("UPDATE promotions SET quota = 100 WHERE promotion_id = 301")
	for user, quantity := range map[int]int{51: 2, 52: 3} {
		b.exec("INSERT INTO promotion_users VALUES (301, ?, ?, 1)", user, quantity)
		b.exec(`INSERT INTO claims (claim_id, promotion_id, user_id, token_id, app, quantity, left_quantity, state, epoch, bucket, stream_ms,
			stream_no, expires_at, created_at, updated_at) VALUES (?, 301, ?, ?, '', ?, ?, 'held', 1, 0, 1, ?, NOW(3), NOW(3), NOW(3))`,
			user, user, digestOf(strconv.Itoa(user))[:16], quantity, quantity, user)
	}
	var installation string
	if err := b.db.Read(b.t.Context()).Raw("SELECT installation_id FROM installation").Scan(&installation).Error; err != nil {
		b.t.Fatal(err)
	}
	tag = "doortab:{" + installation + ":301:1:0}:"
	ctx := b.t.Context()
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, tag+"units", tag+"users", tag+"stream")
		p.HSet(ctx, tag+"units", "units", 11, "granted", 20, "revoked", 4)
		p.HSet(ctx, tag+"users", "51", 2, "52", 3)
		p.XAdd(ctx, &redis.XAddArgs{Stream: tag + "stream", ID: "1-52", Values: []string{"claim", "x"}})
		p.XDel(ctx, tag+"stream", "1-52")
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return tag
}

func TestCountersInRedis(t *testing.T) {
	t.Parallel()
	const at = "I6 redis promotion=301 epoch=1 bucket=0"
	b, url := newBooks(t), servicestest.Redis(t).URL()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	for _, c := range []struct {
		name  string
		plant func(tag string) error
		want  []string
	}{
		{"sound", func(string) error { return nil }, nil},
		{"a unit too many", func(tag string) error { return client.HIncrBy(t.Context(), tag+"units", "units", 1).Err() },
			[]string{at + ": 12 units left of 16, but claims have 5"}},
		{"more than was leased", func(tag string) error { return client.HIncrBy(t.Context(), tag+"units", "granted", 1).Err() },
			[]string{at + ": 21 units granted, promotion_buckets says 20"}},
		{"units that went back", func(tag string) error { return client.HIncrBy(t.Context(), tag+"units", "revoked", -1).Err() },
			[]string{at + ": 3 units given back, promotion_buckets says 4"}},
		{"a person counted too low", func(tag string) error { return client.HIncrBy(t.Context(), tag+"users", "52", -1).Err() },
			[]string{at + ` user=52: "2" units counted, the person's claims have 3`}},
		{"a person not counted", func(tag string) error { return client.HDel(t.Context(), tag+"users", "51").Err() },
			[]string{at + ` user=51: "" units counted, the person's claims have 2`}},
		{"nothing", func(tag string) error { return client.Del(t.Context(), tag+"units").Err() },
			[]string{at + ": Redis doesn't have it, the epoch is open"}},
		{"an epoch that is over", func(string) error {
			b.exec("UPDATE promotion_epochs SET state = 'draining'")
			return nil
		}, []string{
			"I6 promotion_quota promotion=301: taken 19, but 7 held, 1 used and 0 leased",
			"I6 promotion_buckets promotion=301 epoch=1 bucket=0: 11 units leased, the epoch is draining",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.plant(b.sold(client)); err != nil {
				t.Fatal(err)
			}
			report, err := audit.RunWithRedis(t.Context(), b.db, url)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, violations(t, report)); diff != "" {
				t.Errorf("violations (- wanted, + found):\n%s", diff)
			}
		})
	}
}

func TestARedisThatCantBeRead(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.promoted()
	b.exec("INSERT INTO promotion_epochs VALUES (301, 1, 'open', 1, NOW(3))")
	b.exec("INSERT INTO promotion_buckets VALUES (301, 1, 0, 20, 4, 5)")
	for _, url := range []string{"redis://127.0.0.1:1/0", "http://127.0.0.1"} {
		if _, err := audit.RunWithRedis(t.Context(), b.db, url); err == nil {
			t.Errorf("%s was read", url)
		}
	}
}

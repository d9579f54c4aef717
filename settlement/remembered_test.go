package settlement_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/services"
	"doortab/services/servicestest"
	"doortab/settlement"
)

// remembering is a shop with a Redis, and its names there.
type remembering struct {
	*shop
	redis        *redis.Client
	installation string
}

func newRemembering(t *testing.T, url string) *remembering {
	t.Helper()
	s := newShop(t)
	installation, err := settlement.Installation(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	s.serve(remember(t, url, installation))
	return &remembering{s, client, installation}
}

func remember(t *testing.T, url, installation string) *settlement.Remembered {
	t.Helper()
	r, err := settlement.NewPatientRemembered(url, installation)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (r *remembering) entry(deviceID int64, id string) string {
	return fmt.Sprintf("doortab:%s:receipt:{%d:%s}", r.installation, deviceID, id)
}

func (r *remembering) knows(deviceID int64, id string) bool {
	r.t.Helper()
	n, err := r.redis.Exists(context.Background(), r.entry(deviceID, id)).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	return n == 1
}

func (r *remembering) answeredBy() string {
	return fmt.Sprint("redis ", r.metric("doortab_repeats_total", "redis"), " database ", r.metric("doortab_repeats_total", "database"))
}

func (r *remembering) wantAnsweredBy(redis, database int) {
	r.t.Helper()
	if got, want := r.answeredBy(), fmt.Sprint("redis ", redis, " database ", database); got != want {
		r.t.Errorf("repeats answered by %s, want %s", got, want)
	}
}

func TestARepeatIsAnsweredFromRedis(t *testing.T) {
	t.Parallel()
	r := newRemembering(t, servicestest.Redis(t).URL())
	r.cabinet(1001, 7, 10)
	statements := 0
	beforeCommit := true
	beforeWrite(t, r.db, "INSERT INTO orders", func(*gorm.DB) {
		statements++
		beforeCommit = beforeCommit && !r.knows(1001, "e")
	})
	payload := sale(1001, "e", 7, 2)
	first := r.receipts(1001, payload)[0]
	if !beforeCommit || statements != 1 {
		t.Error("the receipt was in Redis before COMMIT")
	}
	if ttl := r.redis.TTL(t.Context(), r.entry(1001, "e")).Val(); ttl < time.Hour {
		t.Errorf("kept for %v", ttl)
	}
	attempts := r.attempts()[0]
	again := r.receipts(1001, payload, payload)
	first.Duplicate = true
	for _, repeat := range again {
		if diff := cmp.Diff(first, repeat); diff != "" {
			t.Error(diff)
		}
	}
	if r.attempts()[0] != attempts {
		t.Error("the database was asked for a repeat that Redis knows")
	}
	r.wantAnsweredBy(2, 0)
}

func TestRedisAnswersOnlyTheSameContent(t *testing.T) {
	t.Parallel()
	r := newRemembering(t, servicestest.Redis(t).URL())
	r.cabinet(1001, 7, 10)
	r.receipts(1001, sale(1001, "e", 7, 2))
	for range 2 {
		if c := r.receipts(1001, sale(1001, "e", 7, 3))[0]; c.Outcome != cabinet.Conflict {
			t.Errorf("%+v", c)
		}
	}
	if n := r.count("settlement_conflicts", "1"); n != 1 {
		t.Errorf("%d conflicts", n)
	}
	if again := r.receipts(1001, sale(1001, "e", 7, 2))[0]; again.Outcome != cabinet.Settled || !again.Duplicate {
		t.Errorf("the first content after a conflict: %+v", again)
	}
	r.audited()
}

func TestNothingUnsettledIsRemembered(t *testing.T) {
	t.Parallel()
	r := newRemembering(t, servicestest.Redis(t).URL())
	r.cabinet(1001, 7, 10)
	r.exec("CREATE TRIGGER broken BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000'")
	r.settle(1001, sale(1001, "fails", 7, 2), event(1002, "mismatch", items()), event(1001, "malformed"))
	r.settle(1003, event(1003, "unknown", items()))
	for device, id := range map[int64]string{1001: "fails", 1002: "mismatch", 1003: "unknown"} {
		if r.knows(device, id) {
			t.Errorf("%s is in Redis", id)
		}
	}
	if r.knows(1001, "malformed") {
		t.Error("a malformed event is in Redis")
	}
}

func TestEntriesThatAnswerNothing(t *testing.T) {
	t.Parallel()
	r := newRemembering(t, servicestest.Redis(t).URL())
	r.cabinet(1001, 7, 100)
	payload := sale(1001, "e", 7, 2)
	want := r.receipts(1001, payload)[0]
	want.Duplicate = true
	good := r.redis.Get(t.Context(), r.entry(1001, "e")).Val()
	digest, receipt := good[:32], good[32:]
	r.receipts(1001, sale(1001, "other", 7, 1))
	for name, entry := range map[string]string{
		"empty": "", "not JSON": "hello", "another type": "[]", "nothing in it": "{}", "cut": good[:len(good)/2],
		"no receipt":            digest,
		"an empty receipt":      digest + "{}",
		"no digest":             receipt,
		"another digest":        strings.Repeat("A", 32) + receipt,
		"another event's entry": r.redis.Get(t.Context(), r.entry(1001, "other")).Val(),
	} {
		before := r.metric("doortab_repeats_total", "database")
		r.redis.Set(t.Context(), r.entry(1001, "e"), entry, time.Hour)
		if diff := cmp.Diff(want, r.receipts(1001, payload)[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if r.metric("doortab_repeats_total", "database") != before+1 {
			t.Errorf("%s: not answered by the database", name)
		}
	}
}

func TestInstallationsOnOneRedisDoNotMix(t *testing.T) {
	t.Parallel()
	url := servicestest.Redis(t).URL()
	one, two := newRemembering(t, url), newRemembering(t, url)
	if one.installation == two.installation {
		t.Fatal("two databases have one name")
	}
	payload := sale(1001, "e", 7, 2)
	for _, r := range []*remembering{one, two} {
		r.cabinet(1001, 7, 10)
		if receipt := r.receipts(1001, payload)[0]; receipt.Duplicate {
			t.Errorf("%+v", receipt)
		}
	}
}

func TestRedisIsFlushedAndKilled(t *testing.T) {
	t.Parallel()
	group := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}})
	r := newRemembering(t, group.Redis.URL())
	r.cabinet(1001, 7, 100)
	first := r.receipts(1001, sale(1001, "e", 7, 2))[0]
	first.Duplicate = true
	same := func(what string) {
		t.Helper()
		if diff := cmp.Diff(first, r.receipts(1001, sale(1001, "e", 7, 2))[0]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	same("at rest")
	r.wantAnsweredBy(1, 0)
	r.redis.FlushAll(t.Context())
	same("flushed")
	r.wantAnsweredBy(1, 1)
	same("flushed and asked once")
	r.wantAnsweredBy(2, 1)
	if err := group.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	same("killed")
	if fresh := r.receipts(1001, sale(1001, "f", 7, 1))[0]; fresh.Outcome != cabinet.Settled || fresh.Duplicate {
		t.Errorf("killed: %+v", fresh)
	}
	r.audited()
}

func TestRedisWasNeverStarted(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	r := newRemembering(t, "redis://"+listener.Addr().String()+"/0")
	r.cabinet(1001, 7, 100)
	receipts := append(r.receipts(1001, sale(1001, "e", 7, 2)), r.receipts(1001, sale(1001, "e", 7, 2))...)
	if receipts[0].Duplicate || !receipts[1].Duplicate || receipts[0].OrderID != receipts[1].OrderID {
		t.Errorf("%+v", receipts)
	}
}

// A Redis that answers after 2 s costs its budget once, and then nothing until it has rested.
func TestASlowRedis(t *testing.T) {
	t.Parallel()
	slow := &slowRedis{}
	slow.start(t)
	r := newShop(t)
	remembered, err := settlement.NewRemembered("redis://"+slow.address+"/0", "slow", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = remembered.Close() })
	r.serve(remembered)
	r.cabinet(1001, 7, 1000)
	within(t, 30*time.Second, "a run of groups that each take milliseconds", func() {
		for n := range 50 {
			if a := r.settle(1001, sale(1001, fmt.Sprint("e", n), 7, 1))[0]; a.Err != nil || a.Receipt.Outcome != cabinet.Settled {
				t.Errorf("%+v", a)
			}
		}
	})
	if n := r.metric("doortab_redis_recall_total", "unavailable"); n < 50 {
		t.Errorf("%v look-ups were given up, want every one", n)
	}
	// One connection at the first look-up, and one each time that Redis has rested.
	if asked := slow.connections(); asked > 10 {
		t.Errorf("a slow Redis was asked %d times in 50 groups", asked)
	}
	r.audited()
}

type slowRedis struct {
	address string
	mu      sync.Mutex
	conns   []net.Conn
}

func (s *slowRedis) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			running.Go(func() { s.answerLate(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		running.Wait()
	})
}

func (s *slowRedis) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *slowRedis) answerLate(conn net.Conn) {
	buffer := make([]byte, 4096)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
		late := time.AfterFunc(2*time.Second, func() { _, _ = io.WriteString(conn, "+OK\r\n") })
		defer late.Stop()
	}
}

func TestARedisURLThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := settlement.NewRemembered("http://:secret@x", uuid.NewString(), slog.Default())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v, want one without the password", err)
	}
}

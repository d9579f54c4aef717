package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"doortab/services"
	"doortab/services/servicestest"
)

// stormVariable makes the storm as large as a flash sale; `make storm` sets it.
const stormVariable = "DOORTAB_STORM"

// storm is many persons who press one button over HTTP while everything behind it fails.
type storm struct {
	*installation
	promotionID string
	service     atomic.Pointer[server]
	presses     atomic.Int64

	mu      sync.Mutex
	claims  map[string]bool
	users   map[int64]bool
	answers map[string]int
}

// Each person presses three times, twice with one order token and once with another, while Redis is killed twice and flushed once, the
// service is killed three times, and answers of Redis get lost.
func TestStorm(t *testing.T) {
	t.Parallel()
	users, units, connections := int64(600), 60, 60
	if os.Getenv(stormVariable) != "" {
		users, units, connections = 20_000, 500, 200
	}
	s := &storm{installation: newInstallation(t, 0), claims: map[string]bool{}, users: map[int64]bool{}, answers: map[string]int{}}
	own := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{AppendOnly: true}}).Redis
	lossy := &lossy{}
	redisURL := lossy.before(t, own.URL())
	serve := func() { s.service.Store(s.serve("--redis-url="+redisURL, "--limit-user=0")) }
	serve()
	s.begin(units)
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.press(users, connections)
	}()
	failures := []func(){
		func() { lossy.lose.Store(1) },
		func() { must(t, own.Kill()) },
		func() { must(t, own.Start(t.Context())) },
		func() { s.service.Load().kill(); serve() },
		func() { flush(t, own.URL()); lossy.lose.Store(1) },
		func() { s.service.Load().kill(); serve() },
		func() { must(t, own.Kill()) },
		func() { s.service.Load().kill(); must(t, own.Start(t.Context())); serve() },
	}
	for i, fail := range failures {
		// The first ones come while units are left.
		after := int64(i+1) * int64(units)
		eventually(t, 5*time.Minute, "more presses", func() bool { return s.presses.Load() >= after })
		fail()
	}
	<-done
	t.Logf("%d persons pressed 3 times each for %d units over %d connections in %s: %s", users, units, connections,
		time.Since(began).Round(time.Second), s.tell())
	s.check(units)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// lossy cuts a connection to Redis once it has sent a script: Redis runs it, and nobody hears what it answers.
type lossy struct{ lose atomic.Int64 }

// before returns the URL of a proxy in front of a Redis.
func (l *lossy) before(t *testing.T, redisURL string) string {
	t.Helper()
	u, err := url.Parse(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = proxy(t, u.Host, func(to io.Writer, from io.Reader) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			cut := bytes.Contains(buffer[:n], []byte("evalsha")) && l.lose.Add(-1) >= 0
			if _, err := to.Write(buffer[:n]); err != nil || cut {
				return
			}
		}
	}, plainCopy)
	return u.String()
}

// begin makes a promotion of the Redis way live.
func (s *storm) begin(units int) {
	s.t.Helper()
	at := s.service.Load().http
	s.client.do(http.MethodPost, at+"/v1/products", `{"productId":777,"sku":"COLA-777","name":"Cola","priceMinor":500}`, http.StatusCreated, nil)
	now := time.Now()
	var made struct{ PromotionID string }
	s.client.do(http.MethodPost, at+"/v1/promotions", fmt.Sprintf(`{"name":"Cola for 1","productId":777,"priceMinor":100,"quota":%d,"perUser":1,
		"needsClaim":true,"site":"","startsAt":%q,"endsAt":%q,"claimTtlSeconds":3600,"way":"redis"}`,
		units, now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339)), http.StatusCreated, &made)
	s.promotionID = made.PromotionID
	s.client.do(http.MethodPost, at+"/v1/promotions/"+s.promotionID+"/transitions", `{"to":"live"}`, http.StatusOK, nil)
}

func (s *storm) press(users int64, connections int) {
	persons := make(chan int64)
	var pressing sync.WaitGroup
	for range connections {
		pressing.Go(func() {
			for user := range persons {
				first := s.token(user)
				for _, token := range []string{first, s.token(user), first} {
					s.claim(user, token)
					s.presses.Add(1)
				}
			}
		})
	}
	for user := range users {
		persons <- user + 1
	}
	close(persons)
	pressing.Wait()
}

// ask asks until it is answered by a service that works.
func (s *storm) ask(method, path, body string) (status int, text []byte) {
	for s.t.Context().Err() == nil {
		var err error
		if status, text, err = s.client.request(method, s.service.Load().http+path, body); err == nil && status < 500 {
			return status, text
		}
		s.wait()
	}
	return 0, nil
}

func (s *storm) wait() {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}

func (s *storm) token(user int64) string {
	var made struct{ Token string }
	_, text := s.ask(http.MethodPost, "/v1/order-tokens", fmt.Sprintf(`{"userId":%d,"promotionId":%q}`, user, s.promotionID))
	if err := json.Unmarshal(text, &made); err != nil || made.Token == "" {
		s.t.Errorf("order token: %s", text)
	}
	return made.Token
}

type stormAnswer struct {
	ClaimID, Type string
	UserID        int64
}

// claim presses once, and asks for a claim that is pending until it isn't. One that is lost is pressed for again.
func (s *storm) claim(user int64, token string) {
	body := fmt.Sprintf(`{"token":%q,"userId":%d,"quantity":1}`, token, user)
	status, text := s.ask(http.MethodPost, "/v1/promotions/"+s.promotionID+"/claims", body)
	for status == http.StatusAccepted || status == http.StatusNotFound {
		s.note("202")
		var pending stormAnswer
		_ = json.Unmarshal(text, &pending)
		s.wait()
		if status == http.StatusAccepted {
			status, text = s.ask(http.MethodGet, "/v1/claims/"+pending.ClaimID, "")
		} else {
			status, text = s.ask(http.MethodPost, "/v1/promotions/"+s.promotionID+"/claims", body)
		}
	}
	var answer stormAnswer
	if err := json.Unmarshal(text, &answer); err != nil && s.t.Context().Err() == nil {
		s.t.Errorf("status %d: %s", status, text)
	}
	switch status {
	case http.StatusCreated, http.StatusOK:
		s.note("held")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.claims[answer.ClaimID], s.users[answer.UserID] = true, true
	case http.StatusConflict:
		s.note(strings.TrimPrefix(answer.Type, "urn:doortab:problem:"))
	default:
		s.t.Errorf("status %d: %s", status, text)
	}
}

func (s *storm) note(answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[answer]++
}

func (s *storm) tell() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, answer := range slices.Sorted(maps.Keys(s.answers)) {
		parts = append(parts, fmt.Sprintf("%s %d", answer, s.answers[answer]))
	}
	return strings.Join(parts, ", ")
}

// check compares what everybody heard with the database, and has everything else that counts compared.
func (s *storm) check(units int) {
	s.t.Helper()
	if len(s.claims) != units || len(s.users) != units {
		s.t.Errorf("%d claims of %d users were heard of, not %d", len(s.claims), len(s.users), units)
	}
	if held := s.count("SELECT COUNT(*) FROM claims WHERE state = 'held'"); held != units {
		s.t.Errorf("%d claims are held", held)
	}
	if n := s.count("SELECT COUNT(DISTINCT user_id) FROM claims WHERE state = 'held'"); n != units {
		s.t.Errorf("%d persons hold one", n)
	}
	for id := range s.claims {
		if n := s.count("SELECT COUNT(*) FROM claims WHERE state = 'held' AND claim_id = " + id); n != 1 {
			s.t.Errorf("claim %s was heard of and isn't there", id)
		}
	}
	if left := s.count("SELECT quota - taken FROM promotion_quota"); left != 0 {
		s.t.Errorf("%d units are left over", left)
	}
	s.audit()
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"doortab/database/databasetest"
)

// clock is a time that a test moves.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time              { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration)     { c.offset.Add(int64(d)) }
func quiet() *slog.Logger                    { return slog.New(slog.DiscardHandler) }
func breakReads(a *Authenticator)            { a.loader.read = brokenRead }
func mended(a *Authenticator, read readFunc) { a.loader.read, a.loader.failedAt = read, time.Time{} }

type readFunc = func(context.Context, []int64) (map[int64][32]byte, error)

func brokenRead(context.Context, []int64) (map[int64][32]byte, error) {
	return nil, errors.New("the database is away")
}

func newAuthenticator(t *testing.T) (*Authenticator, *Registry, *clock) {
	t.Helper()
	db := databasetest.New(t)
	c := &clock{}
	a := NewAuthenticator(db, quiet())
	a.now = c.now
	return a, NewRegistry(db), c
}

func rotate(t *testing.T, r *Registry, deviceID int64) []byte {
	t.Helper()
	secret, err := r.RotateSecret(t.Context(), deviceID)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(secret)
}

func TestOnlyACabinetsOwnSecretIsRight(t *testing.T) {
	t.Parallel()
	a, r, _ := newAuthenticator(t)
	for _, id := range []int64{1, 2, 3} {
		register(t, r, id)
	}
	first, second := rotate(t, r, 1), rotate(t, r, 2)
	for name, c := range map[string]struct {
		username string
		password []byte
		ok       bool
	}{
		"right":             {"1", first, true},
		"another's":         {"1", second, false},
		"empty":             {"1", nil, false},
		"no secret yet":     {"3", nil, false},
		"unknown cabinet":   {"9", first, false},
		"leading zero":      {"01", first, false},
		"not a number":      {"admin", first, false},
		"empty user name":   {"", nil, false},
		"client id's form":  {"1-a", first, false},
		"beyond the range":  {"9007199254740993", first, false},
		"secret with a NUL": {"1", append([]byte{0}, first...), false},
	} {
		for range 2 { // from the table, then from the cache
			token, ok := a.Authenticate(c.username, c.password)
			if ok != c.ok || ok && token == "" {
				t.Errorf("%s: %v, token %q", name, ok, token)
			}
		}
	}
	if a.StillValid("admin", "x") {
		t.Error("a user name that is no cabinet's is valid")
	}
}

func TestARotatedSecretStops(t *testing.T) {
	t.Parallel()
	a, r, c := newAuthenticator(t)
	register(t, r, 1)
	old := rotate(t, r, 1)
	token, ok := a.Authenticate("1", old)
	if !ok || !a.StillValid("1", token) {
		t.Fatal("the first secret is refused")
	}
	fresh := rotate(t, r, 1)
	c.advance(rereadAfter + time.Second)
	newToken, ok := a.Authenticate("1", fresh)
	if !ok || newToken == token {
		t.Error("the new secret has to wait for the cache")
	}
	if a.StillValid("1", token) || !a.StillValid("1", newToken) {
		t.Error("the old connection stays, or the new one ends")
	}
	if _, ok := a.Authenticate("1", old); ok {
		t.Error("the old secret is still right")
	}
}

func TestARefreshEndsOldConnections(t *testing.T) {
	t.Parallel()
	a, r, _ := newAuthenticator(t)
	register(t, r, 1)
	token, _ := a.Authenticate("1", rotate(t, r, 1))
	rotate(t, r, 1)
	if !a.StillValid("1", token) {
		t.Error("an answer from memory knows of the rotation")
	}
	if !a.StillValid("2", "forgotten") {
		t.Error("a connection ends before anybody has looked")
	}
	if err := a.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.StillValid("1", token) {
		t.Error("the connection with the old secret stays")
	}
	if a.StillValid("2", "forgotten") {
		t.Error("a connection of a cabinet that is gone stays")
	}
}

func TestWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	a, r, c := newAuthenticator(t)
	register(t, r, 1)
	register(t, r, 2)
	one, two := rotate(t, r, 1), rotate(t, r, 2)
	token, _ := a.Authenticate("1", one)
	works := a.loader.read
	breakReads(a)

	c.advance(cacheFor + time.Second)
	if _, ok := a.Authenticate("1", one); !ok {
		t.Error("a cabinet that was right a moment ago is refused")
	}
	if _, ok := a.Authenticate("1", two); ok {
		t.Error("a wrong secret is right while nobody can look")
	}
	if _, ok := a.Authenticate("2", two); ok {
		t.Error("a cabinet that nobody looked up is let in")
	}
	c.advance(cacheStale)
	if _, ok := a.Authenticate("1", one); ok {
		t.Error("a secret stays right for longer than a rotation may take")
	}
	if !a.StillValid("1", token) {
		t.Error("an open connection ends because the database is away")
	}
	mended(a, works)
	if _, ok := a.Authenticate("1", one); !ok {
		t.Error("refused after the database came back")
	}
}

func TestAFleetThatReconnectsAsksInFewStatements(t *testing.T) {
	t.Parallel()
	a, r, _ := newAuthenticator(t)
	register(t, r, 1)
	secret := rotate(t, r, 1)
	var statements atomic.Int64
	works := a.loader.read
	a.loader.read = func(ctx context.Context, ids []int64) (map[int64][32]byte, error) {
		statements.Add(1)
		return works(ctx, ids)
	}
	const cabinets = 5000
	var let atomic.Int64
	var wait sync.WaitGroup
	for i := range cabinets {
		wait.Go(func() {
			if _, ok := a.Authenticate(fmt.Sprint(i+1), secret); ok {
				let.Add(1)
			}
		})
	}
	wait.Wait()
	if let.Load() != 1 {
		t.Errorf("%d cabinets were let in with the secret of one", let.Load())
	}
	if n := statements.Load(); n > cabinets/5 {
		t.Errorf("%d cabinets took %d statements", cabinets, n)
	}
	if len(a.hashes) != 1 {
		t.Errorf("%d entries are kept of cabinets that do not exist", len(a.hashes)-1)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	a := NewAuthenticator(nil, quiet())
	for i := range maxCached + 10 {
		a.StillValid(fmt.Sprint(i+1), "x")
	}
	if len(a.hashes) > maxCached {
		t.Errorf("%d entries", len(a.hashes))
	}
	c := &clock{}
	c.advance(forgetAfter + time.Minute)
	a.now = c.now
	if ids := a.inUse(); len(ids) != 0 || len(a.hashes) != 0 {
		t.Errorf("%d entries are kept though nobody asks", len(a.hashes))
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a := NewAuthenticator(nil, quiet())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Run(ctx)
}

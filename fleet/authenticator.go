package fleet

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"doortab/cabinet"
	"doortab/database"
)

const (
	cacheFor     = 20 * time.Second       // how long a hash is believed unseen; a rotated secret must stop within 60 s
	cacheStale   = time.Minute            // how long while the database can't be asked
	rereadAfter  = 100 * time.Millisecond // a wrong password reads afresh, but not more often
	refreshEvery = 10 * time.Second
	forgetAfter  = 2 * time.Minute // since anybody asked
	maxCached    = 150_000         // above the broker's most connections
)

// Authenticator tells whether a cabinet's secret is right, from a cache that [Authenticator.Run] keeps fresh. It is safe
// for concurrent use.
type Authenticator struct {
	loader loader
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	hashes map[int64]*cached
}

// cached is what is known of one cabinet's secret; all under Authenticator.mu.
type cached struct {
	hash   [32]byte
	set    bool      // false: no such cabinet, or one without a secret
	readAt time.Time // zero: not read yet
	usedAt time.Time
}

// NewAuthenticator returns an authenticator over the cabinets that db holds.
func NewAuthenticator(db *database.DB, log *slog.Logger) *Authenticator {
	return &Authenticator{
		loader: loader{read: func(ctx context.Context, ids []int64) (map[int64][32]byte, error) { return readHashes(ctx, db, ids) }},
		log:    log, now: time.Now, hashes: map[int64]*cached{},
	}
}

// Authenticate checks a secret; the user name is the device id. The token names the secret that it was checked against,
// for [Authenticator.StillValid]. While the database can't be asked, a secret that was right within the last minute
// stays right and every other one is refused.
func (a *Authenticator) Authenticate(username string, password []byte) (token string, ok bool) {
	deviceID, ok := cabinet.ParseDeviceID(username)
	if !ok {
		return "", false
	}
	sum := sha256.Sum256(password)
	entry, known := a.lookup(deviceID)
	age := a.now().Sub(entry.readAt)
	if known && age <= cacheFor && entry.matches(sum) {
		return entry.token(), true
	}
	if known && age <= rereadAfter {
		return "", false
	}
	read, err := a.read(deviceID)
	if err == nil {
		return read.token(), read.matches(sum)
	}
	return entry.token(), known && age <= cacheStale && entry.matches(sum)
}

// StillValid tells whether the secret behind a token is still the cabinet's. It answers from memory, so that it can be
// asked often for each of many connections; a rotated secret shows within [Authenticator.Run]'s interval of 10 s.
func (a *Authenticator) StillValid(username, token string) bool {
	deviceID, ok := cabinet.ParseDeviceID(username)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.hashes[deviceID]
	if entry == nil {
		a.makeRoom()
		a.hashes[deviceID] = &cached{usedAt: a.now()} // read at the next refresh
		return true
	}
	entry.usedAt = a.now()
	return entry.readAt.IsZero() || entry.token() == token
}

// Run reads the secrets in use again every 10 s, until ctx ends.
func (a *Authenticator) Run(ctx context.Context) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := a.refresh(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("Secrets of cabinets can't be read; known ones stay valid for a while.", "error", err)
			}
		}
	}
}

func (a *Authenticator) refresh(ctx context.Context) error {
	ids := a.inUse()
	for len(ids) > 0 {
		n := min(len(ids), maxBatch)
		at := a.now()
		read, err := a.loader.read(ctx, ids[:n])
		if err != nil {
			return err
		}
		a.store(ids[:n], read, at)
		ids = ids[n:]
	}
	return nil
}

func (a *Authenticator) inUse() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := make([]int64, 0, len(a.hashes))
	for id, entry := range a.hashes {
		if a.now().Sub(entry.usedAt) > forgetAfter {
			delete(a.hashes, id)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

func (a *Authenticator) store(ids []int64, read map[int64][32]byte, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if entry := a.hashes[id]; entry != nil && !entry.readAt.After(at) {
			entry.hash, entry.set = read[id]
			entry.readAt = at
		}
	}
}

func (a *Authenticator) lookup(deviceID int64) (entry cached, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.hashes[deviceID]
	if found == nil {
		return cached{}, false
	}
	found.usedAt = a.now()
	return *found, !found.readAt.IsZero()
}

// read asks the database and remembers cabinets that exist; others would let strangers fill the cache.
func (a *Authenticator) read(deviceID int64) (cached, error) {
	at := a.now()
	hash, set, err := a.loader.load(deviceID)
	if err != nil {
		return cached{}, err
	}
	entry := cached{hash: hash, set: set, readAt: at, usedAt: at}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch old := a.hashes[deviceID]; {
	case old != nil && !old.readAt.After(at):
		*old = entry
	case old == nil && set:
		a.makeRoom()
		kept := entry
		a.hashes[deviceID] = &kept
	}
	return entry, nil
}

// makeRoom drops any entries: whoever is asked for again is read again.
func (a *Authenticator) makeRoom() {
	for id := range a.hashes {
		if len(a.hashes) < maxCached {
			return
		}
		delete(a.hashes, id)
	}
}

func (c *cached) matches(sum [32]byte) bool {
	return subtle.ConstantTimeCompare(c.hash[:], sum[:]) == 1 && c.set
}

func (c *cached) token() string {
	if !c.set {
		return ""
	}
	return hex.EncodeToString(c.hash[:8])
}

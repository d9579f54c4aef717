package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Role says what a token may do.
type Role string

// The ladder, in which each role may do what those before it may. App stands outside: it opens doors and reads its own
// users' orders.
const (
	Viewer    Role = "viewer"
	Restocker Role = "restocker"
	Operator  Role = "operator"
	Admin     Role = "admin"
	App       Role = "app"
)

var ladder = map[Role]int{Viewer: 1, Restocker: 2, Operator: 3, Admin: 4}

func (r Role) inLadder() bool { return ladder[r] > 0 }

func (r Role) covers(least Role) bool { return r.inLadder() && ladder[r] >= ladder[least] }

// Token is an API token. Secret is what its holder sends; it is known when the token is made and never again.
type Token struct {
	ID        string
	Name      string // 1 to 200 characters
	Role      Role
	CreatedAt time.Time
	Secret    string `gorm:"-"`
}

// CreateToken makes a token of 256 random bits, of which only the SHA-256 is stored. It fails on a name that is not 1
// to 200 characters and on an unknown role.
func CreateToken(ctx context.Context, db *database.DB, name string, role Role) (Token, error) {
	if n := utf8.RuneCountInString(name); n < 1 || n > 200 || !utf8.ValidString(name) {
		return Token{}, fmt.Errorf("name %w: give 1 to 200 characters", errBadToken)
	}
	if !role.inLadder() && role != App {
		return Token{}, fmt.Errorf("role %w: give viewer, restocker, operator, admin or app", errBadToken)
	}
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	id, err := uuid.NewV7()
	if err != nil {
		return Token{}, fmt.Errorf("token id: %w", err)
	}
	// In hex, since a secret that begins with a hyphen is a flag to a command line.
	t := Token{id.String(), name, role, database.Now(), hex.EncodeToString(bits[:])}
	hash := sha256.Sum256([]byte(t.Secret))
	attempts := 0
	err = db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		attempts = attempt
		err := database.Insert(tx, "api_tokens", []string{"token_id", "name", "role", "token_hash", "created_at"},
			[][]any{{t.ID, t.Name, t.Role, hash[:], t.CreatedAt}}, "")
		if err != nil {
			return err
		}
		return auditlog.Write(tx, auditlog.Entry{Action: "token.create", Target: "token " + t.ID, After: viewToken(t)}, t.CreatedAt)
	})
	if err != nil && (attempts == 1 || !database.IsDuplicate(err)) { // a later duplicate is our own, its COMMIT's answer lost
		return Token{}, fmt.Errorf("create token: %w", err)
	}
	return t, nil
}

// principal is who makes a request.
type principal struct {
	TokenID string
	Name    string
	Role    Role
}

type principalKey struct{}

func principalOf(ctx context.Context) principal {
	by, _ := ctx.Value(principalKey{}).(principal)
	return by
}

const (
	tokenFor  = 2 * time.Second // a deleted token works that long at most
	maxTokens = 10_000
)

// tokenCache saves most requests the look at the table. Strangers' tokens are not kept: they would push out real ones.
type tokenCache struct {
	db *database.DB

	mu      sync.Mutex
	entries map[[32]byte]tokenEntry
}

type tokenEntry struct {
	by     principal
	readAt time.Time
}

func newTokenCache(db *database.DB) *tokenCache {
	return &tokenCache{db: db, entries: map[[32]byte]tokenEntry{}}
}

// authorize reads an Authorization header. It returns errNoToken, errForbidden or an error of the database.
func (c *tokenCache) authorize(ctx context.Context, header string, to access) (principal, error) {
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > 256 {
		return principal{}, errNoToken
	}
	by, err := c.principal(ctx, sha256.Sum256([]byte(strings.TrimSpace(secret))))
	if err != nil {
		return principal{}, err
	}
	if !to.admits(by.Role) {
		return principal{}, errForbidden
	}
	return by, nil
}

func (c *tokenCache) principal(ctx context.Context, hash [32]byte) (principal, error) {
	c.mu.Lock()
	entry, kept := c.entries[hash]
	c.mu.Unlock()
	if kept && time.Since(entry.readAt) < tokenFor {
		return entry.by, nil
	}
	at := time.Now()
	var rows []principal
	err := c.db.Read(ctx).Raw("SELECT token_id, name, role FROM api_tokens WHERE token_hash = ?", hash[:]).Scan(&rows).Error
	if err != nil {
		return principal{}, fmt.Errorf("read token: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(rows) == 0 {
		delete(c.entries, hash)
		return principal{}, errNoToken
	}
	c.makeRoom()
	c.entries[hash] = tokenEntry{rows[0], at}
	return rows[0], nil
}

func (c *tokenCache) makeRoom() {
	for hash := range c.entries {
		if len(c.entries) < maxTokens {
			return
		}
		delete(c.entries, hash)
	}
}

// forget makes a deleted token stop at once in this process.
func (c *tokenCache) forget(tokenID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, entry := range c.entries {
		if entry.by.TokenID == tokenID {
			delete(c.entries, hash)
		}
	}
}

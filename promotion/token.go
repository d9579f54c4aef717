package promotion

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"doortab/database"
)

// TokenFor is how long an order token can make a claim.
const TokenFor = 10 * time.Minute

// Tokens issues order tokens and tells whether one is genuine. A token is signed and not kept: it is bound to one person,
// promotion and app, which are under its signature, and the unique key of claims uses it up. It is safe for concurrent use.
type Tokens struct {
	db *database.DB

	mu      sync.Mutex
	current int64            // the key that signs; 0: none is read yet
	keys    map[int64][]byte // what any process of the installation may have signed with
	readAt  time.Time
}

// NewTokens returns what issues and verifies the tokens of db's installation.
func NewTokens(db *database.DB) *Tokens { return &Tokens{db: db} }

// Purpose is what an order token is good for.
type Purpose struct {
	PromotionID int64
	UserID      int64
	App         string // "" for staff
}

// The parts of a token, of fixed widths: version, key, id, expiry in Unix milliseconds; then HMAC-SHA-256 of these and the purpose.
const (
	tokenVersion  = 1
	keyAt         = 1
	idAt          = keyAt + 4
	expiryAt      = idAt + 16
	signatureAt   = expiryAt + 8
	tokenSize     = signatureAt + sha256.Size
	keysReadAgain = time.Second // an unknown key is looked for no more often
)

var tokenText = base64.RawURLEncoding.Strict()

// Issue returns a fresh token and the moment from which it makes no claim any more.
func (t *Tokens) Issue(ctx context.Context, p Purpose, now time.Time) (token string, expiresAt time.Time, err error) {
	keyID, secret, err := t.signing(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	expiresAt = now.Add(TokenFor).UTC().Truncate(time.Millisecond)
	raw := make([]byte, signatureAt, tokenSize)
	raw[0] = tokenVersion
	binary.BigEndian.PutUint32(raw[keyAt:], uint32(keyID)) //nolint:gosec // a positive INT
	_, _ = rand.Read(raw[idAt:expiryAt])                   // never fails
	binary.BigEndian.PutUint64(raw[expiryAt:], uint64(expiresAt.UnixMilli()))
	return tokenText.EncodeToString(append(raw, sign(secret, raw, p)...)), expiresAt, nil
}

// Verify returns the id of a token that was issued for a purpose, [TokenInvalid] where it was not, and the id with
// [TokenExpired] where it is too old to make a claim; the claim that it made before is still its answer then.
func (t *Tokens) Verify(ctx context.Context, token string, p Purpose, now time.Time) (TokenID, error) {
	raw, err := tokenText.DecodeString(token)
	if err != nil || len(raw) != tokenSize || raw[0] != tokenVersion {
		return TokenID{}, TokenInvalid
	}
	secret, err := t.key(ctx, int64(binary.BigEndian.Uint32(raw[keyAt:])))
	if err != nil {
		return TokenID{}, err
	}
	if secret == nil || !hmac.Equal(raw[signatureAt:], sign(secret, raw[:signatureAt], p)) {
		return TokenID{}, TokenInvalid
	}
	id := TokenID(raw[idAt:expiryAt])
	if binary.BigEndian.Uint64(raw[expiryAt:]) <= uint64(max(now.UnixMilli(), 0)) {
		return id, TokenExpired
	}
	return id, nil
}

func sign(secret, head []byte, p Purpose) []byte {
	mac := hmac.New(sha256.New, secret)
	purpose := binary.BigEndian.AppendUint64(bytes.Clone(head), uint64(p.PromotionID)) //nolint:gosec // bits, not a number
	purpose = binary.BigEndian.AppendUint64(purpose, uint64(p.UserID))                 //nolint:gosec // bits, not a number
	_, _ = mac.Write(append(purpose, p.App...))                                        // never fails
	return mac.Sum(nil)
}

// signing is the newest key; the first of an installation is made by whoever needs it first.
func (t *Tokens) signing(ctx context.Context) (int64, []byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == 0 {
		if err := t.read(ctx); err != nil {
			return 0, nil, err
		}
	}
	if t.current == 0 {
		if err := t.makeFirst(ctx); err != nil {
			return 0, nil, err
		}
	}
	return t.current, t.keys[t.current], nil
}

// key is nil where there is no such key.
func (t *Tokens) key(ctx context.Context, keyID int64) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys[keyID] == nil && time.Since(t.readAt) > keysReadAgain {
		if err := t.read(ctx); err != nil {
			return nil, err
		}
	}
	return t.keys[keyID], nil
}

func (t *Tokens) makeFirst(ctx context.Context) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	err := t.db.Read(ctx).Exec("INSERT INTO order_token_keys (key_id, secret, created_at) VALUES (1, ?, ?)", secret, database.Now()).Error
	if err != nil && !database.IsDuplicate(err) {
		return fmt.Errorf("keep the key of order tokens: %w", err)
	}
	if err := t.read(ctx); err != nil {
		return err
	}
	if t.current == 0 {
		return errors.New("order_token_keys is empty after its first key was written: look who deletes from it")
	}
	return nil
}

func (t *Tokens) read(ctx context.Context) error {
	var rows []struct {
		KeyID  int64
		Secret []byte
	}
	if err := t.db.Read(ctx).Raw("SELECT key_id, secret FROM order_token_keys").Scan(&rows).Error; err != nil {
		return fmt.Errorf("read the keys of order tokens: %w", err)
	}
	t.current, t.keys, t.readAt = 0, make(map[int64][]byte, len(rows)), time.Now()
	for _, row := range rows {
		t.current, t.keys[row.KeyID] = max(t.current, row.KeyID), row.Secret
	}
	return nil
}

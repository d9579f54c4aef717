package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"gorm.io/gorm"

	"doortab/database"
)

// RotateSecret gives a cabinet a new secret and returns it: 256 random bits in base64url. Only its SHA-256 is kept, so
// it can be shown this once. The old one stops within seconds, see [Authenticator]. It returns [ErrNotFound].
func (r *Registry) RotateSecret(ctx context.Context, deviceID int64) (secret string, err error) {
	secret = newSecret()
	hash := sha256.Sum256([]byte(secret))
	err = r.db.InTx(ctx, func(tx *gorm.DB) error {
		if _, err := one(tx, deviceID, " FOR UPDATE"); err != nil {
			return err
		}
		return tx.Exec("UPDATE cabinets SET secret_hash = ?, updated_at = ? WHERE device_id = ?",
			hash[:], database.Now(), deviceID).Error
	})
	if err != nil {
		return "", fmt.Errorf("rotate secret: %w", err)
	}
	return secret, nil
}

func newSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

package fleet

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// RotateSecret gives a cabinet a new secret and returns it: 256 random bits in hex, which no command line takes for a flag.
// Only hashes of it are kept, so it can be shown this once. The old one stops within seconds, see [Authenticator]. It
// returns [ErrNotFound].
func (r *Registry) RotateSecret(ctx context.Context, deviceID int64) (secret string, err error) {
	secret = newSecret()
	hash, mosquitto := sha256.Sum256([]byte(secret)), mosquittoHash(secret)
	err = r.db.InTx(ctx, func(tx *gorm.DB) error {
		if _, err := one(tx, deviceID, " FOR UPDATE"); err != nil {
			return err
		}
		now := database.Now()
		result := tx.Exec(`UPDATE cabinets SET secret_hash = ?, mosquitto_hash = ?, secret_changed_at = ?, updated_at = ?
			WHERE device_id = ? AND (secret_hash IS NULL OR secret_hash <> ?)`, hash[:], mosquitto, now, now, deviceID, hash[:])
		if result.Error != nil || result.RowsAffected == 0 { // it has this one: the answer to our own COMMIT was lost
			return result.Error
		}
		return auditlog.Write(tx, auditlog.Entry{
			Action: "credentials.create", Target: target(deviceID), After: map[string]string{"username": fmt.Sprint(deviceID)},
		}, now)
	})
	if err != nil {
		return "", fmt.Errorf("rotate secret: %w", err)
	}
	return secret, nil
}

func newSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// mosquittoIterations: repeating the hash slows down who guesses passwords, and nobody guesses 256 random bits. It would
// slow down Mosquitto, which at a reload checks every live connection before it serves the next message.
const mosquittoIterations = 1

// mosquittoHash is a line's second half in a password file of Mosquitto 2, as mosquitto_passwd(1) writes it:
// $7$iterations$salt$PBKDF2-SHA512, both in base64.
func mosquittoHash(secret string) string {
	var salt [12]byte
	_, _ = rand.Read(salt[:]) // never fails
	hash, err := pbkdf2.Key(sha512.New, secret, salt[:], mosquittoIterations, sha512.Size)
	if err != nil {
		panic(err) // only for sizes that are constants here
	}
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("$7$%d$%s$%s", mosquittoIterations, encode(salt[:]), encode(hash))
}

// WriteMosquittoPasswords writes Mosquitto's password file: a line for each cabinet with a secret, by ascending number. It
// reads the columns device_id and mosquitto_hash of cabinets and nothing else.
func (r *Registry) WriteMosquittoPasswords(ctx context.Context, to io.Writer) error {
	rows, err := r.db.Read(ctx).Raw(
		"SELECT device_id, mosquitto_hash FROM cabinets WHERE mosquitto_hash IS NOT NULL ORDER BY device_id").Rows()
	if err != nil {
		return fmt.Errorf("read hashes of secrets: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var deviceID int64
		var hash string
		if err := rows.Scan(&deviceID, &hash); err != nil {
			return fmt.Errorf("read hashes of secrets: %w", err)
		}
		if _, err := fmt.Fprintf(to, "%d:%s\n", deviceID, hash); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read hashes of secrets: %w", err)
	}
	return nil
}

// Rotation is a new secret of a cabinet.
type Rotation struct {
	DeviceID        int64
	SecretChangedAt time.Time
}

// Rotations lists the cabinets whose present secret was made after from and not after to, oldest first.
func (r *Registry) Rotations(ctx context.Context, from, to time.Time) ([]Rotation, error) {
	var list []Rotation
	err := r.db.Read(ctx).Raw(`SELECT device_id, secret_changed_at FROM cabinets
		WHERE secret_changed_at > ? AND secret_changed_at <= ? ORDER BY secret_changed_at, device_id`, from, to).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("read rotated secrets: %w", err)
	}
	return list, nil
}

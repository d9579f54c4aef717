// Package deadletter keeps what could not be worked off until a person has seen to it: messages that belong to no event, and
// claims that Redis gave and the database didn't take. Who keeps one knows how to retry it.
package deadletter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// ErrNotFound says that there is no such dead letter, or no more. Its text is fit for a user.
var ErrNotFound = errors.New("no such dead letter")

// Characters that the columns take.
const (
	maxTopic  = 255
	maxDetail = 500
)

// Letter is what is to be kept, and why.
type Letter struct {
	Topic        string // where it came by
	DeviceID     int64  // 0: it names none
	CloseEventID string // "": it has none that can be read
	Payload      []byte // as much of it as is kept
	Size         int    // bytes of the whole
	Digest       [32]byte
	Reason       string // a short code
	Detail       string // for people; what doesn't fit is cut off
	ReceivedAt   time.Time
}

var columns = []string{
	"dead_letter_id", "fingerprint", "topic", "device_id", "close_event_id", "payload", "size", "digest", "reason",
	"detail", "copies", "received_at", "last_received_at",
}

// Insert keeps letters. Of one that is kept already, by reason, topic and digest, it counts another copy.
func Insert(tx *gorm.DB, letters []Letter, now time.Time) error {
	rows, ids := make([][]any, len(letters)), make(map[int64]bool, len(letters))
	for i := range letters {
		id := database.NewID(now)
		for ids[id] { // among many of one millisecond two are often equal
			id = database.NewID(now)
		}
		ids[id] = true
		rows[i] = letters[i].row(id, now)
	}
	// The NULL makes the statement fail, and run again, where it was the minted id that collided and not the fingerprint.
	return database.Insert(tx, "dead_letters", columns, rows, `ON DUPLICATE KEY UPDATE
		copies = IF(fingerprint = VALUES(fingerprint), copies + 1, NULL), last_received_at = VALUES(last_received_at)`)
}

func (l *Letter) row(id int64, now time.Time) []any {
	var closeEventID, deviceID any
	if l.CloseEventID != "" {
		closeEventID = l.CloseEventID
	}
	if l.DeviceID != 0 {
		deviceID = l.DeviceID
	}
	fingerprint := sha256.Sum256([]byte(l.Reason + "\x00" + l.Topic + "\x00" + string(l.Digest[:])))
	return []any{
		id, fingerprint[:], fit(l.Topic, maxTopic), deviceID, closeEventID, append([]byte{}, l.Payload...), l.Size, l.Digest[:],
		l.Reason, fit(l.Detail, maxDetail), 1, l.ReceivedAt, now,
	}
}

// fit makes a text that came from outside one that its column takes.
func fit(text string, most int) string {
	runes := []rune(strings.ToValidUTF8(text, "?"))
	return string(runes[:min(len(runes), most)])
}

// Kept is a letter as it is kept.
type Kept struct {
	DeadLetterID   int64
	Topic          string
	DeviceID       *int64
	CloseEventID   *string
	Payload        []byte
	Size           int64  // bytes of the whole
	Digest         []byte // SHA-256 of the whole
	Reason         string
	Detail         string
	Copies         int64 // how often it came
	ReceivedAt     time.Time
	LastReceivedAt time.Time
}

const selected = `SELECT dead_letter_id, topic, device_id, close_event_id, payload, size, digest, reason, detail, copies,
	received_at, last_received_at FROM dead_letters `

// Read reads one, or returns [ErrNotFound]. tx may be a plain read.
func Read(tx *gorm.DB, id int64) (Kept, error) {
	var found []Kept
	if err := tx.Raw(selected+"WHERE dead_letter_id = ?", id).Scan(&found).Error; err != nil {
		return Kept{}, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	if len(found) == 0 {
		return Kept{}, fmt.Errorf("dead letter %d: %w", id, ErrNotFound)
	}
	return found[0], nil
}

// List reads up to limit letters with ids below before, the newest first; 0 means from the newest.
func List(ctx context.Context, db *database.DB, before int64, limit int) ([]Kept, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var list []Kept
	err := db.Read(ctx).Raw(selected+"WHERE dead_letter_id < ? ORDER BY dead_letter_id DESC LIMIT ?", before, limit).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

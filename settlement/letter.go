package settlement

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/cabinet"
	"doortab/database"
)

// Reasons of dead letters.
const (
	LetterMalformed        = "malformed"         // the envelope is wrong
	LetterIdentityMismatch = "identity_mismatch" // R10: the payload names another cabinet than the topic
	LetterUnknownCabinet   = "unknown_cabinet"
	LetterInternal         = "internal" // Doortab could not write it, and goes on trying at each resend
)

// Errors of a dead letter's retry.
var (
	// ErrStillDead is returned where the message is no better now than when it came.
	ErrStillDead = errors.New("message still cannot be settled")
	// ErrPayloadCut is returned where the message was too large to be kept whole.
	ErrPayloadCut = errors.New("only the first part of the message was kept")
)

// Characters that the columns take.
const (
	maxTopic  = 255
	maxDetail = 500
)

// letter says why a delivery cannot be attributed to any cabinet and event.
type letter struct {
	reason       string
	detail       string
	closeEventID string // "" where it cannot be read
}

func malformed(wrong *cabinet.EnvelopeError) *letter {
	return &letter{LetterMalformed, wrong.Error(), wrong.CloseEventID}
}

func identityMismatch(topic, payload int64, closeEventID string) *letter {
	return &letter{LetterIdentityMismatch, fmt.Sprintf("published as cabinet %d, payload says %d", topic, payload), closeEventID}
}

func unknownCabinet(it *item) *letter {
	return &letter{LetterUnknownCabinet, fmt.Sprintf("cabinet %d is not registered", it.DeviceID), it.key.closeEventID}
}

// letter keeps the item as a dead letter, and answers it where its id can be read. An
// identity mismatch is not answered (R10); neither is an internal error.
func (b *batch) letter(it *item) {
	l := it.letter
	if !it.retried {
		b.letters = append(b.letters, letterRow(&it.Delivery, l, b.id(), b.now))
	}
	if l.closeEventID == "" || it.DeviceID == 0 || l.reason == LetterIdentityMismatch || l.reason == LetterInternal {
		return
	}
	receipt := b.plainReceipt(it, cabinet.Rejected, b.now)
	receipt.CloseEventID = l.closeEventID
	it.answer = Answer{Receipt: receipt}
}

var letterColumns = []string{
	"dead_letter_id", "fingerprint", "topic", "device_id", "close_event_id", "payload", "size", "digest", "reason",
	"detail", "copies", "received_at", "last_received_at",
}

func letterRow(d *Delivery, l *letter, id int64, now time.Time) []any {
	var closeEventID, deviceID any
	if l.closeEventID != "" {
		closeEventID = l.closeEventID
	}
	if d.DeviceID != 0 {
		deviceID = d.DeviceID
	}
	digest := d.digest()
	fingerprint := sha256.Sum256([]byte(l.reason + "\x00" + d.Topic + "\x00" + string(digest[:])))
	return []any{
		id, fingerprint[:], fit(d.Topic, maxTopic), deviceID, closeEventID, append([]byte{}, d.Payload...), d.Size, digest[:],
		l.reason, fit(l.detail, maxDetail), 1, d.ReceivedAt, now,
	}
}

// fit makes a text that came from outside one that its column takes.
func fit(text string, most int) string {
	runes := []rune(strings.ToValidUTF8(text, "?"))
	return string(runes[:min(len(runes), most)])
}

// insertLetters counts a copy of a letter that is there already. The NULL makes the statement
// fail, and run again, where it was the minted id that collided and not the fingerprint.
func insertLetters(tx *gorm.DB, rows [][]any) error {
	return database.Insert(tx, "dead_letters", letterColumns, rows, `ON DUPLICATE KEY UPDATE
		copies = IF(fingerprint = VALUES(fingerprint), copies + 1, NULL), last_received_at = VALUES(last_received_at)`)
}

// Park keeps a delivery that could not be written, for reasons of ours, as a dead letter
// `internal`. Nothing is answered, so that the cabinet sends it again.
func (s *Service) Park(ctx context.Context, d Delivery, cause error) error {
	it := s.open(d)
	l := &letter{LetterInternal, cause.Error(), it.key.closeEventID}
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		now := database.Now()
		return insertLetters(tx, [][]any{letterRow(&it.Delivery, l, database.NewID(now), now)})
	})
	if err != nil {
		return fmt.Errorf("keep %s as a dead letter: %w", it.name(), err)
	}
	s.metrics.letters.WithLabelValues(LetterInternal).Inc()
	s.log.Error("Event could not be written and was kept as a dead letter.", "topic", d.Topic, "error", cause)
	return nil
}

// RetryDeadLetter settles a kept message as if it came again, with the time it first came at,
// and removes it when it has an outcome. It fails with [ErrNotFound], [ErrPayloadCut],
// [ErrStillDead], or as [Service.Settle] does.
func (s *Service) RetryDeadLetter(ctx context.Context, id int64) (Answer, error) {
	d, err := s.readLetter(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	if d.Size > len(d.Payload) {
		return Answer{}, fmt.Errorf("retry dead letter %d: %w", id, ErrPayloadCut)
	}
	it := s.open(d)
	it.retried = true
	s.remember(ctx, s.run(ctx, []*item{it}))
	switch {
	case it.answer.Err != nil:
		return it.answer, it.answer.Err
	case it.letter != nil:
		return it.answer, fmt.Errorf("retry dead letter %d: %w: %s", id, ErrStillDead, it.letter.detail)
	}
	err = s.removeLetter(ctx, id, "dead_letter.retry", it.answer.Receipt)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return it.answer, err
	}
	return it.answer, nil
}

func (s *Service) readLetter(ctx context.Context, id int64) (Delivery, error) {
	var rows []struct {
		Topic      string
		DeviceID   int64
		Payload    []byte
		Size       int
		Digest     []byte
		ReceivedAt time.Time
	}
	err := s.db.Read(ctx).Raw(`SELECT topic, COALESCE(device_id, 0) AS device_id, payload, size, digest, received_at
		FROM dead_letters WHERE dead_letter_id = ?`, id).Scan(&rows).Error
	if err != nil {
		return Delivery{}, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	if len(rows) == 0 {
		return Delivery{}, fmt.Errorf("dead letter %d: %w", id, ErrNotFound)
	}
	r := rows[0]
	return Delivery{
		DeviceID: r.DeviceID, Topic: r.Topic, Payload: r.Payload, Size: r.Size,
		Digest: [32]byte(r.Digest), ReceivedAt: r.ReceivedAt,
	}, nil
}

// DiscardDeadLetter removes a message for good. It fails with [ErrNotFound].
func (s *Service) DiscardDeadLetter(ctx context.Context, id int64) error {
	return s.removeLetter(ctx, id, "dead_letter.discard", nil)
}

// loggedLetter is what the audit log keeps of a letter: the payload may be large, and its digest says which it was.
type loggedLetter struct {
	Topic      string    `json:"topic"`
	Reason     string    `json:"reason"`
	Detail     string    `json:"detail"`
	Size       int64     `json:"size"`
	Digest     string    `json:"digest"`
	Copies     int64     `json:"copies"`
	ReceivedAt time.Time `json:"receivedAt"`
}

func (s *Service) removeLetter(ctx context.Context, id int64, action string, after any) error {
	return s.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		var found []loggedLetter
		err := tx.Raw(`SELECT topic, reason, detail, size, LOWER(HEX(digest)) AS digest, copies, received_at
			FROM dead_letters WHERE dead_letter_id = ? FOR UPDATE`, id).Scan(&found).Error
		if err != nil {
			return fmt.Errorf("read dead letter %d: %w", id, err)
		}
		if len(found) == 0 {
			if attempt > 1 { // it may be our own doing
				return nil
			}
			return fmt.Errorf("dead letter %d: %w", id, ErrNotFound)
		}
		if err := tx.Exec("DELETE FROM dead_letters WHERE dead_letter_id = ?", id).Error; err != nil {
			return fmt.Errorf("remove dead letter %d: %w", id, err)
		}
		return auditlog.Write(tx, auditlog.Entry{
			Action: action, Target: "dead letter " + FormatID(id), Before: found[0], After: after,
		}, database.Now())
	})
}

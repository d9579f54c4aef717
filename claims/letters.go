package claims

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/promotion"
)

// LetterWriteBack is the reason of a dead letter that holds a claim which Redis gave and the database didn't take.
const LetterWriteBack = "write_back"

// Errors of a dead letter's retry; their texts are fit for a user.
var (
	// ErrNotClaim says that a dead letter is of another kind.
	ErrNotClaim = errors.New("is no claim")
	// ErrUnreadable says that it is an entry of a stream that no claim can be read from.
	ErrUnreadable = errors.New("no claim can be read from it: discard it")
)

const maxDetail = 500 // characters that the column takes

// letter is the payload of such a dead letter.
type letter struct {
	ClaimID     int64     `json:"claimId,string"`
	PromotionID int64     `json:"promotionId,string"`
	UserID      int64     `json:"userId"`
	TokenID     string    `json:"tokenId"` // hex
	App         string    `json:"app"`
	Quantity    int64     `json:"quantity"`
	At          time.Time `json:"at"`
	Epoch       int64     `json:"epoch"`
	Bucket      int       `json:"bucket"`
	StreamMS    int64     `json:"streamMs"`
	StreamNo    int64     `json:"streamNo"`
	Malformed   string    `json:"malformed,omitempty"` // the entry as it was, where it is no claim
}

func (c *counters) letter(entry streamed) letter {
	if entry.malformed != nil {
		return letter{
			PromotionID: c.promotionID, Epoch: entry.epoch.Epoch.Epoch, Bucket: entry.bucket, Malformed: entry.id + " " + entry.text,
		}
	}
	a := entry.ask
	return letter{
		ClaimID: a.ClaimID, PromotionID: c.promotionID, UserID: a.UserID, TokenID: a.TokenID.String(), App: a.App, Quantity: a.Quantity,
		At: a.At, Epoch: a.Source.Epoch, Bucket: a.Source.Bucket, StreamMS: a.Source.StreamMS, StreamNo: a.Source.StreamNo,
	}
}

func (l letter) ask() (promotion.Ask, error) {
	token, err := hex.DecodeString(l.TokenID)
	if err != nil || len(token) != len(promotion.TokenID{}) {
		return promotion.Ask{}, fmt.Errorf("entry %q of bucket %d of promotion %d: %w", l.Malformed, l.Bucket, l.PromotionID, ErrUnreadable)
	}
	return promotion.Ask{
		ClaimID: l.ClaimID, UserID: l.UserID, TokenID: promotion.TokenID(token), App: l.App, Quantity: l.Quantity, At: l.At,
		Source: &promotion.Source{Epoch: l.Epoch, Bucket: l.Bucket, StreamMS: l.StreamMS, StreamNo: l.StreamNo},
	}, nil
}

// park keeps an entry that can't be written as a dead letter, and reports whether it could.
func (c *counters) park(ctx context.Context, entry streamed, cause error) bool {
	payload, err := json.Marshal(c.letter(entry))
	if err == nil {
		err = c.service.db.InTx(ctx, func(tx *gorm.DB) error {
			return insertLetter(tx, fmt.Sprintf("promotions/%d/claims", c.promotionID), payload, cause.Error(), database.Now())
		})
	}
	if err != nil {
		c.service.log.Error("Claim could be neither written nor kept as a dead letter; it stays in its stream.",
			"promotion", c.promotionID, "entry", entry.id, "error", err)
		return false
	}
	c.service.metrics.letters.Inc()
	c.service.log.Error("Claim could not be written and was kept as a dead letter.",
		"promotion", c.promotionID, "claim", entry.ask.ClaimID, "error", cause)
	return true
}

// insertLetter counts a copy of a letter that is there already. The NULL makes the statement fail, and run again, where it was the
// minted id that collided and not the fingerprint.
func insertLetter(tx *gorm.DB, topic string, payload []byte, detail string, now time.Time) error {
	digest := sha256.Sum256(payload)
	fingerprint := sha256.Sum256([]byte(LetterWriteBack + "\x00" + topic + "\x00" + string(digest[:])))
	runes := []rune(strings.ToValidUTF8(detail, "?"))
	return database.Insert(tx, "dead_letters", []string{
		"dead_letter_id", "fingerprint", "topic", "payload", "size", "digest", "reason", "detail", "copies", "received_at", "last_received_at",
	}, [][]any{{
		database.NewID(now), fingerprint[:], topic, payload, len(payload), digest[:], LetterWriteBack,
		string(runes[:min(len(runes), maxDetail)]), 1, now, now,
	}}, `ON DUPLICATE KEY UPDATE
		copies = IF(fingerprint = VALUES(fingerprint), copies + 1, NULL), last_received_at = VALUES(last_received_at)`)
}

// RetryDeadLetter writes the claim of a dead letter, or decides it anew where its units went back meanwhile, and removes the
// letter. It returns the claim, held or refused, [ErrNotClaim] for a letter that isn't there or is of another kind, and
// [ErrUnreadable].
func (s *Service) RetryDeadLetter(ctx context.Context, id int64) (claim promotion.Claim, err error) {
	err = s.db.InTx(ctx, func(tx *gorm.DB) error {
		l, err := readLetter(tx, id)
		if err != nil {
			return err
		}
		a, err := l.ask()
		if err != nil {
			return err
		}
		made, err := promotion.Take(tx, l.PromotionID, []promotion.Ask{a}, database.Now())
		if err != nil {
			return fmt.Errorf("retry dead letter %d: %w", id, err)
		}
		claim = made[0]
		if err := tx.Exec("DELETE FROM dead_letters WHERE dead_letter_id = ?", id).Error; err != nil {
			return fmt.Errorf("remove dead letter %d: %w", id, err)
		}
		return auditlog.Write(tx, auditlog.Entry{
			Action: "dead_letter.retry", Target: fmt.Sprintf("dead letter %d", id), Before: l,
			After: map[string]any{"claimId": fmt.Sprint(claim.ClaimID), "state": claim.State},
		}, database.Now())
	})
	return claim, err
}

func readLetter(tx *gorm.DB, id int64) (l letter, err error) {
	var found []struct {
		Reason  string
		Payload []byte
	}
	err = tx.Raw("SELECT reason, payload FROM dead_letters WHERE dead_letter_id = ? FOR UPDATE", id).Scan(&found).Error
	if err != nil {
		return l, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	if len(found) == 0 || found[0].Reason != LetterWriteBack {
		return l, fmt.Errorf("dead letter %d %w", id, ErrNotClaim)
	}
	if err := json.Unmarshal(found[0].Payload, &l); err != nil {
		return l, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	return l, nil
}

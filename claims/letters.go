package claims

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/deadletter"
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
			now := database.Now()
			return deadletter.Insert(tx, []deadletter.Letter{{
				Topic: fmt.Sprintf("promotions/%d/claims", c.promotionID), Payload: payload, Size: len(payload), Digest: sha256.Sum256(payload),
				Reason: LetterWriteBack, Detail: cause.Error(), ReceivedAt: now,
			}}, now)
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

// RetryDeadLetter writes the claim of a dead letter, or decides it anew where its units went back meanwhile, and removes the
// letter. It returns the claim, held or refused, [deadletter.ErrNotFound], [ErrNotClaim] for a letter of another kind, and
// [ErrUnreadable].
func (s *Service) RetryDeadLetter(ctx context.Context, id int64) (claim promotion.Claim, err error) {
	decided := false
	err = s.db.InTx(ctx, func(tx *gorm.DB) error {
		l, err := readLetter(tx, id)
		if decided && errors.Is(err, deadletter.ErrNotFound) { // the attempt whose answer was lost has removed it
			return nil
		}
		if err != nil {
			return err
		}
		a, err := l.ask()
		if err != nil {
			return err
		}
		now := database.Now()
		made, err := promotion.Take(tx, l.PromotionID, []promotion.Ask{a}, now)
		if err != nil {
			return fmt.Errorf("retry dead letter %d: %w", id, err)
		}
		claim, decided = made[0], true
		return deadletter.Retried(tx, id, map[string]any{"claimId": fmt.Sprint(claim.ClaimID), "state": claim.State}, now)
	})
	return claim, err
}

func readLetter(tx *gorm.DB, id int64) (l letter, err error) {
	kept, err := deadletter.Read(tx, id)
	if err != nil {
		return l, err
	}
	if kept.Reason != LetterWriteBack {
		return l, fmt.Errorf("dead letter %d %w", id, ErrNotClaim)
	}
	if err := json.Unmarshal(kept.Payload, &l); err != nil {
		return l, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	return l, nil
}

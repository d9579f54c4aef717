package settlement

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/deadletter"
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
		b.letters = append(b.letters, l.of(&it.Delivery))
	}
	if l.closeEventID == "" || it.DeviceID == 0 || l.reason == LetterIdentityMismatch || l.reason == LetterInternal {
		return
	}
	receipt := b.plainReceipt(it, cabinet.Rejected, b.now)
	receipt.CloseEventID = l.closeEventID
	it.answer = Answer{Receipt: receipt}
}

func (l *letter) of(d *Delivery) deadletter.Letter {
	return deadletter.Letter{
		Topic: d.Topic, DeviceID: d.DeviceID, CloseEventID: l.closeEventID, Payload: d.Payload, Size: d.Size, Digest: d.digest(),
		Reason: l.reason, Detail: l.detail, ReceivedAt: d.ReceivedAt,
	}
}

// Park keeps a delivery that could not be written, for reasons of ours, as a dead letter
// `internal`. Nothing is answered, so that the cabinet sends it again.
func (s *Service) Park(ctx context.Context, d Delivery, cause error) error {
	it := s.open(d)
	l := &letter{LetterInternal, cause.Error(), it.key.closeEventID}
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		return deadletter.Insert(tx, []deadletter.Letter{l.of(&it.Delivery)}, database.Now())
	})
	if err != nil {
		return fmt.Errorf("keep %s as a dead letter: %w", it.name(), err)
	}
	s.metrics.letters.WithLabelValues(LetterInternal).Inc()
	s.log.Error("Event could not be written and was kept as a dead letter.", "topic", d.Topic, "error", cause)
	return nil
}

// RetryDeadLetter settles a kept message as if it came again, with the time it first came at,
// and removes it when it has an outcome. It fails with [deadletter.ErrNotFound], [ErrPayloadCut],
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
	err = s.db.InTx(ctx, func(tx *gorm.DB) error { return deadletter.Retried(tx, id, it.answer.Receipt, database.Now()) })
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) { // somebody else, or an attempt whose answer was lost
		return it.answer, err
	}
	return it.answer, nil
}

func (s *Service) readLetter(ctx context.Context, id int64) (Delivery, error) {
	kept, err := deadletter.Read(s.db.Read(ctx), id)
	if err != nil {
		return Delivery{}, err
	}
	d := Delivery{Topic: kept.Topic, Payload: kept.Payload, Size: int(kept.Size), Digest: [32]byte(kept.Digest), ReceivedAt: kept.ReceivedAt}
	if kept.DeviceID != nil {
		d.DeviceID = *kept.DeviceID
	}
	return d, nil
}

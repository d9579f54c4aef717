package settlement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

// item is one delivery on its way through [Service.Settle].
type item struct {
	*Delivery
	event  *cabinet.Event // nil: not an event, letter says why
	key    key
	digest [32]byte
	letter *letter
	// planned is what the last attempt wanted to keep: it is how a run after a lost answer
	// to COMMIT knows its own rows again.
	planned  []byte
	answer   Answer
	repeat   bool // answered with an outcome that the database had before
	recalled bool // answered with an outcome that Redis remembered
}

type key struct {
	deviceID     int64
	closeEventID string
}

// Settle settles a group of 1 to any number of deliveries, in the order of their arrival, and
// answers each. Where the group fails for a reason that one of them causes, it is split until
// that one stands alone: only its Answer then has an Err.
func (s *Service) Settle(ctx context.Context, deliveries []Delivery) []Answer {
	items := s.run(ctx, deliveries)
	answers := make([]Answer, len(items))
	for i, it := range items {
		answers[i] = it.answer
	}
	return answers
}

func (s *Service) run(ctx context.Context, deliveries []Delivery) []*item {
	items := make([]*item, len(deliveries))
	for i := range deliveries {
		items[i] = open(&deliveries[i])
	}
	s.settle(ctx, s.recall(ctx, items), inventory.Optimistic)
	for _, it := range items {
		s.metrics.count(it)
	}
	return items
}

// open decodes a delivery. An event that names another cabinet than its topic is never
// settled (R10); neither is what is not an event.
func open(d *Delivery) *item {
	it := &item{Delivery: d}
	if d.Size == 0 {
		d.Size = len(d.Payload)
	}
	event, err := decode(d)
	var wrong *cabinet.EnvelopeError
	switch {
	case errors.As(err, &wrong) && wrong.DeviceID != 0 && wrong.DeviceID != d.DeviceID:
		it.letter = identityMismatch(d.DeviceID, wrong.DeviceID, wrong.CloseEventID)
	case errors.As(err, &wrong):
		it.letter = malformed(wrong)
	case event.DeviceID != d.DeviceID:
		it.letter = identityMismatch(d.DeviceID, event.DeviceID, event.CloseEventID)
	default:
		it.event, it.key, it.digest = event, key{event.DeviceID, event.CloseEventID}, event.Digest()
	}
	return it
}

func decode(d *Delivery) (*cabinet.Event, error) {
	if d.Size > len(d.Payload) {
		return nil, &cabinet.EnvelopeError{Problem: fmt.Sprintf("has %d bytes, more than %d", d.Size, cabinet.MaxPayload)}
	}
	return cabinet.Decode(d.Payload)
}

func (s *Service) settle(ctx context.Context, items []*item, locking inventory.Locking) {
	if len(items) == 0 {
		return
	}
	var kept *batch
	err := s.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) (err error) {
		s.metrics.attempts.WithLabelValues(strconv.Itoa(attempt)).Inc()
		kept, err = s.keep(tx, items, max(locking, inventory.LockingFor(attempt)))
		if database.IsLockWait(err) {
			return database.Final(err)
		}
		return err
	})
	switch {
	case err == nil:
		s.committed(ctx, items, kept)
	case len(items) == 1:
		items[0].answer = Answer{Err: fmt.Errorf("settle %s: %w", items[0].name(), err)}
	case database.IsLockWait(err):
		// Somebody holds a row of one of these. Each alone, the others need not wait for it.
		for _, group := range byKey(items) {
			s.settle(ctx, group, inventory.NoWait)
		}
	case database.ClassOf(err) == database.Permanent:
		first, second := halves(items)
		s.settle(ctx, first, locking)
		s.settle(ctx, second, locking)
	default:
		for _, it := range items {
			it.answer = Answer{Err: fmt.Errorf("settle %s: %w", it.name(), err)}
		}
	}
}

// keep decides and writes the whole group.
func (s *Service) keep(tx *gorm.DB, items []*item, locking inventory.Locking) (*batch, error) {
	known, err := readKnown(tx, items)
	if err != nil {
		return nil, err
	}
	b := &batch{currency: s.rules.currency, now: database.Now(), ids: map[int64]bool{}}
	fresh := b.sort(items, known)
	ledger, err := s.judge(tx, b, fresh, known, locking)
	if err != nil {
		return nil, err
	}
	b.adoptSequences(fresh.first, known.lastSeq)
	return b, b.write(tx, ledger)
}

// committed remembers outcomes, after COMMIT and never before (R1), and tells of what an
// operator should hear.
func (s *Service) committed(ctx context.Context, items []*item, kept *batch) {
	s.remember(ctx, items)
	for _, it := range items {
		if it.letter != nil {
			s.log.Warn("Message kept as a dead letter.", "reason", it.letter.reason, "topic", it.Topic, "detail", it.letter.detail)
		}
	}
	for _, a := range kept.alarms {
		s.metrics.sequence(a)
		s.log.Warn("Events of a cabinet are not in sequence.", "device", a.deviceID, "last", a.last, "seq", a.seq, "adopted", !a.jump)
	}
}

func (it *item) name() string {
	if it.event == nil {
		return "message on " + it.Topic
	}
	return fmt.Sprintf("%d/%s", it.key.deviceID, it.key.closeEventID)
}

// byKey keeps copies of one event together, in the order of arrival.
func byKey(items []*item) [][]*item {
	var groups [][]*item
	at := map[key]int{}
	for _, it := range items {
		if i, seen := at[it.key]; seen && it.event != nil {
			groups[i] = append(groups[i], it)
			continue
		}
		at[it.key] = len(groups)
		groups = append(groups, []*item{it})
	}
	return groups
}

// halves splits a group, of one event's copies too.
func halves(items []*item) (first, second []*item) {
	groups := byKey(items)
	if len(groups) == 1 {
		return items[:1], items[1:]
	}
	middle := len(groups) / 2
	return slices.Concat(groups[:middle]...), slices.Concat(groups[middle:]...)
}

package settlement

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/door"
	"doortab/inventory"
)

// item is one delivery on its way through [Service.Settle].
type item struct {
	Delivery
	said    *cabinet.Event // as it came; nil: not an event, letter says why
	event   *cabinet.Event // as it counts: what a door session knows better is the session's (R11)
	session *door.Session  // nil: none known
	key     key
	digest  [32]byte
	at      *inventory.Position // in the cabinet's sequence; nil without a seq
	behind  bool                // an event of the cabinet with a later seq is settled
	letter  *letter
	retried bool   // lies among the dead letters already
	planned []byte // the receipt that this run wants to keep
	// sent holds the receipts that went to COMMIT before: where its answer was lost, the next
	// run knows its own rows again by them.
	sent     [][]byte
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
func (s *Service) Settle(ctx context.Context, deliveries []Delivery) (answers []Answer) {
	s.SettleAnd(ctx, deliveries, func(a []Answer) { answers = a })
	return answers
}

// SettleAnd is [Service.Settle] for who sends answers: it calls answer as soon as there are all, and does after it what no cabinet
// needs to wait for.
func (s *Service) SettleAnd(ctx context.Context, deliveries []Delivery, answer func([]Answer)) {
	began := time.Now()
	items := make([]*item, len(deliveries))
	for i := range deliveries {
		items[i] = s.open(deliveries[i])
	}
	s.metrics.since("decode", began)
	rest := s.run(ctx, items)
	answers := make([]Answer, len(items))
	for i, it := range items {
		answers[i] = it.answer
	}
	answer(answers)
	began = time.Now()
	s.remember(ctx, rest)
	s.metrics.since("remember", began)
}

// run returns those that Redis didn't know.
func (s *Service) run(ctx context.Context, items []*item) (rest []*item) {
	began := time.Now()
	rest = s.recall(ctx, items)
	s.metrics.since("recall", began)
	_ = s.settle(ctx, rest, database.Optimistic) // each answer has it
	for _, it := range items {
		s.metrics.count(it)
	}
	return rest
}

// open decodes a delivery. An event that names another cabinet than its topic is never
// settled (R10); neither is what is not an event.
func (s *Service) open(d Delivery) *item {
	it := &item{Delivery: d.Cut()}
	it.attribute(s.read(it.decode))
	return it
}

// read decodes within guard: a message that makes Doortab itself fail ends as a dead letter, not in a crash at each resend.
func (s *Service) read(decode func() (*cabinet.Event, error)) (event *cabinet.Event, digest [32]byte, err error) {
	err = s.guard(func() (err error) {
		if event, err = decode(); err == nil {
			digest = event.Digest()
		}
		return err
	})
	return event, digest, err
}

func (it *item) attribute(event *cabinet.Event, digest [32]byte, err error) {
	var wrong *cabinet.EnvelopeError
	switch {
	case errors.As(err, &wrong) && wrong.DeviceID != 0 && wrong.DeviceID != it.DeviceID:
		it.letter = identityMismatch(it.DeviceID, wrong.DeviceID, wrong.CloseEventID)
	case errors.As(err, &wrong):
		it.letter = malformed(wrong)
	case err != nil:
		it.letter = &letter{reason: LetterInternal, detail: err.Error()}
	case event.DeviceID != it.DeviceID:
		it.letter = identityMismatch(it.DeviceID, event.DeviceID, event.CloseEventID)
	default:
		it.said, it.event, it.key, it.digest = event, event, key{event.DeviceID, event.CloseEventID}, digest
	}
}

// settle keeps a group whole, or in parts where it fails for a reason of one of them. It
// returns an error where the failure is the database's: the parts that are left would fail too.
func (s *Service) settle(ctx context.Context, items []*item, locking database.Locking) error {
	if len(items) == 0 {
		return nil
	}
	kept, err := s.try(ctx, items, locking)
	if err == nil {
		s.committed(items, kept)
		return nil
	}
	var parts [][]*item
	class := database.ClassOf(err)
	switch {
	case database.IsLockWait(err):
		// Somebody holds a row of one of these. Each alone, the others need not wait for it.
		parts, locking = byKey(items), database.NoWait
	case class == database.Permanent, class == database.Retry:
		parts = halves(items)
	}
	if len(parts) > 1 {
		return s.settleParts(ctx, parts, locking)
	}
	fail(items, err)
	if class == database.Permanent || database.IsLockWait(err) {
		return nil
	}
	return err
}

func (s *Service) settleParts(ctx context.Context, parts [][]*item, locking database.Locking) (err error) {
	for _, part := range parts {
		if err != nil {
			fail(part, err)
			continue
		}
		err = s.settle(ctx, part, locking)
	}
	return err
}

func fail(items []*item, err error) {
	for _, it := range items {
		it.answer = Answer{Err: fmt.Errorf("settle %s: %w", it.name(), err)}
	}
}

// try runs the transaction, again where R5 and R6 say so.
func (s *Service) try(ctx context.Context, items []*item, locking database.Locking) (kept *batch, err error) {
	var written time.Time
	err = s.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		s.metrics.attempts.WithLabelValues(strconv.Itoa(attempt)).Inc()
		err := s.guard(func() (err error) {
			kept, err = s.keep(tx, items, max(locking, database.LockingFor(attempt)), s.looksFirst(attempt))
			return err
		})
		if err == nil {
			for _, it := range items {
				it.sent = append(it.sent, it.planned)
			}
			written = time.Now()
			return nil
		}
		s.noteConflict(err)
		if database.IsLockWait(err) || len(items) > 1 && attempt > database.OptimisticAttempts {
			return database.Final(err) // it is time to split
		}
		return err
	})
	if err == nil {
		s.metrics.since("commit", written)
	}
	return kept, err
}

// guard makes a panic an error of no known class, so that the event that causes it is found
// and parked like any other that cannot be written.
func (s *Service) guard(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("Settling panicked.", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return work()
}

// looksFirst tells whether to look for outcomes that are there already before the keys are inserted. Nearly always there is
// none, and the insert says so for nothing; where it finds one, the next attempt looks, and so do the next groups: repeats
// seldom come alone.
func (s *Service) looksFirst(attempt int) bool {
	if attempt > 1 {
		s.lookFirst.restart(looksAfterRepeat)
		return true
	}
	return s.lookFirst.next()
}

// looksAfterRepeat is how many groups look first after one that had to run again.
const looksAfterRepeat = 50

// keep decides and writes the whole group.
func (s *Service) keep(tx *gorm.DB, items []*item, locking database.Locking, look bool) (*batch, error) {
	began := time.Now()
	known, err := readKnown(tx, items, look)
	if err != nil {
		return nil, err
	}
	b := &batch{currency: s.rules.currency, now: database.Now()}
	fresh := b.sort(items, known)
	books, err := s.judge(tx, b, fresh, known, locking)
	if err != nil {
		return nil, err
	}
	b.adoptSequences(fresh.first, known.sequences)
	s.metrics.since("judge", began)
	began = time.Now()
	if err := b.write(tx, books); err != nil {
		return nil, err
	}
	s.metrics.since("write", began)
	return b, nil
}

// committed tells of what an operator should hear.
func (s *Service) committed(items []*item, kept *batch) {
	for _, it := range items {
		if it.letter != nil && !it.retried {
			s.log.Warn("Message kept as a dead letter.", "reason", it.letter.reason, "topic", it.Topic, "detail", it.letter.detail)
		}
	}
	for _, j := range kept.jumps {
		s.metrics.seqJumps.Inc()
		s.log.Warn("An event of a cabinet is too far ahead of its sequence to be adopted.", "device", j.deviceID, "last", j.last, "seq", j.seq)
	}
	for _, g := range kept.gaps {
		if !s.gaps.add(g) {
			s.tellGap(g)
		}
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

// halves splits a group, at last between the copies of one event too: one may be a conflict
// that cannot be written while the other can.
func halves(items []*item) [][]*item {
	switch groups := byKey(items); {
	case len(items) == 1:
		return [][]*item{items}
	case len(groups) == 1:
		return [][]*item{items[:1], items[1:]}
	default:
		middle := len(groups) / 2
		return [][]*item{slices.Concat(groups[:middle]...), slices.Concat(groups[middle:]...)}
	}
}

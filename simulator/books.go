package simulator

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

// eventKey names one door-close event.
type eventKey struct {
	deviceID int64
	id       string
}

func (k eventKey) String() string { return fmt.Sprintf("event %d/%s", k.deviceID, k.id) }

// entry is what the simulator knows of one event that a door reported.
type entry struct {
	key     eventKey
	kind    physical.Kind // of the cabinet
	restock bool
	seq     int64
	userID  int64
	truth   []quantity // units that are gone, or were brought; ascending by product
	// Where the cabinet's own count is the only witness, it is known beforehand what the outcome must be and charge. What
	// scales and antennas make of a door is for Doortab to judge: there the first receipt counts, or else the settlement.
	counted bool
	sure    []quantity
	want    cabinet.Outcome

	answered     bool
	outcome      cabinet.Outcome
	unattributed bool // nobody knows who it was, and that is all there is to doubt
	orderID      string
	charged      []quantity // as the receipt says
	digest       [sha256.Size]byte
	contradict   string // what a later receipt said differently

	changed    bool // another content was sent under its id
	conflicted bool // and answered as a conflict

	decisions []decision // of an operator, in order

	// pending: the event, or the other content under its id, is still in an outbox, and Doortab was still busy answering when
	// the drain ended. What is pending may be settled or not, at this moment or later.
	pending bool
}

// newEntry is the event of a report; truth are the units that are gone or were brought by it.
func newEntry(r *report, kind physical.Kind, userID int64, truth []quantity) *entry {
	e := &entry{
		key: eventKey{r.DeviceID, r.CloseEventID}, kind: kind, restock: r.Kind == cabinet.KindRestock, seq: r.Seq,
		userID: userID, truth: truth,
	}
	if kind == physical.KindItems {
		e.counted, e.sure, e.want = true, r.sure(), r.expected()
	}
	return e
}

// books are the simulator's own: every event that was put in an outbox, and what was answered.
type books struct {
	mu      sync.Mutex
	events  map[eventKey]*entry
	minted  map[eventKey]bool // by door sessions of this run
	doubts  []eventKey        // that wait for an operator, the oldest first
	strange []string          // receipts that no event explains
	counts  counts
	last    time.Time
}

type counts struct{ published, settled, review, duplicates, receipts int64 }

func newBooks() *books {
	return &books{events: make(map[eventKey]*entry), minted: make(map[eventKey]bool)}
}

// open notes an event before it can be sent.
func (b *books) open(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events[e.key] = e
	b.counts.published++
}

// mint notes an id that Doortab gave to an event of this run.
func (b *books) mint(key eventKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.minted[key] = true
}

func (b *books) isMinted(key eventKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.minted[key]
}

// note reads a receipt and says which event it answers. conflict is true where it answers another content under its id.
func (b *books) note(deviceID int64, payload []byte, now time.Time) (id string, conflict bool) {
	var r cabinet.Receipt
	if err := json.Unmarshal(payload, &r); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.strange = append(b.strange, fmt.Sprintf("cabinet %d: a receipt can't be read: %v", deviceID, err))
		return "", false
	}
	digest := withoutDuplicate(payload)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = now
	b.counts.receipts++
	if r.Duplicate {
		b.counts.duplicates++
	}
	e := b.events[eventKey{deviceID, r.CloseEventID}]
	switch {
	case e == nil || r.DeviceID != deviceID:
		b.unexplained(deviceID, &r)
		return "", false
	case r.Outcome == cabinet.Conflict && e.changed:
		if !e.conflicted {
			e.conflicted = true
			b.doubts = append(b.doubts, e.key)
		}
		return r.CloseEventID, true
	case e.answered:
		e.compare(&r, digest)
	default:
		b.answer(e, &r, digest)
	}
	return r.CloseEventID, false
}

// unexplained keeps a receipt for an event that isn't the cabinet's. Garbage with a readable id is owed a rejection.
func (b *books) unexplained(deviceID int64, r *cabinet.Receipt) {
	if r.Outcome == cabinet.Rejected && r.DeviceID == deviceID {
		return
	}
	b.strange = append(b.strange, fmt.Sprintf("cabinet %d: a receipt %q came for an event that it didn't report: %d/%s",
		deviceID, r.Outcome, r.DeviceID, r.CloseEventID))
}

func (b *books) answer(e *entry, r *cabinet.Receipt, digest [sha256.Size]byte) {
	e.answered, e.outcome, e.orderID, e.digest = true, r.Outcome, r.OrderID, digest
	e.charged = make([]quantity, 0, len(r.Lines))
	for _, l := range r.Lines {
		e.charged = append(e.charged, quantity{l.ProductID, l.Quantity})
	}
	e.charged = byProduct(e.charged)
	switch r.Outcome {
	case cabinet.Settled, cabinet.Empty, cabinet.Restocked:
		b.counts.settled++
	case cabinet.Review:
		b.counts.review++
		e.unattributed = onlyUnattributed(r.Reasons)
		b.doubts = append(b.doubts, e.key)
	}
}

func onlyUnattributed(reasons []cabinet.Reason) bool {
	return !slices.ContainsFunc(reasons, func(r cabinet.Reason) bool { return r != cabinet.ReasonUnattributed && !r.Informs() })
}

// nextDoubt takes the oldest event from the queue that waits for an operator, with what truly happened.
func (b *books) nextDoubt() (e entry, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.doubts) == 0 {
		return entry{}, false
	}
	key := b.doubts[0]
	b.doubts = b.doubts[1:]
	return *b.events[key], true
}

// decide notes what an operator decided.
func (b *books) decide(key eventKey, d decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.events[key]
	e.decisions = append(e.decisions, d)
}

// compare keeps the first contradiction: every receipt of an event says the same but for duplicate (R2).
func (e *entry) compare(r *cabinet.Receipt, digest [sha256.Size]byte) {
	if digest != e.digest && e.contradict == "" {
		e.contradict = fmt.Sprintf("%s with order %q, after %s with order %q", r.Outcome, r.OrderID, e.outcome, e.orderID)
	}
}

// withoutDuplicate is a digest of everything else that a receipt says, whatever the order of its members.
func withoutDuplicate(payload []byte) [sha256.Size]byte {
	var members map[string]any
	if err := json.Unmarshal(payload, &members); err != nil {
		return sha256.Sum256(payload)
	}
	delete(members, "duplicate")
	canonical, err := json.Marshal(members)
	if err != nil {
		return sha256.Sum256(payload)
	}
	return sha256.Sum256(canonical)
}

// change notes that another content is about to be sent under the id.
func (b *books) change(key eventKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events[key].changed = true
}

func (b *books) lastReceipt() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *books) sofar() counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// all copies the entries, in a stable order.
func (b *books) all() (entries []entry, strange []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(b.events), compareKeys)
	for _, k := range keys {
		entries = append(entries, *b.events[k])
	}
	return entries, slices.Clone(b.strange)
}

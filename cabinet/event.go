// Package cabinet says what a cabinet is to Doortab: the topics it speaks on, the door-close event that it reports, the
// receipt that it waits for, and what makes two reports the same report.
//
// It is made of plain values and pure functions: no database, clock or logger, and nothing else of Doortab.
package cabinet

import (
	"fmt"
	"time"
)

// Limits of a door-close event, section 4 of the design.
const (
	MaxPayload  = 64 << 10  // bytes of one event
	MaxDepth    = 32        // nested objects and arrays, the event itself being the first
	MaxItems    = 200       // entries of items
	MaxLanes    = 200       // entries of weights
	MaxEPCs     = 2000      // entries of each RFID list, and different tags in both together
	MaxQuantity = 1000      // units in one entry of items
	MaxID       = 1<<53 - 1 // deviceId, productId, userId and seq: what every JSON reader keeps exactly
	MaxLane     = 1<<31 - 1
	MaxGrams    = 1_000_000_000 // either side of 0: an empty scale may read a little below it
	MaxIDLength = 64            // characters of closeEventId, sessionId and bootId
	MaxEPCHex   = 124           // hex digits: the 31 words of 16 bits that a Gen2 tag's length field can say
)

// Kind says who opened the door.
type Kind string

// The kinds of a door-close event.
const (
	KindSale    Kind = "sale"
	KindRestock Kind = "restock"
)

// Event is one door-close event, as Decode found it: sound evidence in one order whatever order it came in, and
// beside it every entry that a person must judge.
type Event struct {
	CloseEventID string
	DeviceID     int64
	Kind         Kind
	SessionID    string // "" for none
	UserID       int64  // 0 for none
	Seq          int64  // 0 to MaxID; means nothing without HasSeq
	HasSeq       bool
	BootID       string    // "" for none or an unusable one: nothing depends on it
	OpenedAt     time.Time // UTC, milliseconds; zero for none
	ClosedAt     time.Time // UTC, milliseconds, years 1 to 9999: the device's claim (R14)

	// Whether the event carries the evidence at all: an empty list says that nothing was taken, a missing one says nothing.
	HasItems, HasWeights, HasRFID bool

	Items   []Item   // added up per product, by ProductID
	Weights []Weight // one per lane, by lane
	RFID    RFID

	// Malformed holds the entries that go to review. Where one of them has a reason that doesn't only inform, the sound
	// evidence stands but isn't the whole story.
	Malformed []MalformedEntry
}

// Item is what the cabinet itself counted of one product.
type Item struct {
	ProductID int64
	Quantity  int64 // 1 to MaxItems × MaxQuantity, since the entries of one product are added up
	// Confidence is 0 to 1, the lowest of the merged entries; 1 where the cabinet sent none, 0 where it sent nonsense.
	// Whoever builds an event to send sets it: 0 isn't "unset".
	Confidence float64
}

// Weight is what the scale of one lane read, in grams, each within ±MaxGrams.
type Weight struct {
	Lane        int
	BeforeGrams int64
	AfterGrams  int64
}

// RFID holds the tags that the antennas saw: EPC hex in upper case, sorted, each once. Where one of the two lists was
// missing, Malformed has an entry for it, and the other list alone doesn't say what was taken.
type RFID struct {
	Before []string
	After  []string
}

// MalformedEntry is one part of an event that isn't usable while the rest is.
//
// An item names no product (unknown_product) or no quantity from 1 to MaxQuantity (invalid_quantity); a weight names no
// lane (unknown_lane) or has no grams (unexplained_weight), or two of them contradict each other about one lane
// (evidence_disagrees); a tag isn't EPC hex, or one of the two lists is missing (unknown_epc). The optional members of
// the event are entries too, so that a wrong one costs no sale: userId (unattributed), sessionId (session_mismatch),
// seq (evidence_disagrees) and openedAt (clock_skew, which only informs). The event then has no such member.
type MalformedEntry struct {
	Where  string // "items[3]", "rfid.before[0]", "userId"
	Reason Reason
	Raw    []byte // JSON, as it came
}

// EnvelopeError reports a payload that isn't a door-close event, so that no part of it can be settled.
type EnvelopeError struct {
	// CloseEventID is set where the payload is valid JSON with exactly one well-formed closeEventId: a receipt is owed.
	CloseEventID string
	DeviceID     int64  // 0 where it can't be read in the same way
	Field        string // the member at fault, "" for the whole payload
	Problem      string // what is wrong with it, for a person
}

func (e *EnvelopeError) Error() string {
	if e.Field == "" {
		return "door-close event: " + e.Problem
	}
	return fmt.Sprintf("door-close event: %s %s", e.Field, e.Problem)
}

package cabinet

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads a door-close event: strict about what it understands, blind to what it doesn't. The error is always an
// *EnvelopeError. A wrong entry of an event that is otherwise sound is no error: it is in Malformed.
func Decode(payload []byte) (*Event, error) {
	event, err := decode(payload)
	if err == nil {
		return event, nil
	}
	problem, ok := errors.AsType[*EnvelopeError](err)
	if !ok {
		problem = &EnvelopeError{Problem: syntaxProblem(err)}
	}
	problem.CloseEventID, problem.DeviceID = identify(payload)
	return nil, problem
}

// decoder fills one event from one payload.
type decoder struct {
	*reader
	event    Event
	closed   bool // closedAt was there
	readings []reading
}

func decode(payload []byte) (*Event, error) {
	if len(payload) > MaxPayload {
		return nil, wrong("", fmt.Sprintf("has %d bytes, at most %d are taken", len(payload), MaxPayload))
	}
	if tooDeep(payload, MaxDepth) {
		return nil, wrong("", fmt.Sprintf("is nested more than %d deep", MaxDepth))
	}
	d := decoder{reader: newReader(payload), event: Event{Kind: KindSale}}
	defer readers.Put(d.reader)
	if err := d.want(jsontext.KindBeginObject, "", "a JSON object"); err != nil {
		return nil, err
	}
	if _, err := d.object(d.member); err != nil {
		return nil, err
	}
	if !d.ended() {
		return nil, wrong("", "goes on after the end of its JSON object")
	}
	return d.finish()
}

func wrong(field, problem string) error {
	return &EnvelopeError{Field: field, Problem: problem}
}

// member reads one member of the event. null is the same as no member.
func (d *decoder) member(name []byte) error {
	if d.next() == jsontext.KindNull {
		_, err := d.value()
		return err
	}
	switch string(name) {
	case "items":
		return d.items()
	case "weights":
		return d.weights()
	case "rfid":
		return d.rfid()
	}
	raw, err := d.value()
	if err != nil {
		return err
	}
	if required, err := d.required(name, raw); required {
		return err
	}
	d.optional(name, raw)
	return nil
}

// required reads a member that the event can't be settled without, or whose wrong value could mean anything.
func (d *decoder) required(name, raw []byte) (known bool, err error) {
	var ok bool
	e := &d.event
	switch string(name) {
	case "closeEventId":
		if e.CloseEventID, ok = identifier(raw); !ok {
			err = wrong("closeEventId", fmt.Sprintf("is not a string of 1 to %d of A-Z a-z 0-9 . _ : -", MaxIDLength))
		}
	case "deviceId":
		if e.DeviceID, ok = integer(raw, 1, MaxID); !ok {
			err = wrong("deviceId", "is not a JSON integer from 1 to 2^53-1")
		}
	case "kind":
		if e.Kind, ok = kind(raw); !ok {
			err = wrong("kind", `is neither "sale" nor "restock"`)
		}
	case "closedAt":
		if e.ClosedAt, ok = instant(raw); !ok {
			err = wrong("closedAt", "is not an RFC 3339 time with an offset in the years 1 to 9999")
		}
		d.closed = true
	default:
		return false, nil
	}
	return true, err
}

func kind(raw []byte) (Kind, bool) {
	if raw[0] != '"' {
		return "", false
	}
	k := Kind(unquote(raw))
	return k, k == KindSale || k == KindRestock
}

// optional reads a member that the event can be settled without: a wrong one goes to review, and the sale stands.
func (d *decoder) optional(name, raw []byte) {
	var ok bool
	e := &d.event
	switch string(name) {
	case "sessionId":
		if e.SessionID, ok = identifier(raw); !ok {
			d.malformed("sessionId", ReasonSessionMismatch, raw)
		}
	case "userId":
		if e.UserID, ok = integer(raw, 1, MaxID); !ok {
			d.malformed("userId", ReasonUnattributed, raw)
		}
	case "seq":
		if e.Seq, e.HasSeq = integer(raw, 0, MaxID); !e.HasSeq {
			d.malformed("seq", ReasonEvidenceDisagrees, raw)
		}
	case "openedAt":
		// The zero time would read as no time.
		if e.OpenedAt, ok = instant(raw); !ok || e.OpenedAt.IsZero() {
			d.malformed("openedAt", ReasonClockSkew, raw)
		}
	case "bootId":
		e.BootID, _ = identifier(raw)
	}
}

// malformed keeps a copy: an event may outlive the buffer that its payload was read into.
func (d *decoder) malformed(where string, reason Reason, raw []byte) {
	d.event.Malformed = append(d.event.Malformed, MalformedEntry{Where: where, Reason: reason, Raw: append([]byte(nil), raw...)})
}

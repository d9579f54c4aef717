package settlement

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"doortab/cabinet"
)

// Delivery is one message from a cabinet's door-closed topic.
type Delivery struct {
	DeviceID   int64    // from the topic, which the broker answers for; 0 where it names none
	Topic      string   // as it was published
	Payload    []byte   // whole, or its beginning where it was cut on the way
	Size       int      // bytes of the whole payload; 0: as long as Payload
	Digest     [32]byte // SHA-256 of the whole payload; needed only where Payload was cut
	ReceivedAt time.Time

	oversize *cabinet.EnvelopeError // what Cut could read of the whole
}

// Cut returns the delivery with no more than the first [cabinet.MaxPayload] bytes of its
// payload, which is all that is kept of what is too large to be an event. What a receipt needs
// is read before, so whoever cuts earlier by another way leaves the cabinet without an answer.
func (d Delivery) Cut() Delivery {
	if d.Size == 0 {
		d.Size = len(d.Payload)
	}
	if len(d.Payload) <= cabinet.MaxPayload {
		return d
	}
	if d.Size == len(d.Payload) {
		d.Digest = sha256.Sum256(d.Payload)
		_, err := cabinet.Decode(d.Payload)
		var oversize *cabinet.EnvelopeError // of its own, so that d stays on the stack
		errors.As(err, &oversize)
		d.oversize = oversize
	}
	d.Payload = bytes.Clone(d.Payload[:cabinet.MaxPayload])
	return d
}

func (d *Delivery) decode() (*cabinet.Event, error) {
	switch {
	case d.oversize != nil:
		return nil, d.oversize
	case d.Size > len(d.Payload):
		return nil, &cabinet.EnvelopeError{Problem: fmt.Sprintf("has %d bytes, at most %d are taken", d.Size, cabinet.MaxPayload)}
	}
	return cabinet.Decode(d.Payload)
}

func (d *Delivery) digest() [32]byte {
	if d.Size > len(d.Payload) {
		return d.Digest
	}
	return sha256.Sum256(d.Payload)
}

package mqtt

import (
	"crypto/sha256"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Message is one delivery. Exactly one of the holder's Ack calls counts; a message of QoS 0 needs none.
type Message struct {
	Topic string
	// Payload is the whole payload, or its first Config.MaxPayload bytes.
	Payload []byte
	// Size is the length of the whole payload in bytes.
	Size int
	// Digest is the SHA-256 of the whole payload where Payload was cut, else zero.
	Digest [32]byte
	// Retained says that the broker had kept the message, Duplicate that it may have been delivered before.
	Retained, Duplicate bool
	ReceivedAt          time.Time

	id   uint16 // of the packet
	acks *ackQueue
	// state is guarded by acks.
	state ackState
}

// Truncated says whether Payload is only the beginning.
func (m *Message) Truncated() bool { return m.Size > len(m.Payload) }

// Ack says that the message's outcome is committed. Acknowledgements reach the broker in order of arrival. After the
// connection it came by has ended, and on a Message that no Client made, Ack does nothing.
func (m *Message) Ack() {
	if m.acks != nil {
		m.acks.ack(m)
	}
}

// Defer says that the message is being retried: the acknowledgements of later ones step past it, and Drain does not wait
// for it. A later Ack still acknowledges it.
func (m *Message) Defer() {
	if m.acks != nil {
		m.acks.deferred(m)
	}
}

func newMessage(in paho.Message, maxPayload int, acks *ackQueue) *Message {
	m := &Message{
		Topic: in.Topic(), Payload: in.Payload(), Size: len(in.Payload()),
		Retained: in.Retained(), Duplicate: in.Duplicate(), ReceivedAt: time.Now(),
		id: in.MessageID(), acks: acks,
	}
	if m.Size > maxPayload {
		m.Digest = sha256.Sum256(m.Payload)
		m.Payload = append([]byte(nil), m.Payload[:maxPayload]...)
	}
	return m
}

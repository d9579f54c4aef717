package load

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// The packets of MQTT 3.1.1 that a cabinet uses, section 2.2.1: the type in the upper four bits, what it must carry below.
const (
	packetConnect   = 0x10
	packetConnack   = 0x20
	packetPublish   = 0x30
	packetPuback    = 0x40
	packetSubscribe = 0x82
	packetSuback    = 0x90
	packetPing      = 0xC0

	qos1 = 0x02 // in the lower four bits of PUBLISH
)

const (
	dialLimit = 10 * time.Second
	keepAlive = 60 * time.Second
	buffer    = 64 << 10
)

// Account is how a cabinet presents itself; without a user it is anonymous.
type Account struct{ ClientID, User, Password string }

// conn is one connection. It speaks the protocol by hand, since a client library costs more than the broker that is loaded.
type conn struct {
	net.Conn
	in *bufio.Reader

	mu     sync.Mutex
	out    *bufio.Writer
	id     uint16
	packet []byte
}

func dial(ctx context.Context, address string, account Account, buffer int) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	c := &conn{Conn: raw, in: bufio.NewReaderSize(raw, buffer), out: bufio.NewWriterSize(raw, buffer)}
	limit, _ := ctx.Deadline()
	err = errors.Join(c.SetDeadline(limit), c.connect(account), c.SetDeadline(time.Time{}))
	if err != nil {
		return nil, fmt.Errorf("connect %q to the broker: %w", account.ClientID, errors.Join(err, c.Close()))
	}
	return c, nil
}

// connect says who it is: section 3.1, a clean session.
func (c *conn) connect(account Account) error {
	flags, fields := byte(0x02), []string{account.ClientID}
	if account.User != "" {
		flags |= 0xC0
		fields = append(fields, account.User, account.Password)
	}
	body := append(text(nil, "MQTT"), 4, flags, 0, byte(keepAlive/time.Second))
	for _, field := range fields {
		body = text(body, field)
	}
	if err := c.write(packetConnect, body, nil); err != nil {
		return err
	}
	return c.expect(packetConnack, func(answer []byte) bool { return len(answer) == 2 && answer[1] == 0 })
}

// subscribe waits for the broker's consent, so it comes before listen.
func (c *conn) subscribe(filters ...string) error {
	body := []byte{0, 1}
	for _, filter := range filters {
		body = append(text(body, filter), 1) // QoS 1
	}
	if err := c.write(packetSubscribe, body, nil); err != nil {
		return err
	}
	return c.expect(packetSuback, func(answer []byte) bool {
		for _, granted := range answer[2:] {
			if granted > 1 {
				return false
			}
		}
		return len(answer) > 2
	})
}

func (c *conn) expect(packet byte, good func([]byte) bool) error {
	if err := c.flush(); err != nil {
		return err
	}
	kind, body, err := c.read()
	if err != nil {
		return err
	}
	if kind != packet || !good(body) {
		return fmt.Errorf("the broker refuses: packet %#x % x", kind, body)
	}
	return nil
}

// publish writes a message of QoS 1 to the buffer; flush sends it.
func (c *conn) publish(topic string, payload []byte, retain bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = c.id%65535 + 1 // never 0
	flags := byte(packetPublish | qos1)
	if retain {
		flags |= 1
	}
	c.packet = binary.BigEndian.AppendUint16(text(c.packet[:0], topic), c.id)
	return c.write(flags, c.packet, payload)
}

func (c *conn) acknowledge(id uint16) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(packetPuback, binary.BigEndian.AppendUint16(c.packet[:0], id), nil)
}

func (c *conn) ping() error {
	c.mu.Lock()
	err := c.write(packetPing, nil, nil)
	c.mu.Unlock()
	return errors.Join(err, c.flush())
}

func (c *conn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Flush()
}

// write is called under mu, or before there is anybody else.
func (c *conn) write(kind byte, head, payload []byte) error {
	_ = c.out.WriteByte(kind) // a bufio.Writer keeps its first error
	for length := len(head) + len(payload); ; {
		digit := byte(length & 0x7f)
		if length >>= 7; length == 0 {
			_ = c.out.WriteByte(digit)
			break
		}
		_ = c.out.WriteByte(digit | 0x80)
	}
	_, _ = c.out.Write(head)
	_, err := c.out.Write(payload)
	return err
}

// listen hands each message to take until the connection ends, and returns why. What it hands over is good until take returns.
func (c *conn) listen(take func(payload []byte)) error {
	for {
		kind, body, err := c.read()
		if err != nil {
			return err
		}
		if kind&0xF0 == packetPublish {
			if err := c.taken(kind, body, take); err != nil {
				return err
			}
		}
		if c.in.Buffered() == 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

// acknowledged waits for a number of PUBACKs.
func (c *conn) acknowledged(messages int) error {
	for messages > 0 {
		kind, _, err := c.read()
		if err != nil {
			return err
		}
		if kind&0xF0 == packetPuback {
			messages--
		}
	}
	return nil
}

func (c *conn) taken(kind byte, body []byte, take func([]byte)) error {
	if len(body) < 2 {
		return errMalformed
	}
	at := 2 + int(binary.BigEndian.Uint16(body))
	if kind&qos1 == 0 {
		take(body[min(at, len(body)):])
		return nil
	}
	if at+2 > len(body) {
		return errMalformed
	}
	take(body[at+2:])
	return c.acknowledge(binary.BigEndian.Uint16(body[at:]))
}

var errMalformed = errors.New("the broker sent a packet that can't be read")

// read returns the next packet; its body is good until the one after it is read.
func (c *conn) read() (kind byte, body []byte, err error) {
	if kind, err = c.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	length := 0
	for shift := 0; ; shift += 7 {
		digit, err := c.in.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		length |= int(digit&0x7f) << shift
		if digit < 0x80 {
			break
		}
		if shift > 14 {
			return 0, nil, errMalformed
		}
	}
	if body, err = c.in.Peek(length); err != nil {
		return 0, nil, err
	}
	_, err = c.in.Discard(length)
	return kind, body, err
}

// text appends a string as section 1.5.3 writes it.
func text(to []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(s))), s...) //nolint:gosec // names and topics are short
}

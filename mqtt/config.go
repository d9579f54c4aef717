package mqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"
)

// Config says how a Client reaches its broker and what it does there. Zero values take the defaults named below.
type Config struct {
	// URL of the broker: tcp:// or mqtt:// (port 1883), tls://, ssl:// or mqtts:// (port 8883). Unused where Dial is set.
	URL string
	// CAFile is a PEM file of the authorities to trust for tls; empty means the system's.
	CAFile string
	// Dial opens the connection instead of URL, for a broker in the same process.
	Dial func(context.Context) (net.Conn, error)

	ClientID string
	Username string
	Password string

	// Subscriptions are made again with every connection. A message goes to the first one whose filter matches.
	Subscriptions []Subscription
	// Window and WindowBytes bound the messages of QoS 1 that the client holds unacknowledged (default 4096 and 64 MiB),
	// whatever the broker's own window: beyond, the client does not read its connection. Then it hears no PUBACK and no
	// answer to its pings either. So what publishes with QoS 1 has a client of its own, and a connection that isn't read for
	// KeepAlive and Timeout is made anew, which leaves what it held to the cabinets' outboxes.
	Window, WindowBytes int
	// MaxPayload is the most bytes of a payload that a Message keeps (default 64 KiB).
	MaxPayload int

	// KeepAlive is the interval of pings (default 30 s, whole seconds).
	KeepAlive time.Duration
	// Timeout bounds connecting, subscribing, one write, and the wait for one PUBACK (default 10 s).
	Timeout time.Duration
	// MinBackoff and MaxBackoff bound the pause before the next attempt to connect (default 200 ms and 15 s).
	MinBackoff, MaxBackoff time.Duration

	// SendQueue is the most messages waiting in Send (default 8192), Senders the most of them awaiting a PUBACK at one
	// moment (default 64), SendFor how long one is retried before it is given up (default 30 s).
	SendQueue int
	Senders   int
	SendFor   time.Duration

	// OnConnect is called after each successful subscribing, from a goroutine of the client.
	OnConnect func()
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Subscription is one topic filter and what takes its messages.
type Subscription struct {
	Filter string
	QoS    byte
	// Share is the group of a shared subscription; where the broker refuses it, the plain filter is subscribed.
	Share string
	// Handle takes a message, or returns false if it has no room now: a message of QoS 1 is then offered again, in order
	// with those behind it, one of QoS 0 is dropped. Handle must not block and must not call the Client: it runs between
	// the network and the keep-alive.
	Handle func(*Message) bool
}

func (s Subscription) wire() string {
	if s.Share == "" {
		return s.Filter
	}
	return "$share/" + s.Share + "/" + s.Filter
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func (c Config) withDefaults() Config {
	c.Window = orDefault(c.Window, 4096)
	c.WindowBytes = orDefault(c.WindowBytes, 64<<20)
	c.MaxPayload = orDefault(c.MaxPayload, 64<<10)
	c.KeepAlive = orDefault(c.KeepAlive, 30*time.Second)
	c.Timeout = orDefault(c.Timeout, 10*time.Second)
	c.MinBackoff = orDefault(c.MinBackoff, 200*time.Millisecond)
	c.MaxBackoff = orDefault(c.MaxBackoff, 15*time.Second)
	c.SendQueue = orDefault(c.SendQueue, 8192)
	c.Senders = orDefault(c.Senders, 64)
	c.SendFor = orDefault(c.SendFor, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	if c.ClientID == "" {
		return errors.New("mqtt client: no client id: give each process its own")
	}
	for _, s := range c.Subscriptions {
		if s.Filter == "" || s.Handle == nil || s.QoS > 1 {
			return fmt.Errorf("mqtt client: subscription %q needs a filter, a handler and a QoS of 0 or 1", s.Filter)
		}
	}
	if c.Dial != nil {
		return nil
	}
	_, err := parseURL(c.URL)
	return err
}

// schemes maps each accepted URL scheme to its default port; those with 8883 are encrypted.
var schemes = map[string]string{"tcp": "1883", "mqtt": "1883", "tls": "8883", "ssl": "8883", "mqtts": "8883"}

type endpoint struct {
	address   string
	name      string
	encrypted bool
}

func parseURL(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, errors.New("mqtt url: can't be parsed: write it as mqtt://host:1883 or mqtts://host:8883")
	}
	port, known := schemes[u.Scheme]
	if !known || u.Hostname() == "" {
		return endpoint{}, fmt.Errorf("mqtt url %q: write it as mqtt://host:1883 or mqtts://host:8883", u.Redacted())
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return endpoint{net.JoinHostPort(u.Hostname(), port), u.Hostname(), schemes[u.Scheme] == "8883"}, nil
}

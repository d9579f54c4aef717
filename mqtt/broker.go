package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// BrokerConfig says who may use an embedded Broker and how much of it. The functions are called from many goroutines at
// once, at the rate of connections and messages: they must be quick, so whoever looks things up in a database keeps the
// answers for a while. All of them are needed. Zero values of the rest take the defaults named below.
type BrokerConfig struct {
	// Listen is the address to accept cabinets at, such as "127.0.0.1:1883"; port 0 takes a free one.
	Listen string
	// TLS encrypts what comes there; nil means that it is plain.
	TLS *tls.Config

	// Authenticate checks a cabinet's secret. The token names the credential that it was checked against, so that
	// StillValid can tell whether that one is still in force.
	Authenticate func(username string, password []byte) (token string, ok bool)
	// StillValid is asked every Recheck for each live connection; on false the connection is ended.
	StillValid func(username, token string) bool
	// ClientIDAllowed says whether a user may connect under a client id.
	ClientIDAllowed func(username, clientID string) bool
	// MayPublish says whether a user may publish to a topic, also by a last will.
	MayPublish func(username, topic string) bool
	// MaySubscribe says whether a user may subscribe a filter, which comes as it was sent, wildcards and $share included.
	MaySubscribe func(username, filter string) bool
	// ClearRetain says whether messages of a topic are never kept.
	ClearRetain func(topic string) bool

	// MaxPacket is the most bytes of one packet (default 4 MiB); a larger one ends its connection.
	MaxPacket int
	// MaxRetained is the most bytes of a payload that is kept (default 16 KiB); a larger one is passed on, not kept.
	MaxRetained int
	// MaxClients is the most connections (default 100,000).
	MaxClients int
	// Window and WindowBytes bound what the in-process clients of Dial hold unacknowledged (default 1024 messages and
	// 32 MiB). A connection whose next message to one of them finds no room is not read until there is some, for at most
	// one and a half times its keep-alive (MQTT 3.1.1, 3.1.2.10); then it is ended.
	Window, WindowBytes int
	// Handshake bounds the time from accepting a connection to its CONNECT packet (default 5 s), MaxKeepAlive the silence
	// of a connection (default 5 min, also where a client asks for none), Recheck the interval of StillValid (default 5 s).
	Handshake, MaxKeepAlive, Recheck time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// BrokerStats counts what a Broker did since it was made.
type BrokerStats struct {
	// Clients is the connections that are open now, those of Dial included.
	Clients int
	// RefusedConnects counts wrong secrets, client ids, wills and protocol versions; Revoked counts connections ended
	// because their credential was replaced.
	RefusedConnects, Revoked uint64
	// RefusedPublishes and RefusedSubscriptions count what a user was not allowed to do.
	RefusedPublishes, RefusedSubscriptions uint64
	// Oversize counts connections ended by too large a packet.
	Oversize uint64
	// Paused is the connections that are not read at this moment since the window is full, Pauses counts how often that
	// happened, NotAdmitted the messages whose connection ended meanwhile: they are unacknowledged.
	Paused              int
	Pauses, NotAdmitted uint64
	// Unresponsive counts connections ended since their cabinet did not read or did not acknowledge. Dropped counts
	// messages that a receiver will not get: it was ended so, or left more unacknowledged than is kept for it.
	Unresponsive, Dropped uint64
}

const (
	// pendingWrites is the most packets that wait for one client before its outbox. Each has a place kept, connected or not.
	pendingWrites = 128
	// readBuffer is what is kept for what a client sends: an event, as a rule. What is longer is read without it.
	readBuffer = 1024
)

// Broker is an MQTT 3.1.1 broker inside the process, for one machine without one of its own. It keeps nothing on disk: a
// cabinet's outbox is the store.
type Broker struct {
	cfg      BrokerConfig
	log      *slog.Logger
	listener net.Listener
	server   *mochi.Server
	window   *admission
	backlog  atomic.Int64 // bytes that wait for cabinets
	count    brokerCounters

	closing   chan struct{}
	closeOnce sync.Once
	tasks     sync.WaitGroup

	mu       sync.Mutex
	sessions map[*session]struct{}
}

type brokerCounters struct {
	refusedConnects, revoked, refusedPublishes, refusedSubscriptions, oversize atomic.Uint64
	pauses, notAdmitted, unresponsive, dropped                                 atomic.Uint64
}

// NewBroker listens at cfg.Listen; Serve accepts. The in-process clients of Dial are served from now on.
func NewBroker(cfg BrokerConfig) (*Broker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("mqtt broker: listen at %q: %w", cfg.Listen, err)
	}
	b := &Broker{
		cfg: cfg, log: cfg.Logger, listener: listener,
		window:  newAdmission(cfg.Window, cfg.WindowBytes),
		closing: make(chan struct{}), sessions: make(map[*session]struct{}),
	}
	b.server = mochi.New(b.options())
	if err := b.server.AddHook(&rules{broker: b}, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("mqtt broker: %w", err), listener.Close())
	}
	if err := b.server.Serve(); err != nil {
		return nil, errors.Join(fmt.Errorf("mqtt broker: %w", err), listener.Close())
	}
	return b, nil
}

func (c BrokerConfig) withDefaults() BrokerConfig {
	c.MaxPacket = orDefault(c.MaxPacket, 4<<20)
	c.MaxRetained = orDefault(c.MaxRetained, 16<<10)
	c.MaxClients = orDefault(c.MaxClients, 100_000)
	c.Window = orDefault(c.Window, 1024)
	c.WindowBytes = orDefault(c.WindowBytes, 32<<20)
	c.Handshake = orDefault(c.Handshake, 5*time.Second)
	c.MaxKeepAlive = orDefault(c.MaxKeepAlive, 5*time.Minute)
	c.Recheck = orDefault(c.Recheck, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c BrokerConfig) validate() error {
	if c.Authenticate == nil || c.StillValid == nil || c.ClientIDAllowed == nil || c.MayPublish == nil ||
		c.MaySubscribe == nil || c.ClearRetain == nil {
		return errors.New("mqtt broker: a rule is missing: set all functions of BrokerConfig")
	}
	if c.MaxPacket > math.MaxInt32 || c.Window > math.MaxUint16/2 || c.MaxKeepAlive > math.MaxUint16*time.Second {
		return errors.New("mqtt broker: MaxPacket is at most 2 GiB, Window 32,767 messages, MaxKeepAlive 65,535 seconds")
	}
	return nil
}

func (b *Broker) options() *mochi.Options {
	limits := mochi.NewDefaultServerCapabilities()
	limits.MaximumClients = int64(b.cfg.MaxClients)
	limits.MaximumPacketSize = uint32(b.cfg.MaxPacket) //nolint:gosec // validate bounds it
	limits.MaximumClientWritesPending = pendingWrites
	limits.MaximumInflight = math.MaxUint16 // admission and hasRoom bound it more closely
	limits.MaximumMessageExpiryInterval = 0 // the last status of a cabinet stays, however old
	limits.MaximumSessionExpiryInterval = 24 * 60 * 60
	limits.TopicAliasMaximum = 0
	return &mochi.Options{
		Capabilities:            limits,
		ClientNetReadBufferSize: readBuffer,
		Logger:                  slog.New(quiet{b.log.Handler()}),
		SysTopicResendInterval:  math.MaxInt32, // nobody may read $SYS; seconds
	}
}

// Addr is the address that cabinets connect to.
func (b *Broker) Addr() net.Addr { return b.listener.Addr() }

// Stats returns the counters.
func (b *Broker) Stats() BrokerStats {
	b.mu.Lock()
	clients := len(b.sessions)
	b.mu.Unlock()
	return BrokerStats{
		Clients: clients, RefusedConnects: b.count.refusedConnects.Load(), Revoked: b.count.revoked.Load(),
		RefusedPublishes:     b.count.refusedPublishes.Load(),
		RefusedSubscriptions: b.count.refusedSubscriptions.Load(), Oversize: b.count.oversize.Load(),
		Paused: b.window.paused(), Pauses: b.count.pauses.Load(), NotAdmitted: b.count.notAdmitted.Load(),
		Unresponsive: b.count.unresponsive.Load(), Dropped: b.count.dropped.Load(),
	}
}

// Serve accepts cabinets until ctx ends, and then closes the broker. It returns an error only if the listener fails.
func (b *Broker) Serve(ctx context.Context) error {
	defer b.Close()
	stop := context.AfterFunc(ctx, b.Close)
	defer stop()
	if !b.spawn(b.recheck) {
		return nil
	}
	return b.accept()
}

// Close ends every connection, those of Dial included, and waits for them.
func (b *Broker) Close() {
	b.closeOnce.Do(func() {
		b.mu.Lock()
		close(b.closing)
		b.mu.Unlock()
		_ = b.listener.Close()
		for _, s := range b.open() {
			_ = s.Close()
		}
		b.tasks.Wait() // a connection that is still being established must not meet the server's end
		_ = b.server.Close()
	})
}

func (b *Broker) open() []*session {
	b.mu.Lock()
	defer b.mu.Unlock()
	sessions := make([]*session, 0, len(b.sessions))
	for s := range b.sessions {
		sessions = append(sessions, s)
	}
	return sessions
}

// Dial connects a client of this process. It is not authenticated and may use every topic; nothing outside the process can
// reach it. It fits Config.Dial.
func (b *Broker) Dial(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	s := newSession(far, true, &b.backlog)
	if !b.spawn(func() { b.attend(s) }) {
		return nil, errors.Join(errors.New("mqtt broker: closed"), near.Close(), far.Close())
	}
	return near, nil
}

// spawn runs a task that Close waits for, unless the broker is closing.
func (b *Broker) spawn(task func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closing:
		return false
	default:
		b.tasks.Go(task)
		return true
	}
}

// enter registers a connection; one that comes while the broker closes is closed too.
func (b *Broker) enter(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[s] = struct{}{}
	select {
	case <-b.closing:
		_ = s.Close()
	default:
	}
}

// attend serves one connection to its end.
func (b *Broker) attend(s *session) {
	b.enter(s)
	if !s.local && !s.opensWell(b.cfg.Handshake) {
		_ = s.Close() // what follows sees a closed connection and tidies up
	}
	err := b.server.EstablishConnection(s.kind(), s)
	_ = s.Close()
	b.mu.Lock()
	delete(b.sessions, s)
	b.mu.Unlock()
	s.end(b.window)
	user, _, _ := s.identity()
	if s.out.stuck.Load() {
		b.count.unresponsive.Add(1)
		b.log.Warn("Closed an MQTT connection: its cabinet did not read or acknowledge", "user", user)
	}
	if errors.Is(err, packets.ErrPacketTooLarge) {
		b.count.oversize.Add(1)
		b.log.Warn("Closed an MQTT connection: its packet was too large", "user", user, "limit", b.cfg.MaxPacket)
	}
}

// recheck ends connections whose credential is no longer in force.
func (b *Broker) recheck() {
	tick := time.NewTicker(b.cfg.Recheck)
	defer tick.Stop()
	for {
		select {
		case <-b.closing:
			return
		case <-tick.C:
		}
		for _, s := range b.open() {
			user, token, known := s.identity()
			if known && !b.cfg.StillValid(user, token) {
				b.count.revoked.Add(1)
				b.log.Info("Closed an MQTT connection: its credential was replaced", "user", user)
				_ = s.Close()
			}
		}
	}
}

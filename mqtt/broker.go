package mqtt

import (
	"log/slog"
	"time"
)

// BrokerConfig says who may use an embedded Broker and how much of it. The functions are called from many goroutines at
// once, at the rate of connections and messages: they must be quick, so whoever looks things up in a database keeps the
// answers for a while. All of them are needed. Zero values of the rest take the defaults named below.
type BrokerConfig struct {
	// Listen is the address to accept cabinets at, such as "127.0.0.1:1883"; port 0 takes a free one.
	Listen string

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
	// 32 MiB). Beyond them a message of QoS 1 is neither passed on nor acknowledged, so that its sender sends it again.
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
	// NotAdmitted counts messages left unacknowledged since the window was full, Dropped those lost to a slow receiver.
	NotAdmitted, Dropped uint64
}

package simulator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const (
	connectTimeout = 5 * time.Second
	writeTimeout   = 2 * time.Second
	keepAlive      = 30 * time.Second
	goodbyeMillis  = 250 // for the last words of a connection
)

// endpoint is where the broker listens.
type endpoint struct {
	address   string
	name      string
	encrypted bool
	roots     *x509.CertPool // nil: the system's
}

// parseBroker reads tcp:// and mqtt:// (1883), tls://, ssl:// and mqtts:// (8883).
func parseBroker(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return endpoint{}, errors.New("simulator: the broker's address is missing or wrong: write it as tcp://127.0.0.1:1883")
	}
	e := endpoint{name: u.Hostname()}
	port := "1883"
	switch u.Scheme {
	case "tcp", "mqtt":
	case "tls", "ssl", "mqtts":
		port, e.encrypted = "8883", true
	default:
		return endpoint{}, fmt.Errorf("simulator: the broker's address begins with %q: tcp, mqtt, tls, ssl or mqtts are known", u.Scheme)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	e.address = net.JoinHostPort(e.name, port)
	return e, nil
}

// authorities reads those whose certificates are trusted; "" means the system's.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // whoever runs the fleet names the file
	if err != nil {
		return nil, fmt.Errorf("simulator: authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("simulator: authorities: %s holds no PEM certificate", file)
	}
	return pool, nil
}

func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	plain := &net.Dialer{Timeout: connectTimeout}
	if !e.encrypted {
		return plain.DialContext(ctx, "tcp", e.address)
	}
	secure := tls.Dialer{NetDialer: plain, Config: &tls.Config{ServerName: e.name, RootCAs: e.roots, MinVersion: tls.VersionTLS12}}
	return secure.DialContext(ctx, "tcp", e.address)
}

// linkConfig says who connects.
type linkConfig struct {
	clientID, user, secret string
	statusTopic            string // "" for a second connection, which leaves no last will
	offline                []byte
	hears                  map[string]func(payload []byte) // by topic
}

// link is one MQTT connection of a cabinet. When it is lost it is used up.
type link struct {
	client paho.Client
	wire   atomic.Pointer[wire]
	lost   chan struct{} // closed when the connection has ended
	// handing are the calls to paho that may outlive the connection, by writeTimeout.
	handing *sync.WaitGroup
}

// connect opens a connection and subscribes. After an error nothing is left open.
func connect(ctx context.Context, to endpoint, c linkConfig, handing *sync.WaitGroup) (*link, error) {
	l := &link{lost: make(chan struct{}), handing: handing}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	l.client = paho.NewClient(l.options(ctx, to, c))
	err := finished(ctx, l.client.Connect())
	for topic, hear := range c.hears {
		if err == nil {
			err = finished(ctx, l.client.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) { hear(m.Payload()) }))
		}
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("connect %s to the broker at %s: %w", c.clientID, to.address, err)
	}
	return l, nil
}

func (l *link) options(ctx context.Context, to endpoint, c linkConfig) *paho.ClientOptions {
	end := sync.OnceFunc(func() { close(l.lost) })
	o := paho.NewClientOptions().AddBroker("tcp://" + to.address).SetClientID(c.clientID).
		SetUsername(c.user).SetPassword(c.secret).SetProtocolVersion(4).
		SetAutoReconnect(false).SetConnectRetry(false).SetCleanSession(true).
		SetKeepAlive(keepAlive).SetConnectTimeout(connectTimeout).SetWriteTimeout(writeTimeout).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
			conn, err := to.dial(ctx)
			if err != nil {
				return nil, err
			}
			w := &wire{Conn: conn, end: end}
			l.wire.Store(w)
			return w, nil
		})
	if c.statusTopic != "" {
		o.SetBinaryWill(c.statusTopic, c.offline, 1, true)
	}
	return o
}

func finished(ctx context.Context, token paho.Token) error {
	select {
	case <-token.Done():
		return token.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish hands a payload to the connection at QoS 1, and reports whether there was one. Whether the payload arrives only a
// receipt can say. The token is nil where there was none.
//
// paho's Publish waits writeTimeout in vain where the connection is lost at that moment; the cabinet doesn't.
func (l *link) publish(topic string, retained bool, payload []byte) (token paho.Token, sent bool) {
	handed := make(chan paho.Token, 1)
	l.handing.Go(func() { handed <- l.client.Publish(topic, 1, retained, payload) })
	select {
	case token = <-handed:
	case <-l.lost:
		return nil, false
	}
	select {
	case <-token.Done():
		return token, token.Error() == nil
	default:
		return token, true
	}
}

// close ends the connection in the regular way, so that no last will is sent.
func (l *link) close() {
	l.client.Disconnect(goodbyeMillis)
	if w := l.wire.Load(); w != nil {
		_ = w.Close()
	}
}

// wire is a connection that can be cut in the middle of a message. It tells by itself that it has ended: paho takes a
// connection that was closed at this end for one that it closed itself, and says nothing.
type wire struct {
	net.Conn
	end func()

	mu  sync.Mutex
	cut func() (part float64)
}

// Read makes every end look as if the other side had ended the connection.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.end()
		err = io.EOF
	}
	return n, err
}

// cutNext cuts the connection at the next PUBLISH: after that part of it, 0 to 1. With 1 the message is out, and its PUBACK
// and receipt find nobody. done is called when it has happened.
func (w *wire) cutNext(part float64, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = func() float64 { done(); return part }
}

// Write writes one packet; that is how paho uses it.
func (w *wire) Write(p []byte) (int, error) {
	const publish = 3
	w.mu.Lock()
	cut := w.cut
	if len(p) == 0 || p[0]>>4 != publish || cut == nil {
		w.mu.Unlock()
		return w.Conn.Write(p)
	}
	w.cut = nil
	w.mu.Unlock()
	n, _ := w.Conn.Write(p[:int(float64(len(p))*cut())])
	_ = w.Close()
	return n, net.ErrClosed
}

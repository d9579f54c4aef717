package mqtt

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// timedConn bounds every write, so that a peer that has stopped reading ends the connection and not the writer, and reads
// ahead, since MQTT parsers ask for single bytes.
type timedConn struct {
	net.Conn
	reader       *bufio.Reader
	writeTimeout time.Duration
	// failed, which may be nil, gets what reading or writing ended with.
	failed func(error)
}

func newTimedConn(c net.Conn, buffer int, writeTimeout time.Duration) *timedConn {
	return &timedConn{Conn: c, reader: bufio.NewReaderSize(c, buffer), writeTimeout: writeTimeout}
}

func (c *timedConn) Read(b []byte) (int, error) {
	n, err := c.reader.Read(b)
	if err != nil && c.failed != nil {
		c.failed(err)
	}
	return n, err
}

func (c *timedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.writeTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		_ = c.Close() // half a packet may be out
		if c.failed != nil {
			c.failed(err)
		}
	}
	return n, err
}

// dialer returns how to reach the broker of a Config.
func dialer(c Config) (func(context.Context) (net.Conn, error), error) {
	if c.Dial != nil {
		return c.Dial, nil
	}
	to, err := parseURL(c.URL)
	if err != nil {
		return nil, err
	}
	plain := &net.Dialer{KeepAlive: 15 * time.Second}
	if !to.encrypted {
		return func(ctx context.Context) (net.Conn, error) { return plain.DialContext(ctx, "tcp", to.address) }, nil
	}
	roots, err := authorities(c.CAFile)
	if err != nil {
		return nil, err
	}
	secure := &tls.Dialer{
		NetDialer: plain,
		Config:    &tls.Config{ServerName: to.name, RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	return func(ctx context.Context) (net.Conn, error) { return secure.DialContext(ctx, "tcp", to.address) }, nil
}

func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("mqtt authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("mqtt authorities: %s holds no PEM certificate", file)
	}
	return pool, nil
}

var errTimeout = errors.New("no answer from the broker in time")

// await waits for a token; a token alone may never complete.
func await(ctx context.Context, token paho.Token, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-token.Done():
		return token.Error()
	case <-timer.C:
		return errTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// noStore keeps nothing: with clean sessions a stored packet would only hold memory.
type noStore struct{}

func (noStore) Open()                             {}
func (noStore) Put(string, packets.ControlPacket) {}
func (noStore) Get(string) packets.ControlPacket  { return nil }
func (noStore) All() []string                     { return nil }
func (noStore) Del(string)                        {}
func (noStore) Close()                            {}
func (noStore) Reset()                            {}

package mqtt_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"doortab/certificate/certificatetest"
	"doortab/mqtt"
)

func TestClientSpeaksTLSToABrokerThatItTrusts(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.MaySubscribe = func(string, string) bool { return true } })
	config, file := secure(t)
	address := encrypted(t, config, r.broker.Addr().String())
	for name, tc := range map[string]struct {
		authorities string
		trusted     bool
	}{"named file": {file, true}, "system's": {"", false}} {
		t.Run(name, func(t *testing.T) {
			cfg := r.worker("", make(inbox, 1).take)
			cfg.Dial, cfg.URL, cfg.CAFile = nil, "mqtts://"+address, tc.authorities
			cfg.Username, cfg.Password, cfg.ClientID = "9", "secret-9", "9"
			client, stop := start(t, cfg)
			defer stop()
			if tc.trusted {
				eventually(t, "it connects", client.Connected)
				return
			}
			before := time.Now()
			eventually(t, "it had time to try", func() bool { return time.Since(before) > 100*time.Millisecond })
			if client.Connected() {
				t.Error("connected to an unknown authority")
			}
		})
	}
}

// secure is a server's configuration for 127.0.0.1 and the file that trusts it.
func secure(t *testing.T) (config *tls.Config, authorities string) {
	t.Helper()
	authority, dir := certificatetest.New(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Issue(t, 1, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	check(t, err)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, authority.File
}

func TestEmbeddedBrokerSpeaksTLS(t *testing.T) {
	t.Parallel()
	config, file := secure(t)
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.TLS, c.Handshake = config, 300*time.Millisecond })
	got := make(inbox, 1)
	run(t, r.worker("w", got.take)) // inside the process it stays plain
	cfg := mqtt.Config{
		URL: "mqtts://" + r.broker.Addr().String(), CAFile: file, ClientID: "1001", Username: "1001", Password: "secret-1001",
		Logger: slog.New(slog.DiscardHandler),
	}
	c := run(t, cfg)
	check(t, c.Publish(t.Context(), r.topic("1001", "door-closed"), bytes.Repeat([]byte("x"), 100_000), 1, false))
	await(t, got).Ack()

	plain := paho.NewClient(cabinetOptions(r, "1002", "1002"))
	if done(plain.Connect()) == nil {
		t.Error("a plain connection is taken")
	}
	plain.Disconnect(0)
	silent, err := net.Dial("tcp", r.broker.Addr().String())
	check(t, err)
	defer silent.Close()
	check(t, silent.SetReadDeadline(time.Now().Add(patience)))
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection without a handshake ends with %v", err)
	}
	if !c.Connected() {
		t.Error("the good connection has ended")
	}
}

// encrypted listens with TLS in front of a broker.
func encrypted(t *testing.T, config *tls.Config, broker string) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	check(t, err)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { join(conn, broker) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		tasks.Wait()
	})
	return listener.Addr().String()
}

func join(near net.Conn, broker string) {
	defer near.Close()
	far, err := net.Dial("tcp", broker)
	if err != nil {
		return
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	_, _ = io.Copy(near, far)
	_ = near.Close()
	tasks.Wait()
}

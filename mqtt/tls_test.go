package mqtt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"doortab/mqtt"
)

func TestClientSpeaksTLSToABrokerThatItTrusts(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.MaySubscribe = func(string, string) bool { return true } })
	certificate, file := authority(t)
	address := encrypted(t, certificate, r.broker.Addr().String())
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

// authority makes a certificate for 127.0.0.1 and the file that trusts it.
func authority(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	check(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// encrypted listens with TLS in front of a broker.
func encrypted(t *testing.T, certificate tls.Certificate, broker string) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
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
	defer near.Close() //nolint:errcheck // the other end sees it
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

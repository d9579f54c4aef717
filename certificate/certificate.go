// Package certificate gives a server its TLS certificate from two files, and follows them when they change: whoever renews
// them restarts nothing.
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is how often the files are looked at, at most; a handshake in between takes what is known.
const lookEvery = time.Second

// Files is the certificate that two PEM files hold. It is safe for concurrent use.
type Files struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	lookedAt time.Time
	seen     [2]os.FileInfo
	trouble  string // what the log says already
}

// Open reads a certificate, with the chain behind it, and its key. It fails where they can't be read or don't belong
// together.
func Open(certFile, keyFile string, log *slog.Logger) (*Files, error) {
	if certFile == "" || keyFile == "" {
		return nil, errors.New("TLS needs a file with the certificate and one with its key: name both or neither")
	}
	f := &Files{certFile: certFile, keyFile: keyFile, log: log, lookedAt: time.Now()}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// TLS is a server's configuration that takes the certificate of the moment for each handshake, at TLS 1.2 or newer.
func (f *Files) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.certificate(), nil },
	}
}

func (f *Files) certificate() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.lookedAt) >= lookEvery {
		f.lookedAt = time.Now()
		f.follow()
	}
	return f.current
}

// follow reads the files again where they have changed or could not be read the last time. What is wrong with them is
// logged once, and the certificate that worked stays.
func (f *Files) follow() {
	if f.trouble == "" && f.unchanged() {
		return
	}
	err := f.read()
	switch {
	case err == nil:
		f.trouble = ""
		f.log.Info("TLS certificate was read anew.", "file", f.certFile, "valid_until", f.current.Leaf.NotAfter)
	case err.Error() != f.trouble:
		f.trouble = err.Error()
		f.log.Warn("TLS certificate can't be read anew; the one before stays in use.", "error", err)
	}
}

func (f *Files) unchanged() bool {
	for i, name := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(name)
		if err != nil || !os.SameFile(info, f.seen[i]) || info.Size() != f.seen[i].Size() || !info.ModTime().Equal(f.seen[i].ModTime()) {
			return false
		}
	}
	return true
}

// read looks at the files before it reads them, so that a change in between shows the next time.
func (f *Files) read() error {
	var seen [2]os.FileInfo
	for i, name := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read TLS certificate: %w", err)
		}
		seen[i] = info
	}
	pair, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return fmt.Errorf("read TLS certificate %s and key %s: %w", f.certFile, f.keyFile, err)
	}
	f.current, f.seen = &pair, seen
	return nil
}

package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"doortab/certificate/certificatetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server behind files that a test changes, in a time that it moves.
type rig struct {
	authority *certificatetest.Authority
	cert, key string
	files     *Files
	address   string
	log       *lines
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{
		authority: certificatetest.New(t), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), log: &lines{},
	}
	r.authority.Issue(t, 100, r.cert, r.key)
	var err error
	if r.files, err = Open(r.cert, r.key, slog.New(slog.NewTextHandler(r.log, nil))); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", r.files.TLS())
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return r
}

// serial is that of the certificate which a handshake shows after the files were looked at again.
func (r *rig) serial(t *testing.T, most uint16) (int64, error) {
	t.Helper()
	r.files.mu.Lock()
	r.files.lookedAt = time.Time{}
	r.files.mu.Unlock()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", r.address,
		&tls.Config{RootCAs: r.authority.Pool(), MaxVersion: most, MinVersion: tls.VersionTLS10})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

func (r *rig) shows(t *testing.T, want int64) {
	t.Helper()
	if got, err := r.serial(t, 0); err != nil || got != want {
		t.Errorf("the server shows certificate %d, %v; want %d", got, err, want)
	}
}

func TestAChangedFileIsTakenAndABrokenOneIsNot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.shows(t, 100)
	serial := int64(101)
	for name, spoil := range map[string]func() error{
		"no certificate": func() error { return os.WriteFile(r.cert, []byte("nothing"), 0o600) },
		"gone":           func() error { return os.Remove(r.cert) },
		"another key": func() error {
			certificatetest.New(t).Issue(t, 9, filepath.Join(t.TempDir(), "x"), r.key)
			return nil
		},
	} {
		r.authority.Issue(t, serial, r.cert, r.key)
		r.shows(t, serial)
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		before := r.log.count("stays in use")
		r.shows(t, serial)
		r.shows(t, serial)
		if n := r.log.count("stays in use") - before; n != 1 {
			t.Errorf("%s: logged %d times, want once", name, n)
		}
		serial++
	}
	r.authority.Issue(t, serial, r.cert, r.key)
	r.shows(t, serial)
	if n := r.log.count("read anew."); n != 4 {
		t.Errorf("%d changes are logged, want 4", n)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.serial(t, tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is taken")
	}
	if _, err := r.serial(t, tls.VersionTLS12); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := filepath.Join(t.TempDir(), "key.pem")
	r.authority.Issue(t, 1, filepath.Join(t.TempDir(), "cert.pem"), other)
	for name, c := range map[string]struct{ cert, key, want string }{
		"no key":           {r.cert, "", "name both"},
		"missing file":     {r.cert + "x", r.key, "no such file"},
		"key of another":   {r.cert, other, "private key does not match"},
		"no PEM":           {r.key, r.key, "read TLS certificate"},
		"certificate only": {"", r.key, "name both"},
	} {
		if _, err := Open(c.cert, c.key, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var unknown x509.UnknownAuthorityError
	_, err := tls.Dial("tcp", r.address, &tls.Config{RootCAs: x509.NewCertPool()})
	if !errors.As(err, &unknown) {
		t.Errorf("a stranger's authority: %v", err)
	}
}

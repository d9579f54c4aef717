package claims_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// lossy stands between a service and Redis or MariaDB, and loses the answers that it is told to lose: the server has done the
// work then.
type lossy struct {
	listener net.Listener
	network  string
	server   string
	counts   func(command []byte) bool // tells those whose answers are lost
	lose     atomic.Int64              // of these, how many are yet to be lost
	lost     atomic.Int64
	running  sync.WaitGroup

	mu    sync.Mutex
	links map[net.Conn]bool
}

// throughLossy returns a proxy to the Redis of a URL, and the URL behind it.
func throughLossy(t *testing.T, redisURL string) (*lossy, string) {
	t.Helper()
	u, err := url.Parse(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{network: "tcp", server: u.Host, counts: isScript}
	u.Host = p.serve(t)
	return p, u.String()
}

func isScript(command []byte) bool { return bytes.Contains(bytes.ToLower(command), []byte("evalsha")) }

func isCommit(command []byte) bool { return bytes.HasSuffix(command, []byte("COMMIT")) }

// throughForgetful returns a proxy to the database of a DSN that loses answers to COMMIT, and the DSN behind it.
func throughForgetful(t *testing.T, dsn string) (*lossy, string) {
	t.Helper()
	settings, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{network: settings.Net, server: settings.Addr, counts: isCommit}
	settings.Net, settings.Addr = "tcp", p.serve(t)
	return p, settings.FormatDSN()
}

// serve returns where the proxy listens until the test ends.
func (p *lossy) serve(t *testing.T) (address string) {
	t.Helper()
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.links = map[net.Conn]bool{}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p.listener.Addr().String()
}

func (p *lossy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for link := range p.links {
		_ = link.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *lossy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.links[client], p.links[server] = true, true
		p.mu.Unlock()
		deaf := &atomic.Bool{}
		p.running.Go(func() { p.commands(client, server, deaf) })
		p.running.Go(func() { p.answers(client, server, deaf) })
	}
}

func (p *lossy) commands(client, server net.Conn, deaf *atomic.Bool) {
	defer p.end(client, server)
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if p.counts(buffer[:n]) && p.lose.Add(-1) >= 0 {
			deaf.Store(true)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *lossy) answers(client, server net.Conn, deaf *atomic.Bool) {
	defer p.end(client, server)
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if deaf.Load() {
			if !strings.HasPrefix(string(buffer[:n]), "-NOSCRIPT") {
				p.lost.Add(1)
			}
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *lossy) end(client, server io.Closer) { _, _ = client.Close(), server.Close() }

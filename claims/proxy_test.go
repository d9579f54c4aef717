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
)

// lossy stands between a service and Redis, and loses the answers that it is told to lose: Redis has done the work then.
type lossy struct {
	listener net.Listener
	server   string
	lose     atomic.Int64 // pipelines with a script whose answer is yet to be lost
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
	p := &lossy{server: u.Host, links: map[net.Conn]bool{}}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = p.listener.Addr().String()
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p, u.String()
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
		server, err := net.Dial("tcp", p.server)
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
		if bytes.Contains(bytes.ToLower(buffer[:n]), []byte("evalsha")) && p.lose.Add(-1) >= 0 {
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

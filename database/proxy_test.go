package database_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// fate is what becomes of one statement on its way to the server.
type fate int

const (
	pass       fate = iota
	loseIt          // the connection breaks before the server has it
	loseAnswer      // the server has done it, its answer never comes back
	spoil           // the server gets a statement that it refuses
)

// proxy stands between the program and the real database, and decides about each statement.
type proxy struct {
	listener net.Listener
	server   string
	decide   func(statement string) fate
	running  sync.WaitGroup
}

// throughProxy returns the DSN of the same schema behind a proxy.
func throughProxy(t *testing.T, dsn string, decide func(statement string) fate) string {
	t.Helper()
	settings, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "proxy") // a socket's name has little room
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{server: settings.Addr, decide: decide}
	settings.Addr = filepath.Join(dir, "s")
	if p.listener, err = net.Listen("unix", settings.Addr); err != nil {
		t.Fatal(err)
	}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.running.Wait()
		_ = os.RemoveAll(dir)
	})
	return settings.FormatDSN()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server, decide: p.decide}
		p.running.Go(l.statements)
		p.running.Go(l.answers)
	}
}

type link struct {
	client, server net.Conn
	decide         func(string) fate
	deaf           atomic.Bool // the next answer is lost
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (l *link) answers() {
	defer l.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := l.server.Read(buffer)
		if err != nil || l.deaf.Load() {
			return
		}
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// statements reads the packets that the client sends: three bytes of length, one of sequence, and for a statement the byte 3.
func (l *link) statements() {
	defer l.close()
	header := make([]byte, 4)
	for {
		if _, err := io.ReadFull(l.client, header); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(header)&0xffffff)
		if _, err := io.ReadFull(l.client, body); err != nil {
			return
		}
		if header[3] == 0 && len(body) > 0 && body[0] == 3 {
			switch l.decide(string(body[1:])) {
			case loseIt:
				return
			case loseAnswer:
				l.deaf.Store(true)
			case spoil:
				body[1] = '?'
			case pass:
			}
		}
		if _, err := l.server.Write(append(header, body...)); err != nil {
			return
		}
		if l.deaf.Load() {
			_, _ = io.Copy(io.Discard, l.client) // until the lost answer has closed the link
			return
		}
	}
}

package services

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// RedisOptions chooses how a private Redis keeps its data.
type RedisOptions struct {
	// AppendOnly keeps the data over a restart; without it Redis starts empty.
	AppendOnly bool

	cluster  bool
	password string // "" for one of its own
}

// Redis is a private Redis on a port of 127.0.0.1. It has a password, since a Redis that any local user may talk to writes
// files for them.
type Redis struct {
	Process

	options  RedisOptions
	folder   *folder
	dir      string
	address  string
	password string
}

func newRedis(f *folder, name string, o RedisOptions, logger *slog.Logger) *Redis {
	r := &Redis{options: o, folder: f, password: cmp.Or(o.password, rand.Text())}
	r.Process = Process{name: name, logPath: filepath.Join(f.dir, name+".log"), logger: logger, command: r.serverCommand, answers: r.ping}
	return r
}

// URL is the address with the password, for go-redis's ParseURL: redis://:secret@127.0.0.1:port/0. It stays the same over Stop,
// Kill and Start.
func (r *Redis) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", r.password), Host: r.address, Path: "/0"}
	return u.String()
}

// Address is host and port, for a proxy in front of it.
func (r *Redis) Address() string { return r.address }

func (r *Redis) create(ctx context.Context) error {
	var err error
	if r.dir, err = subfolder(r.folder.dir, r.name); err != nil {
		return fmt.Errorf("prepare %s: %w", r.name, err)
	}
	return r.startOnFreePort(ctx, r.configure)
}

// The folder isn't named in the file: the process starts in it, and a path would have to be quoted.
func (r *Redis) configure(port int) error {
	r.address = address(port)
	appendOnly := "no"
	if r.options.AppendOnly {
		appendOnly = "yes"
	}
	lines := []string{
		"bind 127.0.0.1",
		fmt.Sprint("port ", port),
		"requirepass " + r.password,
		"appendonly " + appendOnly,
		`save ""`,
		"maxmemory-policy noeviction",
	}
	if r.options.cluster {
		lines = append(lines, "cluster-enabled yes", "masterauth "+r.password)
	}
	lines = append(lines, "")
	return os.WriteFile(filepath.Join(r.dir, "redis.conf"), []byte(strings.Join(lines, "\n")), 0o600)
}

func (r *Redis) serverCommand() (*exec.Cmd, error) {
	server, err := program("redis-server")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(server, "redis.conf") //nolint:gosec // found by name
	cmd.Dir = r.dir
	return cmd, nil
}

// ping asks for the process id, since another Redis may have got the port first. While data is loaded, INFO answers too, so a
// PING comes before it.
func (r *Redis) ping(ctx context.Context, pid int) error {
	conn, err := dial(ctx, r.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nPING\r\nINFO server\r\n", r.password); err != nil {
		return err
	}
	answer := bufio.NewScanner(conn)
	for _, want := range []string{"+OK", "+PONG"} {
		if !answer.Scan() || answer.Text() != want {
			return fmt.Errorf("redis answered %q instead of %s", answer.Text(), want)
		}
	}
	for answer.Scan() {
		if id, found := strings.CutPrefix(answer.Text(), "process_id:"); found {
			if id != fmt.Sprint(pid) {
				return fmt.Errorf("process %s answers on %s instead of process %d", id, r.address, pid)
			}
			return nil
		}
	}
	return fmt.Errorf("redis did not tell its process id: %w", answer.Err())
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(time.Second))
}

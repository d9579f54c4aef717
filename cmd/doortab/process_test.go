package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startLimit bounds how long a program may take until it serves, with the race detector on a busy machine.
const startLimit = time.Minute

// process is one running doortab.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *output
	stderr *output
	exited chan struct{}
}

// start runs doortab; what still runs at the end of the test is killed.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, self, args...)
}

func startProgram(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...), stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	p.cmd.Env = append(withoutSettings(os.Environ()), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.WaitDelay = 5 * time.Second // a service that survives it must not hold its output open for ever
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the tests read its status
	}()
	t.Cleanup(p.end)
	return p
}

// withoutSettings keeps the environment of whoever runs the tests out of them.
func withoutSettings(env []string) []string {
	var kept []string
	for _, variable := range env {
		if !strings.HasPrefix(variable, "DOORTAB_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (p *process) end() {
	p.kill()
	if text := p.stderr.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") {
		p.t.Errorf("doortab %s has a race or a panic:\n%s", p.cmd.Args[1], text)
	} else if p.t.Failed() {
		p.t.Logf("the end of what doortab %s logged:\n%s", strings.Join(p.cmd.Args[1:], " "), tail(text))
	}
}

func tail(text string) string {
	const most = 4000
	return text[max(0, len(text)-most):]
}

func (p *process) signal(signal os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal %v: %v", signal, err)
	}
}

// kill ends it as a crash would.
func (p *process) kill() {
	p.t.Helper()
	p.signal(os.Kill)
	<-p.exited
}

// status waits for the end and returns the exit status.
func (p *process) status(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		p.t.Fatalf("doortab %s still runs after %s; it logged:\n%s", p.cmd.Args[1], within, tail(p.stderr.String()))
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// command runs doortab to its end.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	status = p.status(startLimit)
	return status, p.stdout.String(), p.stderr.String()
}

// output keeps what a process writes, and may be read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lines are the whole lines so far.
func (o *output) lines() []string {
	lines := strings.Split(o.String(), "\n")
	return lines[:len(lines)-1]
}

// server is a running `doortab serve`.
type server struct {
	*process
	http string
	mqtt string
}

var servingLine = regexp.MustCompile(`msg=Serving\. http=(\S+) mqtt=(\S+)`)

// serve starts `doortab serve` and returns when it is ready.
func (in *installation) serve(args ...string) *server {
	in.t.Helper()
	self, err := os.Executable()
	if err != nil {
		in.t.Fatal(err)
	}
	return in.serveProgram(self, args...)
}

func (in *installation) serveProgram(program string, args ...string) *server {
	in.t.Helper()
	args = append([]string{
		"serve", "--database-dsn=" + in.dsn, "--http-addr=127.0.0.1:0", "--mqtt-listen=127.0.0.1:0", "--database-pool=8",
	}, args...)
	return in.awaitServing(startProgram(in.t, program, args...))
}

// awaitServing returns when a process that was started as `doortab serve` is ready.
func (in *installation) awaitServing(p *process) *server {
	in.t.Helper()
	s := &server{process: p}
	eventually(in.t, startLimit, "serve is ready", func() bool {
		if !s.running() {
			in.t.Fatalf("serve ended with status %d: %s", s.cmd.ProcessState.ExitCode(), s.stderr)
		}
		if s.http == "" {
			if found := servingLine.FindStringSubmatch(s.stderr.String()); found != nil {
				s.http, s.mqtt = found[1], found[2]
			}
		}
		return s.http != "" && in.client.status(s.http+"/readyz") == http.StatusOK
	})
	return s
}

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// during lets time pass while other processes work, and is told apart from waiting for something.
func during(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test ended")
	}
}

// httpClient asks the REST API.
type httpClient struct {
	t     *testing.T
	http  *http.Client
	token string
}

func newHTTPClient(t *testing.T, token string) *httpClient {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &httpClient{t, &http.Client{Transport: transport, Timeout: 30 * time.Second}, token}
}

// trust makes it believe certificates of an authority.
func (c *httpClient) trust(roots *x509.CertPool) {
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
}

// status is a path's HTTP status, 0 where nothing answers.
func (c *httpClient) status(url string) int {
	status, _, err := c.request(http.MethodGet, url, "")
	if err != nil {
		return 0
	}
	return status
}

// get reads an answer into a value.
func (c *httpClient) get(url string, into any) {
	c.t.Helper()
	c.do(http.MethodGet, url, "", http.StatusOK, into)
}

func (c *httpClient) do(method, url, body string, want int, into any) {
	c.t.Helper()
	status, text, err := c.request(method, url, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if status != want {
		c.t.Fatalf("%s %s: status %d, want %d: %s", method, url, status, want, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, url, err, text)
		}
	}
}

func (c *httpClient) request(method, url, body string) (status int, text []byte, err error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprintf("key-%d", time.Now().UnixNano()))
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	var buffer bytes.Buffer
	_, err = buffer.ReadFrom(response.Body)
	return response.StatusCode, buffer.Bytes(), err
}

// list reads every page of a list.
func list[T any](c *httpClient, url string) []T {
	c.t.Helper()
	var all []T
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	for cursor := ""; ; {
		var page struct {
			Items      []T     `json:"items"`
			NextCursor *string `json:"nextCursor"`
		}
		c.get(url+separator+"limit=200&cursor="+cursor, &page)
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		cursor = *page.NextCursor
	}
}

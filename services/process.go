package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killLimit is far more than a killed process needs to vanish; beyond it the kernel itself hangs.
const killLimit = 20 * time.Second

// logTail is how much of a service's log an error quotes.
const logTail = 1500

// ErrNotRunning is returned where a service would have to run.
var ErrNotRunning = errors.New("not running")

var errExited = errors.New("ended before it answered")

// Process is the server process of one service. Its methods may be called from several goroutines; one that changes the
// process waits for another to finish. It can be stopped, killed and started again on the same folder, port and socket for as
// long as its group hasn't been stopped.
type Process struct {
	name    string
	logPath string
	logger  *slog.Logger
	command func() (*exec.Cmd, error)
	answers func(ctx context.Context, pid int) error

	mu      sync.Mutex
	running *running
}

type running struct {
	cmd      *exec.Cmd
	exited   chan struct{}
	logStart int64 // where the log of this run begins
}

// Start runs the process and returns when it answers, within StartLimit. It fails when the process runs already.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive() {
		return fmt.Errorf("start %s: it runs already, as process %d", p.name, p.running.cmd.Process.Pid)
	}
	started := time.Now()
	if err := p.spawn(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := p.awaitAnswer(ctx); err != nil {
		err = fmt.Errorf("start %s: %w; the end of its log %s:\n%s", p.name, err, p.logPath, lastLines(p.log()))
		return errors.Join(err, p.kill())
	}
	p.logger.Info("service started", "service", p.name, "pid", p.running.cmd.Process.Pid, "took", time.Since(started))
	return nil
}

func (p *Process) spawn() error {
	cmd, err := p.command()
	if err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if p.running == nil {
		flags |= os.O_TRUNC // what a former program logged isn't kept
	}
	file, err := os.OpenFile(p.logPath, flags, 0o600)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer file.Close()
	logStart, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("find the end of its log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := &running{cmd: cmd, exited: make(chan struct{}), logStart: logStart}
	go func() {
		defer close(r.exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	p.running = r
	return nil
}

func (p *Process) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := p.running
	go func() {
		select {
		case <-r.exited:
			end(errExited)
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, func(ctx context.Context) error { return p.answers(ctx, r.cmd.Process.Pid) })
	if errors.Is(err, errExited) {
		return errExited
	}
	return err
}

// Stop asks the process to end and waits for it. After StopLimit, or when ctx ends, it is killed, and the error says so.
// Stopping what doesn't run is no error.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, StopLimit)
	defer cancel()
	// A paused process sees the signal only when it goes on.
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.running.exited:
		p.logger.Info("service stopped", "service", p.name)
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop %s: it had to be killed: %w", p.name, context.Cause(ctx)), p.kill())
	}
}

// Kill ends the process by SIGKILL, as a crash would, and returns when it is gone.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kill()
}

func (p *Process) kill() error {
	if !p.alive() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	select {
	case <-p.running.exited:
		return nil
	case <-time.After(killLimit):
		return fmt.Errorf("kill %s: process %d is still there %s later", p.name, p.running.cmd.Process.Pid, killLimit)
	}
}

// Pause stops the process by SIGSTOP, and returns when none of its threads runs any more: its connections stay open and get
// no answer. It returns ErrNotRunning where there is no process.
func (p *Process) Pause() error {
	if err := p.whileRunning("pause", syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	return wrap(poll(ctx, func(context.Context) error { return paused(p.PID()) }), "pause "+p.name)
}

// paused looks at each thread: the kernel stops them one by one.
func paused(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread) //nolint:gosec // of /proc
		if err != nil {
			continue // the thread has ended
		}
		// proc_pid_stat(5): the state follows the name, which is in parentheses and may hold any character.
		if name := bytes.LastIndexByte(stat, ')'); !bytes.HasPrefix(stat[name+1:], []byte(" T")) {
			return fmt.Errorf("thread %s has not stopped", filepath.Base(filepath.Dir(thread)))
		}
	}
	return nil
}

// Continue lets a paused process go on. It returns ErrNotRunning where there is no process.
func (p *Process) Continue() error { return p.whileRunning("continue", syscall.SIGCONT) }

func (p *Process) whileRunning(doing string, signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return fmt.Errorf("%s %s: %w", doing, p.name, ErrNotRunning)
	}
	return wrap(p.signal(signal), doing+" "+p.name)
}

// PID is the id of the running process, 0 where there is none.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive() {
		return 0
	}
	return p.running.cmd.Process.Pid
}

func (p *Process) alive() bool {
	if p.running == nil {
		return false
	}
	select {
	case <-p.running.exited:
		return false
	default:
		return true
	}
}

func (p *Process) signal(signal syscall.Signal) error {
	err := p.running.cmd.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// log is what the present run has written to its log.
func (p *Process) log() string {
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return fmt.Sprintf("(not to be read: %v)", err)
	}
	return string(text[min(p.running.logStart, int64(len(text))):])
}

// lastLines is the end of a log, cut at a line where it is long.
func lastLines(log string) string {
	log = strings.TrimSpace(log)
	if len(log) <= logTail {
		return log
	}
	log = log[len(log)-logTail:]
	if _, whole, found := strings.Cut(log, "\n"); found {
		return whole
	}
	return log
}

// program finds a server program, also where an ordinary user's PATH doesn't look.
func program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s isn't installed: run scripts/setup (or make setup)", name)
}

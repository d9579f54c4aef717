package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyLimit = 30 * time.Second
	endLimit   = 30 * time.Second
)

// process is a worker that consumes events, apart from the one that measures it.
type process struct {
	cmd   *exec.Cmd
	said  *bytes.Buffer // the end of its log
	found [][]string    // what was looked for in its log, with what the parentheses hold
	ended chan struct{}
}

// startProcess runs a program and waits until its log has a line of each kind.
func startProcess(ctx context.Context, program string, lines []*regexp.Regexp, args ...string) (*process, error) {
	p := &process{
		cmd:  exec.Command(program, args...), //nolint:gosec // this program itself
		said: &bytes.Buffer{}, found: make([][]string, len(lines)), ended: make(chan struct{}),
	}
	// A terminal's Ctrl-C is for the benchmark, which ends its workers in order; they end with it where it is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	ready := make(chan struct{})
	go p.follow(log, lines, ready)
	timer := time.NewTimer(readyLimit)
	defer timer.Stop()
	select {
	case <-ready:
		return p, nil
	case <-timer.C:
		err = fmt.Errorf("not ready within %s", readyLimit)
	case <-p.ended:
		err = errors.New("it ended")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, fmt.Errorf("start %s: %w: %s", args[0], err, p.kill())
}

const keptLog = 4 << 10

// follow reads the log to its end, which is the process's. It writes p.found until ready is closed.
func (p *process) follow(log io.Reader, lines []*regexp.Regexp, ready chan<- struct{}) {
	defer close(p.ended)
	missing := len(lines)
	scanner := bufio.NewScanner(log)
	for scanner.Scan() {
		for i, line := range lines {
			if missing == 0 || p.found[i] != nil {
				continue
			}
			if p.found[i] = line.FindStringSubmatch(scanner.Text()); p.found[i] == nil {
				continue
			}
			if missing--; missing == 0 {
				close(ready)
			}
		}
		p.said.WriteString(scanner.Text() + "\n")
		p.said.Next(max(0, p.said.Len()-keptLog))
	}
	_ = p.cmd.Wait() // how it ended is in its log
}

// kill returns the end of the log.
func (p *process) kill() string {
	_ = p.cmd.Process.Kill()
	<-p.ended
	return p.said.String()
}

// stop asks the process to end.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(endLimit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		return fmt.Errorf("%s had to be killed: %s", p.cmd.Args[1], p.kill())
	}
	if status := p.cmd.ProcessState.ExitCode(); status != 0 {
		return fmt.Errorf("%s ended with status %d: %s", p.cmd.Args[1], status, p.said)
	}
	return nil
}

// resident is the memory that the process occupies now, and the most that it did, in bytes: VmRSS and VmHWM of proc_pid_status(5).
func (p *process) resident() (now, most int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("memory of %s: %w", p.cmd.Args[1], err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			most = kib << 10
		}
	}
	return now, most, nil
}

// sample watches the memory of the process until what it returns is called, which gives the most MiB that was seen.
func (p *process) sample(every time.Duration) func() (mostMiB float64, err error) {
	var most int64
	var failed error
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for failed == nil {
			var now int64
			now, _, failed = p.resident()
			most = max(most, now)
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() (float64, error) {
		close(stop)
		<-stopped
		return mib(most), failed
	}
}

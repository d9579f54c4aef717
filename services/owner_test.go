package services_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"doortab/services"
	"doortab/services/servicestest"
)

// ownerVariable makes the test program run services, in the folder that it holds, until it is killed or its input ends.
const ownerVariable = "DOORTAB_TEST_OWNER"

func own(dir string) {
	g, err := services.Start(context.Background(), all(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(g.Dir())
	fmt.Println(g.MariaDB.DSN(""))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := g.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type owner struct {
	cmd      *osexec.Cmd
	end      func() error
	lines    *bufio.Scanner
	dir, dsn string
}

func launchOwner(t *testing.T, dir string, change func(*osexec.Cmd)) *owner {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), ownerVariable+"="+dir)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	change(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &owner{cmd: cmd, end: input.Close, lines: bufio.NewScanner(output)}
}

// startOwner returns when its services run.
func startOwner(t *testing.T, dir string, change func(*osexec.Cmd)) *owner {
	t.Helper()
	o := launchOwner(t, dir, change)
	for _, line := range []*string{&o.dir, &o.dsn} {
		if !o.lines.Scan() {
			t.Fatal("the owner of the services did not start")
		}
		*line = o.lines.Text()
	}
	return o
}

func (o *owner) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.cmd.Wait()
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		case <-ticker.C:
		}
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return os.IsNotExist(err)
}

func unchanged(*osexec.Cmd) {}

func TestKilledOwnerLeavesNothing(t *testing.T) {
	t.Parallel()
	o := startOwner(t, "", unchanged)
	if got := len(running(t, o.dir)); got != 3 {
		t.Fatalf("%d services run, want 3", got)
	}
	o.kill(t)
	eventually(t, "the temporary folder is gone", func() bool { return missing(o.dir) })
	wantGone(t, o.dir)
}

func TestKilledOwnersFolderServesTheNextStart(t *testing.T) {
	t.Parallel()
	o := startOwner(t, t.TempDir(), unchanged)
	exec(t, openDSN(t, o.dsn), "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (7)")
	o.kill(t)
	g := servicestest.Start(t, all(o.dir)) // at once: it waits for what is still ending
	if got := number(t, open(t, g.MariaDB), "SELECT a FROM d.t"); got != 7 {
		t.Errorf("the row is %d after the owner was killed", got)
	}
	if got := len(running(t, o.dir)); got != 3 {
		t.Errorf("%d services run in the folder, want 3", got)
	}
}

func TestOwnerKilledDuringTheFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := launchOwner(t, dir, unchanged)
	unfinished := filepath.Join(dir, "mariadb", "data.unfinished", "ibdata1")
	eventually(t, "the data folder is being made", func() bool { return !missing(unfinished) })
	o.kill(t)
	g := servicestest.Start(t, all(dir))
	exec(t, open(t, g.MariaDB), "DO 1")
	if got := len(running(t, dir)); got != 3 {
		t.Errorf("%d services run in the folder, want 3", got)
	}
}

func TestServicesThatOutlivedOwnerAndWatchdogAreEnded(t *testing.T) {
	t.Parallel()
	o := startOwner(t, t.TempDir(), unchanged)
	former := running(t, o.dir)
	kill(t, watchdogOf(t, o.dir))
	o.kill(t)
	if got := running(t, o.dir); len(got) != 3 {
		t.Fatalf("services without owner and watchdog: %v", got)
	}
	g := servicestest.Start(t, all(o.dir))
	exec(t, open(t, g.MariaDB), "DO 1")
	now := strings.Join(running(t, o.dir), "\n")
	for _, process := range former {
		if strings.Contains(now, process) {
			t.Errorf("%s still runs", process)
		}
	}
}

// watchdogOf finds the process by its arguments; sh has the script, a name and the folder.
func watchdogOf(t *testing.T, dir string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		var pid int
		if err == nil && strings.HasSuffix(string(text), "\x00doortab-watchdog\x00"+dir+"\x00") {
			if _, err := fmt.Sscanf(line, "/proc/%d/", &pid); err == nil {
				return pid
			}
		}
	}
	t.Fatal("no watchdog for", dir)
	return 0
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	change := unchanged // an ordinary user runs it as it is
	if os.Getuid() == 0 {
		change = func(cmd *osexec.Cmd) {
			// The test program lies where only root may look.
			cmd.Path = openCopy(t, os.Args[0])
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
	}
	o := startOwner(t, "", change)
	if got := len(running(t, o.dir)); got != 3 {
		t.Errorf("%d services run, want 3", got)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Wait(); err != nil {
		t.Error(err)
	}
	wantGone(t, o.dir)
}

func openCopy(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "doortab-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

package services

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed watchdog.sh
var watchdogScript string

// socketPathLimit is what fits into sockaddr_un on Linux (108 bytes with the closing zero).
const socketPathLimit = 107

// formerOwnerLimit covers the watchdog of a killed program: it gives the services 30 s to end and 10 s more to die.
const formerOwnerLimit = 45 * time.Second

// folder is the place of one group, locked against every other. Two locks tell two cases apart: owner.lock is held by the
// program alone, so that it is free the moment the program dies; services.lock is held by the watchdog too, so that it is
// free when nothing of a killed program runs any more.
type folder struct {
	dir       string   // absolute, without symbolic links
	sockets   string   // folder for unix sockets; dir, or a temporary one where dir is too long for them
	temporary []string // folders to remove at the end

	ownerLock, servicesLock *os.File
	watchdog                *exec.Cmd
	alive                   io.WriteCloser // the watchdog's standard input
}

func openFolder(ctx context.Context, dir string) (*folder, error) {
	f := &folder{}
	if err := f.open(ctx, dir); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *folder) open(ctx context.Context, dir string) error {
	given := dir != ""
	if err := f.makeDir(dir); err != nil {
		return err
	}
	if err := f.lock(ctx); err != nil {
		return err
	}
	if err := f.makeSockets(); err != nil {
		return err
	}
	if given {
		if err := f.endFormer(ctx); err != nil {
			return err
		}
	}
	return f.startWatchdog(ctx)
}

func (f *folder) makeDir(dir string) error {
	if dir == "" {
		temporary, err := f.makeTemporary(os.TempDir())
		if err != nil {
			return err
		}
		dir = temporary
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the services: %w", err)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find the folder of the services: %w", err)
	}
	f.dir, err = filepath.EvalSymlinks(absolute)
	if err != nil {
		return fmt.Errorf("find the folder of the services: %w", err)
	}
	return nil
}

// makeSockets takes the folder itself for sockets where a socket's name fits, with room for what MariaDB puts behind it.
func (f *folder) makeSockets() error {
	f.sockets = f.dir
	if len(f.dir)+len("/mariadb/mariadb.sock.lock") <= socketPathLimit {
		return nil
	}
	var err error
	f.sockets, err = f.makeTemporary("/tmp") // TMPDIR may be as long as the folder
	return err
}

func (f *folder) makeTemporary(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "doortab-")
	if err != nil {
		return "", fmt.Errorf("make a temporary folder for the services: %w", err)
	}
	f.temporary = append(f.temporary, dir)
	return dir, nil
}

func (f *folder) lock(ctx context.Context) error {
	var err error
	if f.ownerLock, err = openLock(f.dir, "owner.lock"); err != nil {
		return err
	}
	if err := flock(f.ownerLock); err != nil {
		return fmt.Errorf("%s is in use by process %s: stop that first, or take another folder: %w", f.dir, content(f.ownerLock, 20), err)
	}
	if err := errors.Join(f.ownerLock.Truncate(0), writeAt(f.ownerLock, fmt.Sprint(os.Getpid()))); err != nil {
		return fmt.Errorf("write the lock of %s: %w", f.dir, err)
	}
	if f.servicesLock, err = openLock(f.dir, "services.lock"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, formerOwnerLimit)
	defer cancel()
	err = poll(ctx, func(context.Context) error { return flock(f.servicesLock) })
	if err != nil {
		return fmt.Errorf("%s is still kept by the services of a program that was killed: %w", f.dir, err)
	}
	return nil
}

func openLock(dir, name string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the folder is the caller's choice
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s (it must be yours to write): %w", dir, err)
	}
	return file, nil
}

func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// content is the last part of a file, at most limit bytes.
func content(file *os.File, limit int64) string {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Sprintf("(not to be read: %v)", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, size-limit), limit))
	if err != nil {
		return fmt.Sprintf("(not to be read: %v)", err)
	}
	return string(text)
}

// endFormer ends what runs on in the folder after a kill of both the program and its watchdog: another watchdog whose owner is
// gone from the start.
func (f *folder) endFormer(ctx context.Context) error {
	cmd := watchdogCommand(ctx, f.dir)
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("end the former services of %s (ps shows which still run in it): %w", f.dir, err)
	}
	return nil
}

// watchdogCommand makes a session of its own, so that no terminal and no signal to the program's group reaches it.
func watchdogCommand(ctx context.Context, arguments ...string) *exec.Cmd {
	arguments = append([]string{"-c", watchdogScript, "doortab-watchdog"}, arguments...)
	cmd := exec.CommandContext(ctx, "/bin/sh", arguments...) //nolint:gosec // the script is embedded
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// startWatchdog runs it for longer than the context that bounds the start.
func (f *folder) startWatchdog(ctx context.Context) error {
	cmd := watchdogCommand(context.WithoutCancel(ctx), append([]string{f.dir}, f.temporary...)...)
	cmd.ExtraFiles = []*os.File{f.servicesLock}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	f.watchdog, f.alive = cmd, alive
	return nil
}

// close sends the watchdog home, removes what is temporary and frees the folder. The locks come last: until then no other
// start may use what is being removed.
func (f *folder) close() error {
	var errs []error
	if f.watchdog != nil {
		_, err := io.WriteString(f.alive, "done\n")
		errs = append(errs, wrap(err, "tell the watchdog of the services"), wrap(f.watchdog.Wait(), "end the watchdog of the services"))
		f.watchdog = nil
	}
	for _, dir := range f.temporary {
		errs = append(errs, wrap(os.RemoveAll(dir), "remove the folder of the services"))
	}
	f.temporary = nil
	for _, lock := range []**os.File{&f.servicesLock, &f.ownerLock} {
		if *lock != nil {
			errs = append(errs, wrap((*lock).Close(), "free the folder of the services"))
			*lock = nil
		}
	}
	return errors.Join(errs...)
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// poll calls done until it returns nil, about 50 times a second at most, and returns its last error once ctx has ended.
func poll(ctx context.Context, done func(context.Context) error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// subfolder makes a folder that only this user may enter, whatever the mode of the folder above: MariaDB asks for no password.
func subfolder(in, name string) (string, error) {
	dir := filepath.Join(in, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a service's folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder
		return "", fmt.Errorf("close a service's folder to other users: %w", err)
	}
	return dir, nil
}

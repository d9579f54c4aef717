package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"doortab/database"
	"doortab/fleet"
)

type mosquittoCommand struct {
	Passwords mosquittoPasswords `cmd:"" help:"Write Mosquitto's password file from the cabinets' secrets, and have it read."`
}

type mosquittoPasswords struct {
	databaseFlags
	File    string        `required:"" placeholder:"FILE" help:"The password_file of the cabinets' listener."`
	PIDFile string        `name:"pid-file" placeholder:"FILE" help:"Mosquitto's pid_file: it gets a SIGHUP after a change. None without it."`
	Every   time.Duration `min:"0s" max:"24h" help:"Look for changes again and again, such as 10s; once where it is 0."`
}

// Run is called by the command line.
func (m *mosquittoPasswords) Run(ctx context.Context, c *console) error {
	log := m.logger(c)
	db, err := database.Open(database.Config{DSN: m.DatabaseDSN, Pool: 1, Logger: log})
	if err != nil {
		return err
	}
	p := passwordFile{registry: fleet.NewRegistry(db), file: m.File, pidFile: m.PIDFile, log: log, unread: true}
	err = p.sync(ctx)
	if m.Every > 0 {
		p.follow(ctx, m.Every, err)
		err = nil
	}
	return errors.Join(err, db.Close())
}

// passwordFile keeps a password file of Mosquitto equal to the database.
type passwordFile struct {
	registry      *fleet.Registry
	file, pidFile string
	log           *slog.Logger
	// unread: Mosquitto may not have read what the file holds. It is so at the start, since the one before may have been
	// killed in between.
	unread bool
}

// follow works until ctx ends. Without the database the file stays as it is: known secrets stay good.
func (p *passwordFile) follow(ctx context.Context, every time.Duration, err error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err != nil && ctx.Err() == nil {
			p.log.Warn("Mosquitto may not know the cabinets' present secrets; trying again.", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err = p.sync(ctx)
		}
	}
}

func (p *passwordFile) sync(ctx context.Context) error {
	var text bytes.Buffer
	if err := p.registry.WriteMosquittoPasswords(ctx, &text); err != nil {
		return err
	}
	present, err := os.ReadFile(p.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the password file: %w", err)
	}
	if err != nil || !bytes.Equal(present, text.Bytes()) {
		if err := replaceFile(p.file, text.Bytes()); err != nil {
			return fmt.Errorf("write the password file: %w", err)
		}
		p.unread = true
		p.log.Info("Password file was written.", "file", p.file, "cabinets", bytes.Count(text.Bytes(), []byte("\n")))
	}
	if !p.unread || p.pidFile == "" {
		return nil
	}
	if err := reloadMosquitto(p.pidFile); err != nil {
		return fmt.Errorf("have Mosquitto read the password file: %w", err)
	}
	p.unread = false
	return nil
}

// awaitsHangup matches proc_pid_status(5) of a mosquitto that catches SIGHUP, the lowest bit of SigCgt.
var awaitsHangup = regexp.MustCompile(`(?s)^Name:\tmosquitto\n.*\nSigCgt:\t[0-9a-f]+[13579bdf]\n`)

// replaceFile puts a whole file in the place of another, so that no reader sees half of one. The group may read it.
func replaceFile(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".passwords-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(0o640), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// reloadMosquitto sends a SIGHUP. It looks at the process first: after a crash the file may name another's, and one that has
// just been started doesn't know the signal yet and would end by it.
func reloadMosquitto(pidFile string) error {
	text, err := os.ReadFile(pidFile) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("%s holds no process id", pidFile)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || !awaitsHangup.Match(status) {
		return fmt.Errorf("process %d of %s isn't a mosquitto that has started", pid, pidFile)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("signal process %d (run this command as the user that Mosquitto runs as): %w", pid, err)
	}
	return nil
}

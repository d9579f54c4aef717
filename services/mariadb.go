package services

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// MariaDBOptions chooses the size of a private MariaDB. Its durability isn't to be chosen: every commit is on disk before it
// is answered.
type MariaDBOptions struct {
	// BufferPoolMiB is the memory for pages; 0 means 128.
	BufferPoolMiB int
	// LogMiB is the size of the redo log; 0 means 64, and 8 is the least that every server takes.
	LogMiB int
	// Program is the server program to run; empty means the mariadbd that is installed. It may be a MySQL server.
	Program string
	// Arguments are added to the server's command line and win over what is there.
	Arguments []string
}

// MariaDB is a private database server on a unix socket, without network and without a password: its folder is closed to
// other users.
type MariaDB struct {
	Process

	options MariaDBOptions
	folder  *folder
	dir     string
	socket  string
	isMySQL bool
}

func newMariaDB(f *folder, o MariaDBOptions, logger *slog.Logger) *MariaDB {
	if o.BufferPoolMiB == 0 {
		o.BufferPoolMiB = 128
	}
	if o.LogMiB == 0 {
		o.LogMiB = 64
	}
	m := &MariaDB{options: o, folder: f}
	m.Process = Process{
		name: "mariadb", logPath: filepath.Join(f.dir, "mariadb.log"), logger: logger,
		command: m.serverCommand, answers: m.ping,
	}
	return m
}

// DSN is the address of a database in go-sql-driver's form, with all rights: root@unix(/path/mariadb.sock)/name. The name may be
// empty. It holds no further settings; those that correctness needs are set where the database is opened.
func (m *MariaDB) DSN(database string) string {
	c := m.config()
	c.DBName = database
	return c.FormatDSN()
}

func (m *MariaDB) config() *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = "root", "unix", m.socket
	return c
}

func (m *MariaDB) create(ctx context.Context) error {
	if err := m.prepare(ctx); err != nil {
		return fmt.Errorf("prepare mariadb: %w", err)
	}
	return m.Start(ctx)
}

func (m *MariaDB) prepare(ctx context.Context) error {
	var err error
	if m.dir, err = subfolder(m.folder.dir, "mariadb"); err != nil {
		return err
	}
	if _, err = subfolder(m.dir, "tmp"); err != nil {
		return err
	}
	socketDir, err := subfolder(m.folder.sockets, "mariadb")
	if err != nil {
		return err
	}
	m.socket = filepath.Join(socketDir, "mariadb.sock")
	if err := m.findProgram(ctx); err != nil {
		return err
	}
	_, err = os.Stat(m.dataDir())
	if errors.Is(err, os.ErrNotExist) {
		return m.initialize(ctx)
	}
	return err
}

func (m *MariaDB) findProgram(ctx context.Context) error {
	if m.options.Program == "" {
		var err error
		m.options.Program, err = program("mariadbd")
		return err
	}
	version, err := exec.CommandContext(ctx, m.options.Program, "--version").Output() //nolint:gosec // the caller's choice
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", m.options.Program, err)
	}
	m.isMySQL = !strings.Contains(string(version), "MariaDB")
	return nil
}

func (m *MariaDB) dataDir() string { return filepath.Join(m.dir, "data") }

// initialize makes the system tables beside the place of the data folder, so that a broken attempt leaves none that looks whole.
func (m *MariaDB) initialize(ctx context.Context) error {
	unfinished := filepath.Join(m.dir, "data.unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove a broken start: %w", err)
	}
	cmd, err := m.initCommand(unfinished)
	if err != nil {
		return err
	}
	output, err := m.runToEnd(ctx, cmd)
	if err != nil {
		return fmt.Errorf("make the data folder: %w; its last words:\n%s", err, output)
	}
	return os.Rename(unfinished, m.dataDir())
}

func (m *MariaDB) initCommand(dataDir string) (*exec.Cmd, error) {
	arguments := append(m.commonArguments(), "--datadir="+dataDir)
	install := m.options.Program
	if m.isMySQL {
		arguments = append(arguments, "--initialize-insecure")
	} else {
		var err error
		if install, err = program("mariadb-install-db"); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--auth-root-authentication-method=normal", "--skip-test-db")
	}
	return m.ownTemporary(exec.Command(install, arguments...)), nil //nolint:gosec // found by name, or see Program
}

// runToEnd kills the command's whole group when ctx ends, since mariadb-install-db is a script with children. Its standard
// error is a log of its own, by which the watchdog knows what it may kill at once.
func (m *MariaDB) runToEnd(ctx context.Context, cmd *exec.Cmd) (output string, err error) {
	log, err := os.OpenFile(filepath.Join(m.folder.dir, "mariadb.unfinished.log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stopKill := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err = cmd.Wait()
	stopKill()
	if err == nil {
		return "", nil
	}
	return lastLines(content(log, logTail)), errors.Join(err, context.Cause(ctx))
}

func (m *MariaDB) commonArguments() []string {
	arguments := []string{
		"--no-defaults", // must come first
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", m.options.BufferPoolMiB),
		"--skip-log-bin",
	}
	if os.Geteuid() == 0 {
		// Not --user: mariadb-install-db would take it as an order to chown, and stumbles there over a path with a blank.
		arguments = append(arguments, "-uroot")
	}
	if m.isMySQL {
		return append(arguments, fmt.Sprintf("--innodb-redo-log-capacity=%dM", m.options.LogMiB))
	}
	return append(arguments, fmt.Sprintf("--innodb-log-file-size=%dM", m.options.LogMiB))
}

func (m *MariaDB) serverCommand() (*exec.Cmd, error) {
	arguments := append(m.commonArguments(),
		"--datadir="+m.dataDir(),
		"--socket="+m.socket,
		"--pid-file="+filepath.Join(m.dir, "mariadb.pid"),
		"--skip-networking",
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-doublewrite=ON",
		"--innodb-buffer-pool-dump-at-shutdown=OFF",
		"--character-set-server=utf8mb4",
		"--max-connections=500",
		"--performance-schema=OFF",
		"--local-infile=OFF",
		"--secure-file-priv="+filepath.Join(m.dir, "tmp"),
	)
	if m.isMySQL {
		arguments = append(arguments, "--mysqlx=OFF")
	}
	arguments = append(arguments, m.options.Arguments...)
	return m.ownTemporary(exec.Command(m.options.Program, arguments...)), nil //nolint:gosec // see Program
}

// ownTemporary gives the server a folder of its own for temporary tables: one that starts removes those of all others that
// share it. By the environment, since mariadb-install-db breaks an option in two at a blank.
func (m *MariaDB) ownTemporary(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(m.dir, "tmp"))
	return cmd
}

func (m *MariaDB) ping(ctx context.Context, _ int) error {
	config := m.config()
	config.Logger = &mysql.NopLogger{} // that it doesn't answer yet is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return db.PingContext(ctx)
}

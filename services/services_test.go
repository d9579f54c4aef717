package services_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"doortab/services"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) {
	if dir, isOwner := os.LookupEnv(ownerVariable); isOwner {
		own(dir)
	}
	servicestest.Main(m)
}

func all(dir string) services.Options {
	return services.Options{
		Dir: dir, MariaDB: servicestest.Small(), Redis: &services.RedisOptions{AppendOnly: true}, Mosquitto: &services.MosquittoOptions{},
	}
}

// running lists the processes whose standard error is a log file of the folder.
func running(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/2")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, dir+"/") {
			found = append(found, link+" "+target)
		}
	}
	return found
}

func wantGone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder %s is left: %v", dir, err)
	}
	if left := running(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func open(t *testing.T, m *services.MariaDB) *sql.DB {
	t.Helper()
	return openDSN(t, m.DSN(""))
}

// openDSN keeps the driver from printing that a server is gone that a test has stopped.
func openDSN(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func redis(t *testing.T, r *services.Redis, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	password := strings.TrimSuffix(strings.TrimPrefix(r.URL(), "redis://:"), "@"+r.Address()+"/0")
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\n%s\r\n", password, command); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Scan() // of AUTH
	lines.Scan()
	return lines.Text()
}

func TestGroupAnswersAndLeavesNothing(t *testing.T) {
	t.Parallel()
	g, err := services.Start(t.Context(), all(""))
	if err != nil {
		t.Fatal(err)
	}
	dir := g.Dir()
	if got := number(t, open(t, g.MariaDB), "SELECT @@innodb_flush_log_at_trx_commit"); got != 1 {
		t.Errorf("innodb_flush_log_at_trx_commit = %d, want 1", got)
	}
	if got := redis(t, g.Redis, "SET a 1"); got != "+OK" {
		t.Errorf("redis answered %q", got)
	}
	if got := len(running(t, dir)); got != 3 {
		t.Errorf("%d services run, want 3", got)
	}
	for range 2 { // the second does nothing
		if err := g.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantGone(t, dir)
}

func TestServicesRunInGroupsOfTheirOwn(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}})
	group, err := syscall.Getpgid(g.Redis.PID())
	if err != nil || group == syscall.Getpgrp() {
		t.Errorf("redis is in process group %d, the program in %d (%v)", group, syscall.Getpgrp(), err)
	}
}

func TestTwoGroupsSideBySide(t *testing.T) {
	t.Parallel()
	one, two := servicestest.Start(t, all("")), servicestest.Start(t, all(""))
	exec(t, open(t, one.MariaDB), "CREATE DATABASE mine")
	if got := number(t, open(t, two.MariaDB), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='mine'"); got != 0 {
		t.Error("both groups see the same database")
	}
	if one.Redis.URL() == two.Redis.URL() || one.Mosquitto.URL() == two.Mosquitto.URL() {
		t.Errorf("shared addresses: %s, %s", one.Redis.Address(), one.Mosquitto.Address())
	}
}

func TestFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, services.Options{Dir: t.TempDir(), Redis: &services.RedisOptions{}})
	_, err := services.Start(t.Context(), services.Options{Dir: g.Dir(), Redis: &services.RedisOptions{}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("second start in one folder: %v", err)
	}
	if got := redis(t, g.Redis, "PING"); got != "+PONG" {
		t.Errorf("the first group answers %q after that", got)
	}
}

func TestGivenFolderServesTheNextStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "folder with 'blanks' & ümlauts")
	g, err := services.Start(t.Context(), all(dir))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, open(t, g.MariaDB), "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (7)")
	redis(t, g.Redis, "SET a 1")
	if err := g.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	g = servicestest.Start(t, all(dir))
	if got := number(t, open(t, g.MariaDB), "SELECT a FROM d.t"); got != 7 {
		t.Errorf("the row is %d after the next start", got)
	}
	if got := redis(t, g.Redis, "GET a"); got != "$1" {
		t.Errorf("redis answers %q after the next start", got)
	}
}

func TestLongFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	g, err := services.Start(t.Context(), all(dir))
	if err != nil {
		t.Fatal(err)
	}
	config, err := mysql.ParseDSN(g.MariaDB.DSN("d"))
	if err != nil || config.DBName != "d" {
		t.Fatalf("DSN %s: %v", g.MariaDB.DSN("d"), err)
	}
	exec(t, open(t, g.MariaDB), "CREATE DATABASE d")
	if err := g.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Dir(filepath.Dir(config.Addr)))
	if _, err := os.Stat(filepath.Join(dir, "mariadb", "data")); err != nil {
		t.Errorf("the given folder is gone: %v", err)
	}
}

func TestKilledServiceStartsAgainWithWhatWasCommitted(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, all(""))
	db := open(t, g.MariaDB)
	exec(t, db, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1)")
	dsn, redisURL, broker := g.MariaDB.DSN("d"), g.Redis.URL(), g.Mosquitto.URL()
	for name, p := range map[string]*services.Process{
		"mariadb": &g.MariaDB.Process, "redis": &g.Redis.Process, "mosquitto": &g.Mosquitto.Process,
	} {
		if err := p.Kill(); err != nil {
			t.Fatal(name, err)
		}
		if err := p.Pause(); p.PID() != 0 || !errors.Is(err, services.ErrNotRunning) {
			t.Errorf("%s runs as %d after Kill; Pause: %v", name, p.PID(), err)
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(name, err)
		}
		if err := p.Start(t.Context()); err == nil {
			t.Errorf("%s was started twice", name)
		}
	}
	if g.MariaDB.DSN("d") != dsn || g.Redis.URL() != redisURL || g.Mosquitto.URL() != broker {
		t.Error("an address changed")
	}
	if got := number(t, db, "SELECT COUNT(*) FROM d.t"); got != 1 {
		t.Errorf("%d rows after the kill, want 1", got)
	}
}

func TestPausedServiceGivesNoAnswerAndCanBeStopped(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()})
	db := open(t, g.MariaDB)
	exec(t, db, "DO 1")
	if err := g.MariaDB.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answered: %v", err)
	}
	if err := g.MariaDB.Continue(); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "DO 1")
	if err := errors.Join(g.MariaDB.Pause(), g.MariaDB.Stop(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestServiceThatCannotStart(t *testing.T) {
	refusing := &services.MariaDBOptions{Arguments: []string{"--no-such-option"}}
	tests := map[string]struct {
		options services.Options
		want    string
	}{
		"mariadb quotes its log": {services.Options{MariaDB: refusing}, "no-such-option"},
		"mosquitto quotes its log": {
			services.Options{Mosquitto: &services.MosquittoOptions{Lines: []string{"no_such_option 1"}}}, "no_such_option",
		},
		"a missing program is named":      {services.Options{MariaDB: &services.MariaDBOptions{Program: "/nowhere/mysqld"}}, "/nowhere/mysqld"},
		"a folder that can't be made":     {services.Options{Dir: "/dev/null/x", Redis: &services.RedisOptions{}}, "/dev/null"},
		"one failure stops the other two": {services.Options{Redis: &services.RedisOptions{}, MariaDB: refusing}, "no-such-option"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			_, err := services.Start(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to name %s", err, test.want)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("temporary folders are left: %v (%v)", left, err)
			}
		})
	}
}

func TestMissingProgramNamesTheSetup(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	_, err := services.Start(t.Context(), services.Options{Redis: &services.RedisOptions{}})
	if err == nil || !strings.Contains(err.Error(), "make setup") {
		t.Errorf("error %v, want it to name make setup", err)
	}
}

func TestMosquittoKnowsItsUsers(t *testing.T) {
	t.Parallel()
	g := servicestest.Start(t, services.Options{Mosquitto: &services.MosquittoOptions{
		Users: map[string]string{"1001": "secret", "1002": "other"}, ACL: "pattern readwrite cabinets/%u/#\n",
	}})
	tests := map[string]struct {
		user, password string
		want           byte // the return code of CONNACK: 0 accepted, 5 not authorized
	}{
		"right password":     {"1001", "secret", 0},
		"another's password": {"1001", "other", 5},
		"unknown user":       {"1003", "secret", 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := connect(t, g.Mosquitto, test.user, test.password); got != test.want {
				t.Errorf("return code %d, want %d", got, test.want)
			}
		})
	}
}

func connect(t *testing.T, m *services.Mosquitto, user, password string) byte {
	t.Helper()
	conn, err := net.Dial("tcp", m.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	text := func(s string) []byte { return append([]byte{0, byte(len(s))}, s...) }
	body := slices.Concat(text("MQTT"), []byte{4, 0xc2, 0, 10}, text(""), text(user), text(password))
	if _, err := conn.Write(append([]byte{0x10, byte(len(body))}, body...)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return answer[3]
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	dir := t.TempDir()
	if _, err := services.Start(ctx, all(dir)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline", err)
	}
	if left := running(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

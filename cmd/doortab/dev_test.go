package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"doortab/database/databasetest"
	"doortab/simulator"
	"doortab/simulator/physical"
)

// devRun is a running `doortab dev`.
type devRun struct {
	*process
	ready devReady
}

// dev starts `doortab dev` with a small fleet and returns when its first line is there.
func dev(t *testing.T, args ...string) *devRun {
	t.Helper()
	d := &devRun{process: start(t, append([]string{"dev", "--cabinets=10", "--rate=40"}, args...)...)}
	eventually(t, 2*startLimit, "dev prints its first line", func() bool {
		if !d.running() {
			t.Fatalf("dev ended with status %d: %s", d.cmd.ProcessState.ExitCode(), d.stderr)
		}
		return len(d.stdout.lines()) > 0
	})
	if err := json.Unmarshal([]byte(d.stdout.lines()[0]), &d.ready); err != nil {
		t.Fatalf("first line %q: %v", d.stdout.lines()[0], err)
	}
	return d
}

var lastLine = regexp.MustCompile(`^published (\d+) settled (\d+) duplicates (\d+) review (\d+) lost (\d+) doubled (\d+) drift (\d+)$`)

// summary is the last line in numbers.
type summary struct{ published, settled, duplicates, review, lost, doubled, drift int }

// summary waits for the end and reads the last line.
func (d *devRun) summary(wantStatus int) (s summary) {
	d.t.Helper()
	status := d.status(2 * time.Minute)
	lines := d.stdout.lines()
	last := lines[len(lines)-1]
	if status != wantStatus {
		d.t.Fatalf("exit status %d, want %d; it printed:\n%s\n%s", status, wantStatus, tail(d.stdout.String()), tail(d.stderr.String()))
	}
	if !lastLine.MatchString(last) {
		d.t.Fatalf("last line %q, want the summary", last)
	}
	_, err := fmt.Sscanf(last, "published %d settled %d duplicates %d review %d lost %d doubled %d drift %d",
		&s.published, &s.settled, &s.duplicates, &s.review, &s.lost, &s.doubled, &s.drift)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *devRun) database() *sql.DB { return databasetest.Open(d.t, d.ready.DSN).SQL() }

// folder is where its services run.
func (d *devRun) folder() string {
	d.t.Helper()
	found := regexp.MustCompile(`unix\((.+)/mariadb/mariadb\.sock\)`).FindStringSubmatch(d.ready.DSN)
	if found == nil {
		d.t.Fatalf("no socket in %s", d.ready.DSN)
	}
	return found[1]
}

// services are the processes that log into dev's folder.
func (d *devRun) services() (pids []string) {
	d.t.Helper()
	outputs, err := filepath.Glob("/proc/[0-9]*/fd/2")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, output := range outputs {
		if target, err := os.Readlink(output); err == nil && strings.HasPrefix(target, d.folder()+"/") {
			pids = append(pids, strings.Split(output, "/")[2])
		}
	}
	return pids
}

func (d *devRun) nothingLeft() {
	d.t.Helper()
	eventually(d.t, time.Minute, "no process and no folder is left", func() bool {
		_, err := os.Stat(d.folder())
		return len(d.services()) == 0 && os.IsNotExist(err)
	})
}

// The whole of it: ready at the first line, faults of every kind, nothing lost, nothing left behind.
func TestDev(t *testing.T) {
	t.Parallel()
	d := dev(t, "--duration="+short(10*time.Second, 3*time.Second).String())
	client := newHTTPClient(t, d.ready.AdminToken)
	for _, path := range []string{"/readyz", "/v1/tokens", "/docs", "/openapi.json", "/metrics"} {
		if status := client.status(d.ready.HTTP + path); status != 200 {
			t.Errorf("%s answers %d at the first line, want 200", path, status)
		}
	}
	if !strings.HasPrefix(d.ready.MQTT, "tcp://127.0.0.1:") || !strings.HasPrefix(d.ready.Redis, "redis://") {
		t.Errorf("first line %+v", d.ready)
	}
	if len(d.services()) != 2 {
		t.Errorf("%d services, want MariaDB and Redis", len(d.services()))
	}
	s := d.summary(0)
	if s.lost+s.doubled+s.drift != 0 || s.settled == 0 || s.published < s.settled+s.review {
		t.Errorf("summary %+v", s)
	}
	for _, fault := range simulator.Kinds() {
		if !regexp.MustCompile(`(?m)^fault `+string(fault)+` +[1-9]`).MatchString(d.stdout.String()) && !testing.Short() {
			t.Errorf("fault %q is missing in the summary or 0", fault)
		}
	}
	for _, kind := range physical.Kinds {
		if !regexp.MustCompile(`(?m)^` + string(kind) + ` +[1-9]\d* +[1-9]\d* +[1-9]`).MatchString(d.stdout.String()) {
			t.Errorf("no line for cabinets of kind %s with doors and orders", kind)
		}
	}
	if !regexp.MustCompile(`stock-takes [1-9]\d* decisions [1-9]`).MatchString(d.stdout.String()) && !testing.Short() {
		t.Error("staff took no stock, or an operator decided no review")
	}
	d.nothingLeft()
	if text := d.stderr.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("dev logged errors:\n%s", text)
	}
}

func TestDevInterrupted(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		signal syscall.Signal
		lines  int // printed before the signal
	}{
		{"as soon as it is ready", syscall.SIGINT, 1},
		{"at work", syscall.SIGINT, 5},
		{"terminated", syscall.SIGTERM, 5},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := dev(t)
			eventually(t, 30*time.Second, "the fleet works", func() bool { return len(d.stdout.lines()) >= c.lines })
			began := time.Now()
			d.signal(c.signal)
			s := d.summary(0)
			t.Logf("ended in %s: %+v", time.Since(began).Round(time.Millisecond), s)
			d.nothingLeft()
		})
	}
}

// A fleet of which shoppers want far more than it can do ends like any other.
func TestDevInterruptedUnderLoad(t *testing.T) {
	t.Parallel()
	d := dev(t, "--rate=100000")
	eventually(t, 30*time.Second, "the fleet works", func() bool { return strings.Contains(d.stdout.String(), "2s events/s") })
	began := time.Now()
	d.signal(syscall.SIGTERM)
	s := d.summary(0)
	t.Logf("ended in %s: %+v", time.Since(began).Round(time.Millisecond), s)
	if !strings.Contains(d.stdout.String(), "10 cabinets close at most 100 doors a second") {
		t.Errorf("nothing says that 10 cabinets can't do it:\n%s", tail(d.stdout.String()))
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	d := dev(t, "--no-simulator")
	d.signal(syscall.SIGTERM)
	d.signal(syscall.SIGTERM) // a tool's copy of the first
	d.summary(0)

	// The drain waits in vain: nobody settles what the fleet reports.
	d = dev(t)
	eventually(t, 30*time.Second, "the fleet works", func() bool { return strings.Contains(d.stdout.String(), "1s events/s") })
	db := d.database()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SELECT * FROM device_stock FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "events wait", func() bool { return strings.Count(d.stdout.String(), "receipts/s 0 ") > 1 })
	d.signal(syscall.SIGINT)
	during(t, sameSignal+200*time.Millisecond)
	d.signal(syscall.SIGINT)
	began := time.Now()
	if status := d.status(startLimit); status != 1 || !strings.Contains(d.stderr.String(), "second signal") {
		t.Errorf("status %d, %q; want 1 and the reason", status, tail(d.stderr.String()))
	}
	t.Logf("ended in %s", time.Since(began).Round(time.Millisecond))
	d.nothingLeft()
}

func TestDevInterruptedAtItsStart(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	d := &devRun{process: start(t, "dev", "--data-dir="+folder)}
	eventually(t, startLimit, "it starts MariaDB", func() bool {
		_, err := os.Stat(filepath.Join(folder, "mariadb.log"))
		return err == nil
	})
	d.signal(syscall.SIGINT)
	d.summary(0)
	d.ready.DSN = "root@unix(" + folder + "/mariadb/mariadb.sock)/doortab"
	if left := d.services(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	t.Logf("it said %q", d.stderr)
	again := dev(t, "--data-dir="+folder, "--duration=1s")
	again.summary(0)
}

func TestDevKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	d := dev(t)
	if len(d.services()) != 2 {
		t.Fatalf("%d services, want MariaDB and Redis", len(d.services()))
	}
	d.kill()
	d.nothingLeft()
}

// A folder that was given stays, and serves the next start.
func TestDevKeepsItsFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	args := []string{"--data-dir=" + folder, "--duration=2s"}
	first := dev(t, args...)
	one := first.summary(0)
	killed := dev(t, args...)
	eventually(t, 30*time.Second, "the fleet works", func() bool { return len(killed.stdout.lines()) > 3 })
	killed.kill()
	third := dev(t, args...)
	var settled int
	if err := third.database().QueryRow("SELECT COUNT(*) FROM settlements").Scan(&settled); err != nil {
		t.Fatal(err)
	}
	if settled <= one.settled {
		t.Errorf("%d settlements at the third start, want more than the first run's %d", settled, one.settled)
	}
	third.summary(0)
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
	if left := third.services(); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

// What somebody does to the books during a run is seen, by the fleet's own books too.
func TestDevSeesPlantedDifferences(t *testing.T) {
	t.Parallel()
	const someOrder = `(SELECT order_id FROM orders WHERE status = 'open' ORDER BY order_id LIMIT 1)`
	cases := []struct {
		name       string
		statements []string
		said       string // by a difference of the fleet's books
		found      func(summary) int
	}{
		{"lost", []string{
			"CREATE TEMPORARY TABLE planted AS SELECT device_id, close_event_id, order_id FROM orders WHERE order_id = " + someOrder,
			"DELETE FROM settlements WHERE order_id IN (SELECT order_id FROM planted)",
			"DELETE FROM order_lines WHERE order_id IN (SELECT order_id FROM planted)",
			"DELETE FROM orders WHERE order_id IN (SELECT order_id FROM planted)",
		}, "it has no settlement", func(s summary) int { return s.lost }},
		{"doubled", []string{
			"CREATE TEMPORARY TABLE planted AS SELECT order_id FROM orders WHERE order_id = " + someOrder,
			`INSERT INTO orders (order_id, device_id, close_event_id, user_id, status, currency, total_minor, created_at)
				SELECT order_id + 1, device_id, close_event_id, user_id, status, currency, total_minor, created_at
				FROM orders WHERE order_id IN (SELECT order_id FROM planted)`,
			`INSERT INTO order_lines (device_id, order_id, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence)
				SELECT device_id, order_id + 1, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence
				FROM order_lines WHERE order_id IN (SELECT order_id FROM planted)`,
		}, "it has 2 orders", func(s summary) int { return s.doubled }},
		{"drifting", []string{"UPDATE device_stock SET stock = stock + 1000, version = version + 1 WHERE device_id = 1003 AND product_id = 1"},
			"on the books", func(s summary) int { return s.drift }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := dev(t, "--faults=off", "--duration=5s")
			db := d.database()
			db.SetMaxOpenConns(1) // temporary tables belong to a connection
			eventually(t, 30*time.Second, "there are orders", func() bool {
				var n int
				return db.QueryRow("SELECT COUNT(*) FROM orders WHERE status = 'open'").Scan(&n) == nil && n > 20
			})
			for _, statement := range c.statements {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			s := d.summary(1)
			if c.found(s) == 0 {
				t.Errorf("summary %+v doesn't count it", s)
			}
			if !regexp.MustCompile(`(?m)^difference: .*` + c.said).MatchString(d.stdout.String()) {
				t.Errorf("no difference says %q:\n%s", c.said, tail(d.stdout.String()))
			}
		})
	}
}

func TestDevWithoutSimulator(t *testing.T) {
	t.Parallel()
	d := dev(t, "--no-simulator")
	client := newHTTPClient(t, d.ready.AdminToken)
	client.do("POST", d.ready.HTTP+"/v1/products", `{"productId":1,"sku":"S","name":"Soda","priceMinor":300}`, 201, nil)
	client.do("POST", d.ready.HTTP+"/v1/cabinets", `{"deviceId":1001,"name":"Lobby"}`, 201, nil)
	var credentials struct{ Secret string }
	client.do("POST", d.ready.HTTP+"/v1/cabinets/1001/credentials", "", 201, &credentials)
	client.do("POST", d.ready.HTTP+"/v1/cabinets/1001/restocks", `{"lines":[{"productId":1,"quantity":9}]}`, 201, nil)
	c := connectCabinet(t, d.ready.MQTT, 1001, credentials.Secret)
	payload := sale(1001, "one", 1, 2)
	for range 3 {
		c.publish(1001, payload)
	}
	eventually(t, 10*time.Second, "three receipts", func() bool { return len(c.heard(eventKey{1001, "one"})) == 3 })
	d.signal(syscall.SIGINT)
	if s := d.summary(0); s != (summary{published: 3, settled: 1, duplicates: 2}) {
		t.Errorf("summary %+v, want three received, one settled and two duplicates", s)
	}
}

func TestDevFaults(t *testing.T) {
	t.Parallel()
	fault := regexp.MustCompile(`(?m)^fault .+? +(\d+)$`)
	for _, level := range []string{"off", "wild"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			d := dev(t, "--faults="+level, "--duration="+short(6*time.Second, 2*time.Second).String())
			s := d.summary(0)
			total := 0
			for _, found := range fault.FindAllStringSubmatch(d.stdout.String(), -1) {
				var n int
				_, _ = fmt.Sscan(found[1], &n) // digits
				total += n
			}
			t.Logf("%d faults: %+v", total, s)
			if (total == 0) != (level == "off") {
				t.Errorf("%d faults with --faults=%s", total, level)
			}
		})
	}
}

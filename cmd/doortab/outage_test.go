package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"doortab/services"
	"doortab/services/servicestest"
)

// R2: what isn't committed isn't acknowledged, and the broker's window holds back the rest.
func TestDatabaseOutageUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		outage(t, func(m *services.MariaDB) error { return m.Stop(t.Context()) },
			func(m *services.MariaDB) error { return m.Start(t.Context()) })
	})
	t.Run("hanging", func(t *testing.T) {
		t.Parallel()
		outage(t, (*services.MariaDB).Pause, (*services.MariaDB).Continue)
	})
}

func outage(t *testing.T, begin, end func(*services.MariaDB) error) {
	const devices, mostMiB = 50, 256
	program := build(t)
	server := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()}).MariaDB
	in, broker := newInstallationOn(t, server, devices), mosquitto(t)
	var acks atomic.Int64
	address := proxy(t, broker.Address(), countAcks(&acks), plainCopy)
	s := in.serveProgram(program, "--mqtt-url=tcp://"+address)
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), 2*time.Second)
	stop := box.load(200, devices)
	eventually(t, 20*time.Second, "the load is settled", func() bool { return box.answered() > 200 })
	if acks.Load() == 0 {
		t.Fatal("nothing was acknowledged, although events were settled")
	}
	if err := begin(server); err != nil {
		t.Fatal(err)
	}
	nothingHappens(in, s, box, &acks)
	if err := end(server); err != nil {
		t.Fatal(err)
	}
	events := stop()
	began := time.Now()
	box.drain(time.Minute)
	peak := peakMiB(t, s.cmd.Process.Pid)
	t.Logf("%d events; all settled %s after the database was back; most memory %d MiB",
		events, time.Since(began).Round(time.Millisecond), peak)
	if peak > mostMiB && !testing.Short() {
		t.Errorf("serve took %d MiB, at most %d are allowed", peak, mostMiB)
	}
	box.consistent()
	in.settledOnce(events)
}

// nothingHappens watches acknowledgements and receipts while there is no database.
func nothingHappens(in *installation, s *server, box *outbox, acks *atomic.Int64) {
	in.t.Helper()
	during(in.t, 500*time.Millisecond) // what was committed before is acknowledged now
	acknowledged, answered := acks.Load(), box.answered()
	during(in.t, short(20*time.Second, 4*time.Second))
	if more := acks.Load() - acknowledged; more != 0 {
		in.t.Errorf("%d messages were acknowledged without a database", more)
	}
	if more := box.answered() - answered; more != 0 {
		in.t.Errorf("%d receipts came without a database", more)
	}
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200} {
		if status := in.client.status(s.http + path); status != want {
			in.t.Errorf("%s says %d without a database, want %d", path, status, want)
		}
	}
}

// build makes the program as users have it, with the flags of `make build`: the race detector multiplies its memory.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		self, err := os.Executable() // the build alone takes longer than a short run should
		if err != nil {
			t.Fatal(err)
		}
		return self
	}
	path := filepath.Join(t.TempDir(), "doortab")
	command := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build doortab: %v\n%s", err, text)
	}
	return path
}

// peakMiB is the most resident memory that a process ever had: VmHWM of proc_pid_status(5).
func peakMiB(t *testing.T, pid int) (mib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscanf(string(rest), "%d kB", &mib); err != nil {
		t.Fatalf("VmHWM: %v", err)
	}
	return mib / 1024
}

// R1: Redis changes speed, never an outcome.
func TestRedisInTrouble(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		url     func(t *testing.T, r *services.Redis) string
		trouble func(t *testing.T, r *services.Redis)
	}{
		{"never started", func(t *testing.T, _ *services.Redis) string { return "redis://" + nobody(t) + "/0" }, nil},
		{"slow", func(t *testing.T, r *services.Redis) string {
			options, err := redis.ParseURL(r.URL())
			if err != nil {
				t.Fatal(err)
			}
			return "redis://:" + options.Password + "@" + proxy(t, r.Address(), plainCopy, late(2*time.Second)) + "/0"
		}, nil},
		{"flushed", sameURL, func(t *testing.T, r *services.Redis) { flush(t, r.URL()) }},
		{"killed", sameURL, func(t *testing.T, r *services.Redis) {
			if err := r.Kill(); err != nil {
				t.Fatal(err)
			}
		}},
		{"paused", sameURL, func(t *testing.T, r *services.Redis) {
			if err := r.Pause(); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}}).Redis
			passesWith(t, c.url(t, r), func() {
				if c.trouble != nil {
					c.trouble(t, r)
				}
			})
		})
	}
}

func sameURL(_ *testing.T, r *services.Redis) string { return r.URL() }

func flush(t *testing.T, url string) {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// passesWith settles events, lets the trouble begin while they are worked on, and has each come again.
func passesWith(t *testing.T, redisURL string, trouble func()) {
	const devices = 10
	events := short(300, 60)
	in, broker := newInstallation(t, devices), mosquitto(t)
	in.serve("--mqtt-url="+broker.URL(), "--redis-url="+redisURL)
	c := connect(t, connection{url: broker.URL(), clientID: "cabinets"})
	began := time.Now()
	payloads := make([][]byte, events)
	for n := range payloads {
		device := firstDevice + int64(n%devices)
		payloads[n] = sale(device, fmt.Sprint("event-", n), 1, 2)
		c.publish(device, payloads[n])
	}
	trouble()
	for n, payload := range payloads {
		c.publish(firstDevice+int64(n%devices), payload)
	}
	for n := range payloads {
		key := eventKey{firstDevice + int64(n%devices), fmt.Sprint("event-", n)}
		eventually(t, 30*time.Second, fmt.Sprint("both receipts of ", key), func() bool { return len(c.heard(key)) >= 2 })
		if firsts := sameReceipts(t, c.heard(key)); firsts != 1 {
			t.Errorf("%v: %d receipts that are no duplicate, want 1", key, firsts)
		}
	}
	t.Logf("%d events, each twice, in %s", events, time.Since(began).Round(time.Millisecond))
	in.settledOnce(events)
}

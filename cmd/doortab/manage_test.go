package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"doortab/database/databasetest"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := "--database-dsn=" + databasetest.Empty(t)
	steps := []struct {
		command, want string
	}{
		{"status", "pending"},
		{"up", "applied 1"},
		{"up", "nothing to do"},
		{"status", "applied"},
		{"down", "took back"},
		{"up", "applied"},
	}
	for _, step := range steps {
		status, stdout, stderr := command(t, "migrate", step.command, dsn)
		if status != 0 || !strings.Contains(stdout, step.want) {
			t.Fatalf("migrate %s: status %d, %q %q; want 0 and %q", step.command, status, stdout, stderr, step.want)
		}
	}
}

func TestTokenAndCabinet(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	s, dsn := in.serve(), "--database-dsn="+in.dsn
	status, stdout, stderr := command(t, "token", "create", "--role=operator", "--name=Ann", dsn)
	var token struct{ ID, Role, Token string }
	if err := json.Unmarshal([]byte(stdout), &token); err != nil || status != 0 {
		t.Fatalf("token create: status %d, %q %q: %v", status, stdout, stderr, err)
	}
	ann := newHTTPClient(t, token.Token)
	for path, want := range map[string]int{"/v1/products": 200, "/v1/dead-letters": 200, "/v1/tokens": 403} {
		if got := ann.status(s.http + path); got != want {
			t.Errorf("%s answers an operator %d, want %d", path, got, want)
		}
	}

	status, stdout, stderr = command(t, "cabinet", "add", "77", "--name=Lobby", "--site=HQ", dsn)
	var credentials struct{ Username, Secret string }
	if err := json.Unmarshal([]byte(stdout), &credentials); err != nil || status != 0 || credentials.Username != "77" {
		t.Fatalf("cabinet add: status %d, %q %q: %v", status, stdout, stderr, err)
	}
	c := connectCabinet(t, s.mqtt, 77, credentials.Secret)
	c.publish(77, sale(77, "one", 1, 1))
	c.receipt(77, "one", 10*time.Second)
	if status, _, stderr := command(t, "cabinet", "add", "77", "--name=Again", dsn); status != 1 || !strings.Contains(stderr, "exists already") {
		t.Errorf("the same cabinet again: status %d, %q; want 1", status, stderr)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	s, dsn := in.serve(), "--database-dsn="+in.dsn
	in.exec("INSERT INTO cabinets (device_id, name, created_at, updated_at) VALUES (77, 'Scrapped', NOW(), NOW())")
	c := connectCabinet(t, s.mqtt, 77, in.secret(77))
	in.exec("DELETE FROM cabinets WHERE device_id = 77")
	c.publish(77, sale(77, "early", 1, 1))
	c.receipt(77, "early", 10*time.Second)
	c.publish(77, []byte("door closed!"))
	eventually(t, 10*time.Second, "two dead letters", func() bool { return in.count("SELECT COUNT(*) FROM dead_letters") == 2 })

	letters := func() map[string]string {
		_, stdout, _ := command(t, "dead-letters", "list", dsn)
		found := map[string]string{}
		for _, line := range regexp.MustCompile(`(?m)^(\d+)  \S+  (\S+) `).FindAllStringSubmatch(stdout, -1) {
			found[line[2]] = line[1]
		}
		return found
	}
	ids := letters()
	if len(ids) != 2 {
		t.Fatalf("list shows %v, want an unknown cabinet and a malformed one", ids)
	}
	if status, _, stderr := command(t, "dead-letters", "retry", ids["unknown_cabinet"], dsn); status != 1 ||
		!strings.Contains(stderr, "not registered") {
		t.Errorf("retry without the cabinet: status %d, %q; want 1 and why", status, stderr)
	}
	command(t, "cabinet", "add", "77", "--name=Back", dsn)
	status, stdout, stderr := command(t, "dead-letters", "retry", ids["unknown_cabinet"], dsn)
	if status != 0 || !strings.Contains(stdout, `"outcome":"settled"`) {
		t.Errorf("retry: status %d, %q %q; want the receipt", status, stdout, stderr)
	}
	if status, _, stderr := command(t, "dead-letters", "discard", ids["malformed"], dsn); status != 0 {
		t.Errorf("discard: status %d, %q", status, stderr)
	}
	if status, _, stderr := command(t, "dead-letters", "discard", ids["malformed"], dsn); status != 1 || !strings.Contains(stderr, "no such dead") {
		t.Errorf("discard again: status %d, %q; want 1", status, stderr)
	}
	if left := letters(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	in.settledOnce(1)
}

func TestAuditCommand(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	status, stdout, stderr := command(t, "audit", "--database-dsn="+in.dsn)
	if status != 0 || strings.Count(stdout, " 0 violations") != 6 {
		t.Errorf("status %d, %q %q; want six invariants without a violation", status, stdout, stderr)
	}
	in.exec("UPDATE device_stock SET stock = stock + 1 WHERE product_id = 2")
	status, stdout, _ = command(t, "audit", "--database-dsn="+in.dsn)
	if status != 1 || !strings.Contains(stdout, "I2 device_stock device=1001 product=2: ") {
		t.Errorf("status %d, %q; want 1 and the violation by table and key", status, stdout)
	}
}

// simulate and a server of somebody else's.
func TestSimulateCommand(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	s := in.serve()
	p := start(t, "simulate", "--http="+s.http, "--mqtt="+s.mqtt, "--token="+in.client.token,
		"--cabinets=5", "--rate=20", "--duration=2s", "--resend=1s")
	if status := p.status(time.Minute); status != 0 {
		t.Errorf("status %d, %s", status, p.stderr)
	}
	lines := p.stdout.lines()
	if !lastLine.MatchString(lines[len(lines)-1]) {
		t.Errorf("last line %q, want the summary", lines[len(lines)-1])
	}
	in.audit()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		args   []string
		status int
		want   []string
	}{
		{"help", []string{"--help"}, 0, []string{"serve", "dev", "migrate", "simulate", "audit", "token", "cabinet", "dead-letters"}},
		{"help of a command", []string{"serve", "--help"}, 0, []string{"--database-dsn", "$DOORTAB_DATABASE_DSN", "$DOORTAB_REDIS_URL",
			"$DOORTAB_MQTT_URL", "$DOORTAB_MQTT_LISTEN", "$DOORTAB_HTTP_ADDR", "$DOORTAB_CURRENCY", "$DOORTAB_LOG_LEVEL"}},
		{"no command", nil, 2, []string{"expected one of", "--help"}},
		{"unknown command", []string{"sell"}, 2, []string{"sell", "--help"}},
		{"unknown flag", []string{"serve", "--databse-dsn=x"}, 2, []string{"--databse-dsn", "--help"}},
		{"wrong value", []string{"dev", "--duration=soon"}, 2, []string{"--duration", "soon"}},
		{"wrong choice", []string{"token", "create", "--role=king"}, 2, []string{"--role", "viewer"}},
		{"wrong faults", []string{"dev", "--faults=sometimes"}, 2, []string{"sometimes", "mild"}},
		{"missing argument", []string{"dead-letters", "retry"}, 2, []string{"id"}},
		{"no number", []string{"dead-letters", "retry", "x", "--database-dsn=root@tcp(127.0.0.1:1)/x"}, 1, []string{"dead-letters list"}},
		{"no letters", []string{"dead-letters", "list", "--limit=0"}, 2, []string{"--limit"}},
		{"sessions kept too short", []string{"serve", "--keep-door-sessions=90s"}, 1, []string{"--keep-door-sessions", "24h"}},
		{"letters kept too short", []string{"serve", "--keep-dead-letters=30m"}, 1, []string{"--keep-dead-letters", "for ever"}},
		{"keys kept too short", []string{"serve", "--keep-idempotency-keys=24h"}, 2, []string{"--keep-idempotency-keys", "72h"}},
		{"no limit", []string{"serve", "--limit-user=fast"}, 2, []string{"--limit-user", "10/s:100"}},
		{"no network", []string{"dev", "--trusted-proxy=10.0.0.0"}, 2, []string{"--trusted-proxy", `"10.0.0.0": write a network as 10.0.0.0/8`}},
		{"archive without a date", []string{"archive"}, 2, []string{"--before"}},
		{"archive of the future", []string{"archive", "--before=9999-01-01"}, 1, []string{"still to come"}},
		{"no time", []string{"promotion", "create", "x", "--starts-at=now"}, 2, []string{"--starts-at", "2026-01-31", "`doortab promotion create --help`"}},
		{"no failed tasks without Redis", []string{"failed-tasks", "list", "--database-dsn=x@/x"}, 1, []string{"DOORTAB_REDIS_URL"}},
		{"no database", []string{"audit"}, 1, []string{"--database-dsn", "DOORTAB_DATABASE_DSN"}},
		{"unreachable database", []string{"audit", "--database-dsn=root@tcp(127.0.0.1:1)/x"}, 1, []string{"check DOORTAB_DATABASE_DSN"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := command(t, c.args...)
			if status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("%q lacks %q", stdout+stderr, want)
				}
			}
		})
	}
}

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"doortab/cabinet"
)

func TestMosquittoAsShipped(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 3)
	secret := in.secret(firstDevice)
	other := in.secret(firstDevice + 1)
	m := startShipped(in)
	worker, events := m.client(t, m.asWorker("doortab-watcher"), "$share/watchers/"+cabinet.DoorClosedFilter, cabinet.StatusFilter)

	t.Run("who may connect", func(t *testing.T) { m.refusesStrangers(t, secret) })
	t.Run("what a cabinet may publish", func(t *testing.T) { m.confinesPublishers(t, secret, events) })
	t.Run("what a cabinet may hear", func(t *testing.T) { m.confinesListeners(t, secret, other) })
	t.Run("a worker's client id", func(t *testing.T) {
		m.client(t, m.asCabinet(firstDevice, secret, "doortab-watcher"))
		if s := worker.Stats(); s.Connects != 1 || !worker.Connected() {
			t.Errorf("a cabinet threw the worker off: %+v", s)
		}
	})
	t.Run("oversize", func(t *testing.T) {
		client, _ := m.client(t, m.asCabinet(firstDevice, secret, "x"))
		err := client.Publish(t.Context(), cabinet.DoorClosedTopic(firstDevice), make([]byte, 4<<20), 1, false)
		if err == nil {
			t.Error("a packet of more than 4 MiB was taken")
		}
	})
	if worker.Stats().Connects != 1 {
		t.Error("the worker lost its connection")
	}
}

func (m *shipped) refusesStrangers(t *testing.T, secret string) {
	workers, name := m.broker.Address(), fmt.Sprint(firstDevice)
	for what, c := range map[string]struct {
		address, username, password string
		want                        byte // MQTT 3.1.1, 3.2.2.3
	}{
		"a cabinet":                    {m.cabinets, name, secret, 0},
		"a worker":                     {workers, workerName, workerSecret, 0},
		"nobody among cabinets":        {m.cabinets, "", "", 5},
		"nobody among workers":         {workers, "", "", 5},
		"a wrong secret":               {m.cabinets, name, "x" + secret, 5},
		"another's secret":             {m.cabinets, fmt.Sprint(firstDevice + 1), secret, 5},
		"a cabinet without a secret":   {m.cabinets, fmt.Sprint(firstDevice + 2), "", 5},
		"a cabinet among workers":      {workers, name, secret, 5},
		"a worker among cabinets":      {m.cabinets, workerName, workerSecret, 5},
		"a worker with a wrong secret": {workers, workerName, secret, 5},
	} {
		if _, got := m.knock(t, c.address, "knock", c.username, c.password, ""); got != c.want {
			t.Errorf("%s: return code %d, want %d", what, got, c.want)
		}
	}
	old := &tls.Config{RootCAs: m.authority.Pool(), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if conn, err := tls.Dial("tcp", m.cabinets, old); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is taken")
	}
	plain, err := net.Dial("tcp", m.cabinets)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = plain.Write([]byte{0x10, 12, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 10, 0, 0})
	if err := plain.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(plain); errors.Is(err, os.ErrDeadlineExceeded) || len(text) > 0 && text[0] == 0x20 {
		t.Errorf("a connection without TLS got % x, %v", text, err)
	}
}

// confinesPublishers sends forged messages and then an own one: whatever of the former were to arrive would come before it.
func (m *shipped) confinesPublishers(t *testing.T, secret string, events *inbox) {
	client, _ := m.client(t, m.asCabinet(firstDevice, secret, "x"))
	_, statuses := m.client(t, m.asWorker("doortab-second"), cabinet.StatusFilter)
	for _, topic := range []string{
		cabinet.DoorClosedTopic(firstDevice + 1), cabinet.StatusTopic(firstDevice + 1), cabinet.ReceiptsTopic(firstDevice + 1),
		cabinet.ReceiptsTopic(firstDevice), cabinet.UnlockTopic(firstDevice), "v1/cabinets/" + workerName + "/door-closed",
	} {
		m.publish(t, client, topic, []byte("forged"))
	}
	m.publish(t, client, cabinet.DoorClosedTopic(firstDevice), []byte("own"))
	if client.Stats().Connects != 1 {
		t.Error("what is not allowed costs the connection")
	}
	eventually(t, 10*time.Second, "the own event arrives", func() bool { return len(events.heard()) > 0 })
	if got := events.heard(); !slices.Equal(got, []string{cabinet.DoorClosedTopic(firstDevice)}) {
		t.Errorf("workers heard %v", got)
	}
	// A last will is published when the connection breaks. That of an own status shows that the forged one was due too.
	for _, topic := range []string{cabinet.StatusTopic(firstDevice + 1), cabinet.StatusTopic(firstDevice)} {
		conn, code := m.knock(t, m.cabinets, "x", fmt.Sprint(firstDevice), secret, topic)
		if code == 0 {
			_ = conn.Close()
		}
	}
	eventually(t, 10*time.Second, "the last will of the own status", func() bool {
		return slices.Contains(statuses.heard(), cabinet.StatusTopic(firstDevice))
	})
	if slices.Contains(statuses.heard(), cabinet.StatusTopic(firstDevice+1)) {
		t.Error("a cabinet left a last will in another's name")
	}
}

// confinesListeners: Mosquitto grants every subscription and then delivers only what the rules let through. A member of the
// workers' group would get its share all the same and lose it, which is why the group's name is a secret.
func (m *shipped) confinesListeners(t *testing.T, secret, other string) {
	_, rogue := m.client(t, m.asCabinet(firstDevice, secret, "x"), "#", "+/+/+/+", "v1/cabinets/+/receipts", "v1/cabinets/+/door-closed",
		cabinet.ReceiptsTopic(firstDevice+1), cabinet.UnlockTopic(firstDevice+1), "$SYS/#", "$share/doortab/"+cabinet.DoorClosedFilter)
	group := "$share/a-secret/" + cabinet.DoorClosedFilter
	worker, events := m.client(t, m.asWorker("doortab-third"), group)
	client, _ := m.client(t, m.asCabinet(firstDevice+1, other, "y"))
	const doors = 20
	for range doors {
		m.publish(t, client, cabinet.DoorClosedTopic(firstDevice+1), []byte("a door"))
		m.publish(t, worker, cabinet.ReceiptsTopic(firstDevice+1), []byte("a receipt"))
	}
	m.publish(t, worker, cabinet.ReceiptsTopic(firstDevice), []byte("own"))
	eventually(t, 10*time.Second, "the own receipt arrives", func() bool { return len(rogue.heard()) > 0 })
	for _, topic := range rogue.heard() { // once for each subscription that matches
		if topic != cabinet.ReceiptsTopic(firstDevice) {
			t.Errorf("a cabinet heard %s", topic)
		}
	}
	eventually(t, 10*time.Second, "the workers get every event", func() bool { return len(events.heard()) == doors })
}

// A whole fleet works on the shipped configuration, and what is replaced under it takes effect within the minute.
func TestServeOnMosquittoAsShipped(t *testing.T) {
	t.Parallel()
	const simulated, device, another = 3, firstDevice + 8, firstDevice + 9
	in := newInstallation(t, 10)
	secret := in.secret(device)
	m := startShipped(in)
	start(t, "mosquitto", "passwords", "--database-dsn="+in.dsn, "--file="+m.file("passwords"), "--pid-file="+m.file("mosquitto.pid"), "--every=1s")
	s := in.serve("--mqtt-url="+m.broker.URL(), "--mqtt-username="+workerName, "--mqtt-password="+workerSecret, "--mqtt-share=a-secret")
	old, receipts := m.client(t, m.asCabinet(device, secret, "x"), cabinet.ReceiptsTopic(device))
	m.publish(t, old, cabinet.DoorClosedTopic(device), sale(device, "one", 1, 1))
	tooLarge := append(sale(device, "two", 1, 1), bytes.Repeat([]byte(" "), 100_000)...)
	m.publish(t, old, cabinet.DoorClosedTopic(device), tooLarge)
	eventually(t, 20*time.Second, "receipts of a sale and of too large an event", func() bool { return len(receipts.heard()) == 2 })

	fleet := start(t, "simulate", "--http="+s.http, "--mqtt=mqtts://"+m.cabinets, "--token="+in.client.token, "--ca-file="+m.authority.File,
		fmt.Sprint("--cabinets=", simulated), "--rate=10", "--duration=5s", "--resend=1s")
	if status := fleet.status(time.Minute); status != 0 {
		t.Errorf("the fleet ends with status %d, %s", status, fleet.stderr)
	}

	bystander, _ := m.client(t, m.asCabinet(another, in.secret(another), "y"))
	if old.Stats().Connects != 1 || !old.Connected() {
		t.Error("others' new secrets ended a connection")
	}
	rotated := time.Now()
	fresh := in.secret(device)
	eventually(t, time.Minute, "the old connection ends", func() bool { return !old.Connected() })
	t.Logf("the old connection ended %s after the rotation", time.Since(rotated).Round(time.Millisecond))
	if _, code := m.knock(t, m.cabinets, "x", fmt.Sprint(device), secret, ""); code != 5 {
		t.Errorf("the old secret gets return code %d, want 5", code)
	}
	m.client(t, m.asCabinet(device, fresh, "x"))
	if old.Connected() || bystander.Stats().Connects != 1 {
		t.Error("the old secret is let in, or another cabinet was disturbed")
	}
	in.audit()
}

func TestMosquittosCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	secret := in.secret(firstDevice)
	m := startShipped(in)
	client, _ := m.client(t, m.asCabinet(firstDevice, secret, "x"))
	m.authority.Issue(t, 2, m.file("cert.pem"), m.file("key.pem"))
	if err := reloadMosquitto(m.file("mosquitto.pid")); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the new certificate shows", func() bool { return serial(t, m.authority, "mqtts://"+m.cabinets) == 2 })
	if client.Stats().Connects != 1 {
		t.Error("the renewal ended a connection")
	}
}

func TestPasswordFileOutlivesTrouble(t *testing.T) {
	t.Parallel()
	in, file := newInstallation(t, 1), filepath.Join(t.TempDir(), "passwords")
	in.secret(firstDevice)
	once := func(dsn string, args ...string) (int, string) {
		status, _, stderr := command(t, append([]string{"mosquitto", "passwords", "--database-dsn=" + dsn, "--file=" + file}, args...)...)
		return status, stderr
	}
	if status, stderr := once(in.dsn); status != 0 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	before, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(before), "1001:$7$") {
		t.Fatalf("the file holds %q, %v", before, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if status, stderr := once("root@tcp(127.0.0.1:1)/doortab"); status != 1 {
		t.Errorf("without a database: status %d, %s", status, stderr)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("without a database the file became %q, %v", after, err)
	}
	pidFile := filepath.Join(t.TempDir(), "pid")
	for _, pid := range []string{"", "x", "1", fmt.Sprint(os.Getpid()), "99999999"} {
		if err := os.WriteFile(pidFile, []byte(pid+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, stderr := once(in.dsn, "--pid-file="+pidFile); status != 1 || !strings.Contains(stderr, pidFile) {
			t.Errorf("process id %q: status %d, %s", pid, status, stderr)
		}
	}
}

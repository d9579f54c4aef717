package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"doortab/certificate/certificatetest"
	"doortab/mqtt"
	"doortab/services"
	"doortab/services/servicestest"
)

const (
	shippedConfig = "../../deploy/mosquitto"
	workerName    = "doortab"
	workerSecret  = "the workers' password"
)

// shipped is Mosquitto with the configuration of deploy, its paths, ports and user replaced by the test's.
type shipped struct {
	in        *installation
	dir       string
	authority *certificatetest.Authority
	broker    *services.Mosquitto
	cabinets  string // address of their listener
}

func startShipped(in *installation) *shipped {
	in.t.Helper()
	m := &shipped{in: in, dir: in.t.TempDir(), authority: certificatetest.New(in.t)}
	m.authority.Issue(in.t, 1, m.file("cert.pem"), m.file("key.pem"))
	for _, name := range []string{"cabinets.acl", "workers.acl"} {
		text, err := os.ReadFile(filepath.Join(shippedConfig, name))
		if err == nil {
			err = os.WriteFile(m.file(name), text, 0o600)
		}
		if err != nil {
			in.t.Fatal(err)
		}
	}
	made, err := exec.Command("mosquitto_passwd", "-c", "-b", m.file("workers.passwords"), workerName, workerSecret).CombinedOutput()
	if err != nil {
		in.t.Fatalf("mosquitto_passwd: %v: %s", err, made)
	}
	if status, _, stderr := command(in.t, "mosquitto", "passwords", "--database-dsn="+in.dsn, "--file="+m.file("passwords")); status != 0 {
		in.t.Fatalf("passwords: status %d, %s", status, stderr)
	}
	m.broker = servicestest.Start(in.t, services.Options{Mosquitto: &services.MosquittoOptions{Configure: m.configure}}).Mosquitto
	return m
}

func (m *shipped) file(name string) string { return filepath.Join(m.dir, name) }

func (m *shipped) configure(_ string, ports [2]int) (string, error) {
	text, err := os.ReadFile(filepath.Join(shippedConfig, "mosquitto.conf"))
	if err != nil {
		return "", err
	}
	self, err := user.Current()
	if err != nil {
		return "", err
	}
	m.cabinets = fmt.Sprintf("127.0.0.1:%d", ports[0])
	config := string(text)
	for _, change := range [][2]string{
		{"\nuser mosquitto\n", "\nuser " + self.Username + "\n"},
		{" /run/mosquitto/", " " + m.dir + "/"},
		{" /var/lib/doortab-mosquitto/", " " + m.dir + "/"},
		{" /etc/mosquitto/doortab/", " " + m.dir + "/"},
		{"\nlistener 8883\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", ports[0])},
		{"\nlistener 1883 127.0.0.1\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", ports[1])},
	} {
		if !strings.Contains(config, change[0]) {
			return "", fmt.Errorf("mosquitto.conf has no %q", change[0])
		}
		config = strings.ReplaceAll(config, change[0], change[1])
	}
	return config, nil
}

// client connects with an account to one of the listeners, and hears what a filter brings.
func (m *shipped) client(t *testing.T, config mqtt.Config, filters ...string) (*mqtt.Client, *inbox) {
	t.Helper()
	box := &inbox{}
	config.CAFile, config.Logger = m.authority.File, slog.New(slog.DiscardHandler)
	config.MinBackoff, config.MaxBackoff = 20*time.Millisecond, 200*time.Millisecond
	for _, filter := range filters {
		subscription := mqtt.Subscription{Filter: filter, QoS: 1, Handle: box.take}
		if rest, shared := strings.CutPrefix(filter, "$share/"); shared {
			subscription.Share, subscription.Filter, _ = strings.Cut(rest, "/")
		}
		config.Subscriptions = append(config.Subscriptions, subscription)
	}
	client, err := mqtt.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	eventually(t, 20*time.Second, config.Username+" is connected", client.Connected)
	return client, box
}

func (m *shipped) asCabinet(deviceID int64, secret, clientID string) mqtt.Config {
	return mqtt.Config{URL: "mqtts://" + m.cabinets, ClientID: clientID, Username: fmt.Sprint(deviceID), Password: secret}
}

func (m *shipped) asWorker(clientID string) mqtt.Config {
	return mqtt.Config{URL: m.broker.URL(), ClientID: clientID, Username: workerName, Password: workerSecret}
}

// inbox keeps what was heard.
type inbox struct {
	mu     sync.Mutex
	topics []string
}

func (i *inbox) take(m *mqtt.Message) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.topics = append(i.topics, m.Topic)
	m.Ack()
	return true
}

func (i *inbox) heard() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.topics)
}

func (m *shipped) publish(t *testing.T, client *mqtt.Client, topic string, payload []byte) {
	t.Helper()
	if err := client.Publish(t.Context(), topic, payload, 1, false); err != nil {
		t.Errorf("publish to %s: %v", topic, err)
	}
}

// knock sends one CONNECT (MQTT 3.1.1, 3.1) and returns the connection and the code of its CONNACK; 255 for none.
func (m *shipped) knock(t *testing.T, address, clientID, username, password, willTopic string) (net.Conn, byte) {
	t.Helper()
	var conn net.Conn
	var err error
	if address == m.cabinets {
		conn, err = tls.Dial("tcp", address, &tls.Config{RootCAs: m.authority.Pool()})
	} else {
		conn, err = net.Dial("tcp", address)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	text := func(s string) []byte { return append([]byte{byte(len(s) >> 8), byte(len(s))}, s...) }
	flags, fields := byte(2), [][]byte{text(clientID)}
	if willTopic != "" {
		flags, fields = flags|0x0c, append(fields, text(willTopic), text("gone"))
	}
	if username != "" {
		flags, fields = flags|0xc0, append(fields, text(username), text(password))
	}
	body := append(append(text("MQTT"), 4, flags, 0, 60), slices.Concat(fields...)...)
	if _, err := conn.Write(append([]byte{0x10, byte(len(body)) | 0x80, byte(len(body) >> 7)}, body...)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return conn, 255
	}
	return conn, answer[3]
}

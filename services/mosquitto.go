package services

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// MosquittoOptions chooses who may use a private Mosquitto and how it behaves. The zero value lets everybody in and leaves
// Mosquitto's stock settings, a window of 20 messages in flight and no persistence among them.
type MosquittoOptions struct {
	// Users holds the passwords by user name; with any, anonymous clients are refused.
	Users map[string]string
	// ACL is the text of an access control file; empty means that every client may use every topic.
	ACL string
	// Configure returns the text of a whole configuration file, for two listeners at ports of 127.0.0.1, and may put
	// further files into its folder. The second listener is plain: Address and URL are its. With it the rest is ignored.
	Configure func(dir string, ports [2]int) (string, error)
	// Lines are added to the end of the configuration file, as mosquitto.conf(5) describes them.
	Lines []string
}

// Mosquitto is a private MQTT broker on a port of 127.0.0.1.
type Mosquitto struct {
	Process

	options MosquittoOptions
	folder  *folder
	dir     string
	address string
}

func newMosquitto(f *folder, o MosquittoOptions, logger *slog.Logger) *Mosquitto {
	m := &Mosquitto{options: o, folder: f}
	m.Process = Process{
		name: "mosquitto", logPath: filepath.Join(f.dir, "mosquitto.log"), logger: logger,
		command: m.serverCommand, answers: m.ping,
	}
	return m
}

// URL is the address: tcp://127.0.0.1:port. It stays the same over Stop, Kill and Start.
func (m *Mosquitto) URL() string { return "tcp://" + m.address }

// Address is host and port, for a proxy in front of it.
func (m *Mosquitto) Address() string { return m.address }

func (m *Mosquitto) create(ctx context.Context) error {
	var err error
	if m.dir, err = subfolder(m.folder.dir, "mosquitto"); err != nil {
		return fmt.Errorf("prepare mosquitto: %w", err)
	}
	return m.startOnFreePort(ctx, m.configure)
}

// The files are named without their folder: the process starts in it.
func (m *Mosquitto) configure(port int) error {
	m.address = address(port)
	if m.options.Configure != nil {
		return m.configureWhole(port)
	}
	lines := []string{fmt.Sprintf("listener %d 127.0.0.1", port), "log_dest stderr"}
	if os.Geteuid() == 0 {
		lines = append(lines, "user root") // it would take a user of its own, who may not read this folder
	}
	files := map[string]string{}
	if len(m.options.Users) > 0 {
		files["passwords"] = passwordFile(m.options.Users)
		lines = append(lines, "allow_anonymous false", "password_file passwords")
	} else {
		lines = append(lines, "allow_anonymous true")
	}
	if m.options.ACL != "" {
		files["acl"] = m.options.ACL
		lines = append(lines, "acl_file acl")
	}
	files["mosquitto.conf"] = strings.Join(slices.Concat(lines, m.options.Lines, []string{""}), "\n")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mosquitto) configureWhole(port int) error {
	first, err := freePort()
	if err != nil {
		return err
	}
	text, err := m.options.Configure(m.dir, [2]int{first, port})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.dir, "mosquitto.conf"), []byte(text), 0o600)
}

// passwordFile hashes as mosquitto_passwd does: $7$iterations$salt$PBKDF2-SHA512.
func passwordFile(users map[string]string) string {
	const iterations = 101
	var file strings.Builder
	for _, user := range slices.Sorted(maps.Keys(users)) {
		salt := make([]byte, 12)
		_, _ = rand.Read(salt) // never fails
		hash, err := pbkdf2.Key(sha512.New, users[user], salt, iterations, sha512.Size)
		if err != nil {
			panic(err) // only for sizes that are constants here
		}
		encode := base64.StdEncoding.EncodeToString
		fmt.Fprintf(&file, "%s:$7$%d$%s$%s\n", user, iterations, encode(salt), encode(hash))
	}
	return file.String()
}

func (m *Mosquitto) serverCommand() (*exec.Cmd, error) {
	server, err := program("mosquitto")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(server, "-c", "mosquitto.conf") //nolint:gosec // found by name
	cmd.Dir = m.dir
	return cmd, nil
}

// ping connects without a name, and takes a refusal as an answer too. The log tells that the port is this process's own.
func (m *Mosquitto) ping(ctx context.Context, _ int) error {
	if !strings.Contains(m.log(), " running\n") {
		return errors.New("mosquitto has not said that it is running")
	}
	conn, err := dial(ctx, m.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// MQTT 3.1.1, clean session, keepalive 10 s, an empty client id: section 3.1 of the standard.
	connect := []byte{0x10, 12, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 10, 0, 0}
	if _, err := conn.Write(connect); err != nil {
		return err
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if !bytes.HasPrefix(answer, []byte{0x20, 2}) { // CONNACK, section 3.2
		return fmt.Errorf("mosquitto answered % x instead of CONNACK", answer)
	}
	return nil
}

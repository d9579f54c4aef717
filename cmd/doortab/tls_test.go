package main

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"doortab/certificate/certificatetest"
)

// A fleet works over TLS alone, and certificates are renewed under it without a restart.
func TestServeWithTLS(t *testing.T) {
	t.Parallel()
	in, authority, dir := newInstallation(t, 0), certificatetest.New(t), t.TempDir()
	files := map[string]string{}
	for _, name := range []string{"mqtt-tls-cert", "mqtt-tls-key", "http-tls-cert", "http-tls-key"} {
		files[name] = filepath.Join(dir, name+".pem")
	}
	authority.Issue(t, 10, files["mqtt-tls-cert"], files["mqtt-tls-key"])
	authority.Issue(t, 20, files["http-tls-cert"], files["http-tls-key"])
	in.client.trust(authority.Pool())
	var args []string
	for name, file := range files {
		args = append(args, "--"+name+"="+file)
	}
	s := in.serve(args...)
	if !strings.HasPrefix(s.http, "https://") || !strings.HasPrefix(s.mqtt, "mqtts://") {
		t.Fatalf("it serves at %s and %s", s.http, s.mqtt)
	}
	fleet := start(t, "simulate", "--http="+s.http, "--mqtt="+s.mqtt, "--token="+in.client.token, "--ca-file="+authority.File,
		"--cabinets=5", "--rate=20", "--duration=3s", "--resend=1s")
	authority.Issue(t, 11, files["mqtt-tls-cert"], files["mqtt-tls-key"])
	authority.Issue(t, 21, files["http-tls-cert"], files["http-tls-key"])
	for url, want := range map[string]int64{s.mqtt: 11, s.http: 21} {
		eventually(t, 20*time.Second, "the new certificate shows at "+url, func() bool { return serial(t, authority, url) == want })
	}
	if status := fleet.status(time.Minute); status != 0 {
		t.Errorf("status %d, %s", status, fleet.stderr)
	}
	in.audit()

	status, _, stderr := command(t, "serve", "--database-dsn="+in.dsn, "--http-tls-cert="+files["http-tls-cert"])
	if status != 1 || !strings.Contains(stderr, "--http-tls-key") {
		t.Errorf("a certificate without its key: status %d, %q", status, stderr)
	}
}

func serial(t *testing.T, authority *certificatetest.Authority, url string) int64 {
	t.Helper()
	_, address, _ := strings.Cut(url, "://")
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: authority.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

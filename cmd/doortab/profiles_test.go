package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	in := newInstallation(t, 0)
	in.serve("--pprof-addr=" + addr)
	for path, want := range map[string]int{"/debug/pprof/heap?debug=1": 200, "/debug/pprof/cmdline": 404, "/v1/products": 404} {
		answer, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, answer.StatusCode, want)
		}
	}
	for _, wrong := range []string{":6060", "0.0.0.0:6060", "example.com:6060", "6060"} {
		status, _, stderr := command(t, "serve", "--database-dsn="+in.dsn, "--http-addr=127.0.0.1:0", "--mqtt-listen=127.0.0.1:0", "--pprof-addr="+wrong)
		if status != 1 || !strings.Contains(stderr, "loopback") {
			t.Errorf("%s: status %d, %q", wrong, status, stderr)
		}
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"doortab/services"
)

// shell runs what the pages in docs say, where a private MariaDB is the one that the clients find by themselves.
type shell struct {
	t   *testing.T
	dir string // the working folder
	env []string
}

func newShell(t *testing.T, server *services.MariaDB, dsn string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket, _, _ := strings.Cut(strings.TrimPrefix(server.DSN("x"), "root@unix("), ")")
	s.write(".my.cnf", "[client]\nuser=root\nsocket="+socket+"\n", 0o600)
	s.write("bin/doortab", fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, self), 0o700)
	s.write("bin/systemctl", "#!/bin/sh\n", 0o700) // the tests start and stop processes of their own
	s.env = append(withoutSettings(os.Environ()), "HOME="+s.dir, "PATH="+s.dir+"/bin:"+os.Getenv("PATH"), "DOORTAB_DATABASE_DSN="+dsn)
	return s
}

func (s *shell) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) run(script string) string {
	s.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	said, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s\n%v:\n%s", script, err, said)
	}
	return string(said)
}

// page returns the code blocks of a kind (sh, sql) under a heading of a page in docs.
func page(t *testing.T, name, heading, kind string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", name, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range strings.Split(section, "\n```"+kind+"\n")[1:] {
		code, _, closed := strings.Cut(block, "\n```")
		if !closed {
			t.Fatalf("%s: a block under %q has no end", name, heading)
		}
		blocks = append(blocks, code)
	}
	return blocks
}

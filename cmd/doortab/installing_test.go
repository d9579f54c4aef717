package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"doortab/certificate/certificatetest"
	"doortab/database/databasetest"
	"doortab/services"
	"doortab/services/servicestest"
)

// docs/installing.md from the database to a selling cabinet, without root: the account has no more than the page gives it, and the
// settings are the page's own, at ports and in folders of the test.
func TestInstallingPage(t *testing.T) {
	t.Parallel()
	options := servicestest.Small()
	options.Program = "" // the page is about MariaDB
	server := servicestest.Start(t, services.Options{MariaDB: options}).MariaDB
	sh := newShell(t, server, "")
	sh.write("grants.sql", page(t, "installing.md", "## 2. The database", "sql")[0], 0o600)
	sh.run("mariadb < grants.sql")
	socket := strings.TrimSpace(sh.run("mariadb -Ne 'SELECT @@socket'"))

	authority := certificatetest.New(t)
	authority.Issue(t, 1, filepath.Join(sh.dir, "cert.pem"), filepath.Join(sh.dir, "key.pem"))
	settings := page(t, "installing.md", "## 3. Settings", "sh")[1]
	for from, to := range map[string]string{
		"/run/mysqld/mysqld.sock": socket, "=:8883": "=127.0.0.1:0", "=:8443": "=127.0.0.1:0", "/etc/doortab/": sh.dir + "/",
	} {
		if !strings.Contains(settings, from) {
			t.Fatalf("the settings have no %q", from)
		}
		settings = strings.ReplaceAll(settings, from, to)
	}
	sh.write("doortab.env", settings, 0o600)
	first := strings.ReplaceAll(page(t, "installing.md", "## 4. The schema and a first token", "sh")[0], "/etc/doortab/", "./")
	said := sh.run(first)
	token := regexp.MustCompile(`"role":"admin","token":"([^"]+)"`).FindStringSubmatch(said)
	if token == nil || !strings.Contains(said, "applied 1") {
		t.Fatalf("migrate and token say %s", said)
	}

	in := &installation{t: t, client: newHTTPClient(t, token[1])}
	in.client.trust(authority.Pool())
	withSettings := "set -a; . " + sh.dir + "/doortab.env; set +a\n"
	sh.write("bin/installed", "#!/bin/sh\n"+withSettings+"exec "+sh.dir+"/bin/doortab \"$@\"\n", 0o700)
	s := in.awaitServing(startProgram(t, filepath.Join(sh.dir, "bin/installed"), "serve"))
	added := sh.run(withSettings + page(t, "installing.md", "## 7. The first cabinet", "sh")[0])
	if !strings.Contains(added, `"username":"1001"`) {
		t.Errorf("cabinet add says %s", added)
	}
	sh.run("mariadb doortab -e 'DELETE FROM cabinets'") // the simulated ones have its number
	simulate := page(t, "installing.md", "## 6. A rehearsal", "sh")[0]
	for from, to := range map[string]string{
		"https://server.example:8443": s.http, "mqtts://server.example:8883": s.mqtt, "TOKEN": token[1], "30s": "3s",
	} {
		simulate = strings.ReplaceAll(simulate, from, to)
	}
	if said := sh.run(simulate + " --ca-file " + authority.File); !strings.Contains(said, "lost 0 doubled 0 drift 0") {
		t.Errorf("simulate says %s", said)
	}
	in.dsn = fmt.Sprintf("doortab:a long password@unix(%s)/doortab", socket)
	in.db = databasetest.Open(t, in.dsn)
	in.audit()
	s.signal(syscall.SIGTERM)
	if status := s.status(stopLimit); status != 0 {
		t.Errorf("it ends with status %d", status)
	}
	sh.write("mosquitto.sql", page(t, "brokers.md", "## Mosquitto", "sql")[0], 0o600)
	sh.run("mariadb < mosquitto.sql")
	restricted := fmt.Sprintf("doortab_mosquitto:another password@unix(%s)/doortab", socket)
	passwords := sh.run("doortab mosquitto passwords --database-dsn '" + restricted + "' --file passwords && cat passwords")
	if strings.Count(passwords, ":$7$") < 5 {
		t.Errorf("by the account that reads two columns: %s", passwords)
	}
	if said := sh.run("doortab audit --database-dsn '" + restricted + "' 2>&1 || true"); !strings.Contains(said, "denied") {
		t.Errorf("the account reads more: %s", said)
	}
}

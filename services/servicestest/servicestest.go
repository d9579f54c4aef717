// Package servicestest gives tests real servers: one MariaDB, Redis and Mosquitto for a test process, each started when a test
// first asks for it, and private ones for tests that stop or kill them.
//
// A package's TestMain calls Main, which stops what was started and looks for goroutines that were left behind.
package servicestest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"doortab/services"
)

// MySQLVariable names the environment variable with a MySQL server program to test on instead of the installed MariaDB;
// scripts/mysql9 prints one.
const MySQLVariable = "DOORTAB_TEST_MYSQL"

// Small is the size of MariaDB in tests. It is as durable as any other.
func Small() *services.MariaDBOptions {
	return &services.MariaDBOptions{BufferPoolMiB: 32, LogMiB: 16, Program: os.Getenv(MySQLVariable)}
}

// shared is a service that is started once for the test process, as a group of its own.
type shared struct {
	once    sync.Once
	options services.Options
	group   *services.Group
	err     error
}

var (
	sharedMariaDB   = shared{options: services.Options{MariaDB: Small()}}
	sharedRedis     = shared{options: services.Options{Redis: &services.RedisOptions{}}}
	sharedMosquitto = shared{options: services.Options{Mosquitto: &services.MosquittoOptions{}}}
)

func (s *shared) start(t testing.TB) *services.Group {
	t.Helper()
	s.once.Do(func() { s.group, s.err = services.Start(context.Background(), s.options) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.group
}

// MariaDB is the test process's own database server. Tests share it, so each makes a database of its own in it.
func MariaDB(t testing.TB) *services.MariaDB {
	t.Helper()
	return sharedMariaDB.start(t).MariaDB
}

// Redis is the test process's own Redis. Tests share it, so each uses keys of its own and flushes nothing.
func Redis(t testing.TB) *services.Redis {
	t.Helper()
	return sharedRedis.start(t).Redis
}

// Mosquitto is the test process's own broker with its stock settings, open to every client. Tests share it, so each uses
// topics and client ids of its own.
func Mosquitto(t testing.TB) *services.Mosquitto {
	t.Helper()
	return sharedMosquitto.start(t).Mosquitto
}

// Start runs services for one test alone, which may stop, pause and kill them; they are stopped at its end. Small is a MariaDB
// for it.
func Start(t testing.TB, o services.Options) *services.Group {
	t.Helper()
	g, err := services.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// Main runs a package's tests, stops the shared services, fails when goroutines are left, and ends the process.
func Main(m *testing.M, ignored ...goleak.Option) {
	code := m.Run()
	for _, s := range []*shared{&sharedMariaDB, &sharedRedis, &sharedMosquitto} {
		if s.group == nil {
			continue
		}
		if err := s.group.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(ignored...); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

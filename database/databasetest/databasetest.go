// Package databasetest gives each test a migrated schema of its own on the real database of
// its test process.
package databasetest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"doortab/database"
	"doortab/migrations"
	"doortab/services/servicestest"
)

var created atomic.Int64

// New returns an open database on a fresh, migrated schema, dropped when the test ends.
func New(t testing.TB) *database.DB {
	t.Helper()
	db, _ := NewWithDSN(t)
	return db
}

// NewWithDSN is [New] with the DSN, for a test that starts a process of its own.
func NewWithDSN(t testing.TB) (*database.DB, string) {
	t.Helper()
	dsn := Empty(t)
	db := Open(t, dsn)
	if _, err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	return db, dsn
}

// Empty creates a schema without tables and returns its DSN.
func Empty(t testing.TB) string {
	t.Helper()
	server := servicestest.MariaDB(t)
	name := fmt.Sprintf("test_%d", created.Add(1))
	admin := Open(t, server.DSN("mysql"))
	if _, err := admin.SQL().Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.SQL().Exec("DROP DATABASE " + name); err != nil && !strings.Contains(err.Error(), "connect") {
			t.Error(err)
		}
	})
	return server.DSN(name)
}

// Open opens a DSN for the length of a test.
func Open(t testing.TB, dsn string) *database.DB {
	t.Helper()
	db, err := database.Open(database.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

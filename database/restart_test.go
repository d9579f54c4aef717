package database_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/services"
	"doortab/services/servicestest"
)

// TestServerThatRestarts: the pool goes on with the same handle, whatever became of its connections.
func TestServerThatRestarts(t *testing.T) {
	t.Parallel()
	server := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()}).MariaDB
	admin := open(t, database.Config{DSN: server.DSN("mysql"), Pool: 1})
	exec(t, admin, "CREATE DATABASE doortab")
	exec(t, admin, "CREATE TABLE doortab.counters (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB")
	exec(t, admin, "INSERT INTO doortab.counters VALUES (1, 0)")
	db := open(t, database.Config{DSN: server.DSN("doortab"), Pool: 4})
	warm(t, db, 4)

	for i, c := range []struct {
		name string
		end  func() error
	}{
		{"stopped", func() error { return server.Stop(context.Background()) }},
		{"killed", server.Kill},
	} {
		attempts := 0
		err := db.InTx(t.Context(), func(tx *gorm.DB) error {
			attempts++
			if err := add(tx, 1); err != nil {
				return err
			}
			if err := c.end(); err != nil {
				t.Error(err)
			}
			return tx.Exec("SELECT 1").Error
		})
		if database.ClassOf(err) != database.BackPressure || attempts != 1 {
			t.Errorf("%s: class %s after %d attempts: %v", c.name, database.ClassOf(err), attempts, err)
		}
		began := time.Now()
		if err := db.Ping(t.Context()); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("%s: ping says %v after %s", c.name, err, time.Since(began))
		}

		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := value(t, db, 1); got != i {
			t.Errorf("%s: counted %d, not %d", c.name, got, i)
		}
		if err := db.InTx(t.Context(), func(tx *gorm.DB) error { return add(tx, 1) }); err != nil {
			t.Errorf("%s, then started: %v", c.name, err)
		}
		warm(t, db, 4)
	}
}

// warm opens so many connections at the same time and gives them back to the pool.
func warm(t *testing.T, db *database.DB, count int) {
	t.Helper()
	for range count {
		conn, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
}

package database_test

import (
	"testing"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

// counters makes a schema with two rows of one table.
func counters(t *testing.T) (*database.DB, string) {
	t.Helper()
	dsn := databasetest.Empty(t)
	db := databasetest.Open(t, dsn)
	exec(t, db, "CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL, name VARCHAR(5) NOT NULL DEFAULT '', at DATETIME(3) NULL) ENGINE=InnoDB")
	exec(t, db, "INSERT INTO counters (id, n) VALUES (1, 0), (2, 0)")
	return db, dsn
}

func exec(t *testing.T, db *database.DB, statement string, args ...any) {
	t.Helper()
	if err := db.Read(t.Context()).Exec(statement, args...).Error; err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// value reads n of a row, -1 where there is none.
func value(t *testing.T, db *database.DB, id int) int {
	t.Helper()
	n := -1
	if err := db.Read(t.Context()).Raw("SELECT n FROM counters WHERE id = ?", id).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

func open(t *testing.T, config database.Config) *database.DB {
	t.Helper()
	db, err := database.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

package database_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/services"
	"doortab/services/servicestest"
)

// Rows for a prepared statement whose values go to the driver at once, and for one whose values database/sql takes.
const many, few = 40, 2

func insertSome(tx *gorm.DB, from, count int) error {
	rows := make([][]any, count)
	for i := range rows {
		rows[i] = []any{from + i, 1}
	}
	return database.Insert(tx, "counters", []string{"id", "n"}, rows, "")
}

func TestAConnectionThatIsGoneBeforeAPreparedStatement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		known bool
		rows  int
	}{
		{"many rows whose text is prepared", true, many}, {"many rows", false, many},
		{"few rows whose text is prepared", true, few}, {"few rows", false, few},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			direct, dsn := counters(t)
			db := open(t, database.Config{DSN: dsn, Pool: 1})
			if c.known {
				if err := db.InTx(t.Context(), func(tx *gorm.DB) error { return insertSome(tx, 1000, c.rows) }); err != nil {
					t.Fatal(err)
				}
			}
			attempts, done := 0, make(chan error, 1)
			go func() {
				done <- db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
					attempts = attempt
					if attempt == 1 {
						killConnection(t, direct, tx)
					}
					return insertSome(tx, 2000, c.rows)
				})
			}()
			select {
			case err := <-done:
				if err != nil || attempts != 2 {
					t.Errorf("%d attempts, error %v", attempts, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it waits for its own transaction to end")
			}
			if n := value(t, direct, 2000+c.rows-1); n != 1 {
				t.Errorf("the last row has n = %d", n)
			}
		})
	}
}

// killConnection has the server end tx's connection, and returns when it has.
func killConnection(t *testing.T, direct *database.DB, tx *gorm.DB) {
	t.Helper()
	var id int64
	err := tx.Raw("SELECT CONNECTION_ID()").Scan(&id).Error
	if err == nil {
		err = direct.Read(t.Context()).Exec("KILL ?", id).Error
	}
	for left := 1; left > 0 && err == nil; {
		err = direct.Read(t.Context()).Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", id).Scan(&left).Error
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAServerThatPreparesNothingMore(t *testing.T) {
	t.Parallel()
	server := servicestest.Start(t, services.Options{MariaDB: servicestest.Small()}).MariaDB
	db := open(t, database.Config{DSN: server.DSN("mysql")})
	exec(t, db, "CREATE DATABASE doortab")
	exec(t, db, "CREATE TABLE doortab.counters (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB")
	exec(t, db, "SET GLOBAL max_prepared_stmt_count = 0")
	db = open(t, database.Config{DSN: server.DSN("doortab"), Pool: 1})
	err := db.InTx(t.Context(), func(tx *gorm.DB) error {
		if err := errors.Join(insertSome(tx, 1000, few), insertSome(tx, 2000, many)); err != nil {
			return err
		}
		rows, err := database.ReadEach(tx, "counters", []database.Column{database.Int("id")}, []string{"n"}, [][]any{{1001}})
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		if !rows.Next() {
			t.Error("a row that was inserted is not found")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := value(t, db, 1000), value(t, db, 2000+many-1); first != 1 || last != 1 {
		t.Errorf("the rows have n = %d and %d", first, last)
	}
}

package database_test

import (
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
)

// questions is how many statements the server had from a connection, this one not counted.
func questions(t *testing.T, db *database.DB) (n int) {
	t.Helper()
	var name string
	if err := db.SQL().QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATransactionBeginsWithItsFirstStatement(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn, Pool: 1})
	once := func() {
		t.Helper()
		if err := db.InTx(t.Context(), func(tx *gorm.DB) error { return add(tx, 1) }); err != nil {
			t.Fatal(err)
		}
	}
	before := questions(t, db)
	for range 10 {
		once()
	}
	const turns, asking = 2, 1 // autocommit goes off and on again
	if n := questions(t, db) - before; n != 10*2+turns+asking {
		t.Errorf("10 transactions of one statement and its COMMIT took %d statements", n)
	}
	if n := value(t, open(t, database.Config{DSN: dsn}), 1); n != 10 {
		t.Errorf("%d of 10 were committed", n)
	}
}

func TestWhatBelongsToNoTransactionCommitsByItself(t *testing.T) {
	t.Parallel()
	other, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn, Pool: 1})
	failed := errors.New("on purpose")
	for name, outside := range map[string]func() error{
		"exec":     func() error { return db.Read(t.Context()).Exec("UPDATE counters SET n = n + 1 WHERE id = 1").Error },
		"prepared": func() error { return prepared(t, db.SQL(), "UPDATE counters SET n = n + 1 WHERE id = 1") },
		"read only": func() error {
			tx, err := db.SQL().BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
			if err != nil {
				return err
			}
			exec(t, other, "UPDATE counters SET n = n + 1 WHERE id = 1")
			return tx.Rollback()
		},
	} {
		before := value(t, other, 1)
		for _, fails := range []error{nil, failed} {
			err := db.InTx(t.Context(), func(tx *gorm.DB) error { return errors.Join(add(tx, 2), fails) })
			if !errors.Is(err, fails) {
				t.Fatalf("%s: %v", name, err)
			}
			if err := outside(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			before++
			if n := value(t, other, 1); n != before {
				t.Errorf("%s: %d, want %d", name, n, before)
			}
		}
	}
	if n := value(t, other, 2); n != 3 {
		t.Errorf("%d of 3 transactions were committed", n)
	}
	value(t, db, 1)
	exec(t, other, "ALTER TABLE counters ADD COLUMN more INT NULL") // which a transaction left open would hold up
}

func prepared(t *testing.T, db *sql.DB, text string) error {
	t.Helper()
	s, err := db.PrepareContext(t.Context(), text)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	_, err = s.ExecContext(t.Context())
	return err
}

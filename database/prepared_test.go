package database_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// many is enough rows for a prepared statement.
const many = 40

func insertMany(tx *gorm.DB, from int) error {
	rows := make([][]any, many)
	for i := range rows {
		rows[i] = []any{from + i, 1}
	}
	return database.Insert(tx, "counters", []string{"id", "n"}, rows, "")
}

func TestAConnectionThatIsGoneBeforeAPreparedStatement(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"its text is prepared": true, "it is not prepared yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct, dsn := counters(t)
			db := open(t, database.Config{DSN: dsn, Pool: 1})
			if known {
				if err := db.InTx(t.Context(), func(tx *gorm.DB) error { return insertMany(tx, 1000) }); err != nil {
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
					return insertMany(tx, 2000)
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
			if n := value(t, direct, 2000+many-1); n != 1 {
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

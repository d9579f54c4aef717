package database_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
)

// once lets the first statement that begins with a word meet its fate, and all others pass.
func once(word string, f fate) func(string) fate {
	var met atomic.Bool
	return func(statement string) fate {
		if strings.HasPrefix(statement, word) && met.CompareAndSwap(false, true) {
			return f
		}
		return pass
	}
}

// insert is what a settlement begins with: a key that can be taken only once.
func insert(tx *gorm.DB) error {
	return tx.Exec("INSERT INTO counters (id, n) VALUES (9, 1)").Error
}

func TestLostConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		fate     func(string) fate
		attempts int
		class    string // of the first attempt, as the log tells it
		there    bool   // whether the second attempt finds what the first one wrote
	}{
		{"before BEGIN", once("SET autocommit = 0", loseIt), 1, "retry", false},
		{"before the statement", once("INSERT", loseIt), 2, "retry", false},
		{"after the statement", once("INSERT", loseAnswer), 2, "retry", false},
		{"before COMMIT", once("COMMIT", loseIt), 2, "unknown", false},
		{"after COMMIT", once("COMMIT", loseAnswer), 2, "unknown", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			direct, dsn := counters(t)
			var log lines
			db := open(t, database.Config{DSN: throughProxy(t, dsn, c.fate), Logger: log.logger()})
			attempts, there := 0, false
			var connections [2]int64
			err := db.InTx(t.Context(), func(tx *gorm.DB) error {
				attempts++
				if err := tx.Raw("SELECT CONNECTION_ID()").Scan(&connections[attempts%2]).Error; err != nil {
					return err
				}
				err := insert(tx)
				there = database.IsDuplicate(err)
				return err
			})
			if there != c.there || (err != nil) != c.there {
				t.Errorf("the key was there: %t, error %v", there, err)
			}
			if attempts != c.attempts || connections[0] == connections[1] {
				t.Errorf("%d attempts, on connections %v", attempts, connections)
			}
			if !strings.Contains(log.text(), "class="+c.class) {
				t.Errorf("logged %q, not class %s", log.text(), c.class)
			}
			if value(t, direct, 9) != 1 {
				t.Error("the row isn't there")
			}
		})
	}
}

func TestCommitThatNeverGetsThroughStaysUnknown(t *testing.T) {
	t.Parallel()
	direct, dsn := counters(t)
	db := open(t, database.Config{DSN: throughProxy(t, dsn, func(statement string) fate {
		if statement == "COMMIT" {
			return loseIt
		}
		return pass
	})})
	attempts := 0
	err := db.InTx(t.Context(), func(tx *gorm.DB) error {
		attempts++
		return insert(tx)
	})
	if database.ClassOf(err) != database.Unknown || attempts != 8 {
		t.Errorf("class %s after %d attempts: %v", database.ClassOf(err), attempts, err)
	}
	if value(t, direct, 9) != -1 {
		t.Error("the row is there")
	}
}

// TestRefusedEndOfTransaction: the server keeps the transaction open, and the next BEGIN on its connection would commit it.
func TestRefusedEndOfTransaction(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, c := range []struct {
		end  string
		work func(*gorm.DB) error
	}{
		{"COMMIT", insert},
		{"ROLLBACK", func(tx *gorm.DB) error { return errors.Join(insert(tx), refused) }},
	} {
		t.Run(c.end, func(t *testing.T) {
			t.Parallel()
			direct, dsn := counters(t)
			db := open(t, database.Config{DSN: throughProxy(t, dsn, once(c.end, spoil)), Pool: 1})
			if err := db.InTx(t.Context(), c.work); err == nil {
				t.Fatal("no error")
			}
			err := db.InTx(t.Context(), func(tx *gorm.DB) error {
				return tx.Exec("UPDATE counters SET n = 5 WHERE id = 1").Error
			})
			if err != nil {
				t.Error(err)
			}
			if value(t, direct, 9) != -1 || value(t, direct, 1) != 5 {
				t.Errorf("rows: %d of the refused transaction, %d of the next", value(t, direct, 9), value(t, direct, 1))
			}
		})
	}
}

// lines keeps what is logged.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

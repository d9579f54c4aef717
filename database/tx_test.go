package database_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

var errRefused = errors.New("refused")

func add(tx *gorm.DB, id int) error {
	return tx.Exec("UPDATE counters SET n = n + 1 WHERE id = ?", id).Error
}

func TestInTx(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		result   func(attempt int) error // what work returns after it has counted
		attempts int
		counted  int
		wantErr  error
		class    database.Class
	}{
		{
			name:   "commits",
			result: func(int) error { return nil }, attempts: 1, counted: 1,
		},
		{
			name:   "rolls back",
			result: func(int) error { return errRefused }, attempts: 1, wantErr: errRefused, class: database.Permanent,
		},
		{
			name: "runs the whole of it again after a conflict",
			result: func(attempt int) error {
				if attempt < 4 {
					return database.ErrConflict
				}
				return nil
			}, attempts: 4, counted: 1,
		},
		{
			name:   "gives up after 8 runs",
			result: func(int) error { return database.ErrConflict }, attempts: 8, wantErr: database.ErrConflict, class: database.Retry,
		},
		{
			name:     "takes a final error at its word",
			result:   func(int) error { return database.Final(database.ErrConflict) },
			attempts: 1, wantErr: database.ErrConflict, class: database.Retry,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db, _ := counters(t)
			var attempts []int
			err := db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
				attempts = append(attempts, attempt)
				if err := add(tx, 1); err != nil {
					return err
				}
				return c.result(attempt)
			})
			if !errors.Is(err, c.wantErr) || err != nil && database.ClassOf(err) != c.class {
				t.Errorf("class %s: %v", database.ClassOf(err), err)
			}
			if want := []int{1, 2, 3, 4, 5, 6, 7, 8}[:c.attempts]; !slices.Equal(attempts, want) {
				t.Errorf("attempts %v", attempts)
			}
			if value(t, db, 1) != c.counted {
				t.Errorf("counted %d times", value(t, db, 1))
			}
		})
	}
}

func TestPanicRollsBack(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn, Pool: 1}) // a connection that isn't given back would be missed
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = db.InTx(t.Context(), func(tx *gorm.DB) error {
			if err := add(tx, 1); err != nil {
				return err
			}
			panic("of an event")
		})
	}()
	if value(t, db, 1) != 0 {
		t.Error("the half of it was committed")
	}
}

// TestDeadlock lets two transactions take the same rows in opposite order.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	db, _ := counters(t)
	hasFirst := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	attempts := [2]int{}
	done := make(chan error, 2)
	for i := range 2 {
		go func() {
			done <- db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
				attempts[i] = attempt
				if err := add(tx, 1+i); err != nil {
					return err
				}
				if attempt == 1 {
					close(hasFirst[i])
					<-hasFirst[1-i]
				}
				return add(tx, 2-i)
			})
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if value(t, db, 1) != 2 || value(t, db, 2) != 2 {
		t.Errorf("counted %d and %d, not 2 and 2", value(t, db, 1), value(t, db, 2))
	}
	if slices.Sort(attempts[:]); attempts != [2]int{1, 2} {
		t.Errorf("attempts %v: no deadlock, or more than one", attempts)
	}
}

// TestLockWait: 1205 undoes one statement only, so the whole must run again.
func TestLockWait(t *testing.T) {
	t.Parallel()
	db, _ := counters(t)
	release := hold(t, db)
	err := db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
		if attempt == 2 {
			release()
		}
		if err := add(tx, 2); err != nil {
			return err
		}
		return add(tx, 1)
	})
	if err != nil {
		t.Error(err)
	}
	if value(t, db, 1) != 1 || value(t, db, 2) != 1 {
		t.Errorf("counted %d and %d, not 1 and 1", value(t, db, 1), value(t, db, 2))
	}
}

func TestRowThatStaysLocked(t *testing.T) {
	t.Parallel()
	db, _ := counters(t)
	hold(t, db)
	attempts := 0
	err := db.InTx(t.Context(), func(tx *gorm.DB) error {
		attempts++
		var n int
		return tx.Raw("SELECT n FROM counters WHERE id = 1 FOR UPDATE NOWAIT").Scan(&n).Error
	})
	if !database.IsLockWait(err) || database.ClassOf(err) != database.Retry || attempts != 3 {
		t.Errorf("class %s after %d attempts: %v", database.ClassOf(err), attempts, err)
	}
}

// hold locks row 1 until release is called or the test ends.
func hold(t *testing.T, db *database.DB) (release func()) {
	t.Helper()
	tx, err := db.SQL().BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = tx.Rollback() }
	t.Cleanup(release)
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT n FROM counters WHERE id = 1 FOR UPDATE").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return release
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		before    bool // cancelled before the call, else inside work
		result    error
		attempts  int
		committed bool
	}{
		{"before the first run", true, nil, 0, false},
		{"inside work, which ends well", false, nil, 1, true},
		{"inside work, which would run again", false, database.ErrConflict, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db, _ := counters(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.before {
				cancel()
			}
			attempts := 0
			err := db.InTx(ctx, func(tx *gorm.DB) error {
				attempts++
				cancel()
				if err := add(tx, 1); err != nil {
					return err
				}
				return c.result
			})
			if attempts != c.attempts || value(t, db, 1) == 1 != c.committed {
				t.Errorf("%d attempts, counted %d", attempts, value(t, db, 1))
			}
			if c.committed != (err == nil) || !c.committed && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if c.before && database.ClassOf(err) != database.BackPressure {
				t.Errorf("class %s", database.ClassOf(err))
			}
		})
	}
}

func TestNoFreeConnection(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn, Pool: 1})
	hold(t, db)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := db.InTx(ctx, func(*gorm.DB) error { return nil })
	if database.ClassOf(err) != database.BackPressure || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("class %s: %v", database.ClassOf(err), err)
	}
}

func TestInsert(t *testing.T) {
	t.Parallel()
	db, _ := counters(t)
	columns := []string{"id", "n", "name"}
	for _, c := range []struct {
		name   string
		rows   [][]any
		suffix string
		dup    bool
	}{
		{"no rows", nil, "", false},
		{"several rows", [][]any{{3, 30, "c"}, {4, 40, "a ' ?"}}, "", false},
		{"a key that is taken", [][]any{{5, 50, ""}, {3, 31, ""}}, "", true},
		{"a key that is taken, with an answer to it", [][]any{{4, 41, ""}}, "ON DUPLICATE KEY UPDATE n = n + 1", false},
	} {
		err := db.InTx(t.Context(), func(tx *gorm.DB) error { return database.Insert(tx, "counters", columns, c.rows, c.suffix) })
		if database.IsDuplicate(err) != c.dup || err != nil && !c.dup {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
	for id, want := range map[int]int{3: 30, 4: 41, 5: -1} {
		if got := value(t, db, id); got != want {
			t.Errorf("row %d: %d, not %d", id, got, want)
		}
	}
}

package database_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"doortab/database"
)

// inTurn works in a transaction of its own.
func inTurn(ctx context.Context, db *database.DB, work func(tx *gorm.DB) error, names ...string) error {
	defer db.Turn(ctx, names)()
	return db.InTx(ctx, work)
}

// Who shares a turn works one after the other, also with a failure in between; who doesn't, at the same time.
func TestTurns(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	var inside, met atomic.Int64
	var all errgroup.Group
	for n := range 4 {
		db := open(t, database.Config{DSN: dsn})
		all.Go(func() error {
			for round := range 5 {
				err := inTurn(t.Context(), db, func(tx *gorm.DB) error {
					if inside.Add(1) > 1 {
						met.Add(1)
					}
					defer inside.Add(-1)
					if round == n {
						return errors.New("fails")
					}
					return add(tx, 1)
				}, "1", "2")
				if (err != nil) != (round == n) {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	db := open(t, database.Config{DSN: dsn})
	if n := value(t, db, 1); n != 16 || met.Load() > 0 {
		t.Errorf("%d of 16 were counted, %d met another in its turn", n, met.Load())
	}
	defer db.Turn(t.Context(), []string{"1"})()
	defer open(t, database.Config{DSN: dsn}).Turn(t.Context(), []string{"2"})()
	const holder = "SELECT COALESCE(IS_USED_LOCK(CONCAT(?, '-', ?)), 0)"
	var prefix string
	var holders [2]int64
	err := db.SQL().QueryRow("SELECT " + database.LockName("")).Scan(&prefix)
	for n := range holders {
		err = errors.Join(err, db.SQL().QueryRow(holder, prefix, n+1).Scan(&holders[n]))
	}
	if err != nil || holders[0] == 0 || holders[1] == 0 || holders[0] == holders[1] {
		t.Errorf("the turns are those of connections %v: %v", holders, err)
	}
}

// A turn saves work and decides nothing: who doesn't get it goes on, after one second for all its names together.
func TestATurnThatIsNotGivenBack(t *testing.T) {
	t.Parallel()
	db, dsn := counters(t)
	names := []string{"7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18"}
	leave := db.Turn(t.Context(), names)
	defer leave()
	began := time.Now()
	err := inTurn(t.Context(), open(t, database.Config{DSN: dsn}), func(tx *gorm.DB) error { return add(tx, 1) }, names...)
	if waited := time.Since(began); err != nil || waited < 500*time.Millisecond || waited > 10*time.Second {
		t.Errorf("after %s: %v", waited, err)
	}
}

// Each holder of a turn also needs a connection for its transaction.
func TestTurnsTakeNoConnectionFromTransactions(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn, Pool: 2})
	for _, name := range []string{"1", "2"} {
		defer db.Turn(t.Context(), []string{name})()
	}
	if err := db.InTx(t.Context(), func(tx *gorm.DB) error { return add(tx, 1) }); err != nil {
		t.Error(err)
	}
}

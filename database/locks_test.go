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

func turns(names ...string) func() []string { return func() []string { return names } }

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
				err := db.InTurns(t.Context(), turns("1", "2"), func(tx *gorm.DB, _ int) error {
					if inside.Add(1) > 1 {
						met.Add(1)
					}
					defer inside.Add(-1)
					if round == n {
						return errors.New("fails")
					}
					return add(tx, 1)
				})
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
	err := db.InTurns(t.Context(), turns("1"), func(*gorm.DB, int) error {
		return open(t, database.Config{DSN: dsn}).InTurns(t.Context(), turns("2"), func(*gorm.DB, int) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}

// A turn saves work and decides nothing: who doesn't get it goes on.
func TestATurnThatIsNotGivenBack(t *testing.T) {
	t.Parallel()
	db, dsn := counters(t)
	taken, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.InTurns(context.Background(), turns("7"), func(*gorm.DB, int) error {
			close(taken)
			<-release
			return nil
		})
	}()
	<-taken
	began := time.Now()
	err := open(t, database.Config{DSN: dsn}).InTurns(t.Context(), turns("7"), func(tx *gorm.DB, _ int) error { return add(tx, 1) })
	if waited := time.Since(began); err != nil || waited < 500*time.Millisecond || waited > 10*time.Second {
		t.Errorf("after %s: %v", waited, err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

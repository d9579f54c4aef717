package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

const (
	txTries     = 8
	txFirstWait = 2 * time.Millisecond
	txMaxWait   = 200 * time.Millisecond
)

// InTx runs work in a READ COMMITTED transaction and commits it. Errors of class [Retry] and
// [Unknown] roll back and run the whole of it again, at most 8 times with jittered waits; so
// work must change nothing but through tx, and must begin with what makes a second run
// harmless: the insert of a key, or a compare-and-set. Other errors, and the last one, are
// returned, with [ClassOf] intact. Every error inside work must be returned from it.
//
// A cancelled ctx stops before the next run, never inside one: a COMMIT that is cut off would
// leave an unknown outcome.
func (db *DB) InTx(ctx context.Context, work func(tx *gorm.DB) error) error {
	return db.InTxCounted(ctx, func(tx *gorm.DB, _ int) error { return work(tx) })
}

// Snapshot gives read a transaction that sees all tables as of its first statement. It writes nothing.
func (db *DB) Snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return db.Read(ctx).Transaction(read, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// InTxCounted is [DB.InTx] for work that goes about its later attempts differently; the
// first attempt is 1.
func (db *DB) InTxCounted(ctx context.Context, work func(tx *gorm.DB, attempt int) error) error {
	wait := txFirstWait
	for attempt := 1; ; attempt++ {
		err := db.once(ctx, func(tx *gorm.DB) error { return work(tx, attempt) })
		class := ClassOf(err)
		if err == nil || attempt == txTries || (class != Retry && class != Unknown) || stuck(err, attempt) {
			return err
		}
		db.log.Debug("Transaction runs again.", "attempt", attempt, "class", class, "error", err)
		if !pause(ctx, wait/2+rand.N(wait)) { //nolint:gosec // jitter needs no secret randomness
			return errors.Join(err, ctx.Err())
		}
		wait = min(wait*2, txMaxWait)
	}
}

// stuck gives up early on a row that stays locked: each further try costs a whole
// [LockWait], which the caller can spend better.
func stuck(err error, attempt int) bool {
	var final *finalError
	return errors.As(err, &final) || IsLockWait(err) && attempt >= 3
}

// Final makes [DB.InTx] return err without another run; its class stays what it was.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func (db *DB) once(ctx context.Context, work func(tx *gorm.DB) error) (err error) {
	conn, err := db.sql.Conn(ctx)
	if err != nil {
		return &connectError{err}
	}
	defer func() { _ = conn.Close() }()
	ctx = context.WithoutCancel(ctx)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	committed := false
	defer func() {
		// A transaction that the server kept open would be committed by the next BEGIN on its connection.
		if !committed && tx.Rollback() != nil { // also when work panics
			discard(conn)
		}
	}()
	handle := db.gorm.Session(&gorm.Session{NewDB: true, Context: ctx})
	handle.Statement.ConnPool = begun(ctx, tx, conn)
	if err := work(handle); err != nil {
		return err
	}
	committed = true
	if err := commit(tx); err != nil {
		discard(conn)
		return err
	}
	return nil
}

func commit(tx *sql.Tx) error {
	err := tx.Commit()
	if err == nil {
		return nil
	}
	var answered *mysql.MySQLError
	if !errors.As(err, &answered) || isShutdown(err) {
		return &commitError{err}
	}
	return fmt.Errorf("commit: %w", err)
}

// isShutdown: the server may have committed before it said that it was going down.
func isShutdown(err error) bool {
	return hasNumber(err, 1053) || hasNumber(err, 1317) || hasNumber(err, 1927)
}

// discard closes the connection instead of giving it back to the pool; the server then rolls
// back what it had open.
func discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

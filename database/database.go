// Package database opens Doortab's MySQL-compatible database with every setting that
// correctness needs, and keeps the one door for transactions, [DB.InTx].
//
// Settings that a rule depends on are set here and override what a DSN says: times in UTC and
// cut to the millisecond, strict SQL mode, READ COMMITTED, a lock wait of seconds, parameters
// interpolated by the client, connections that are renewed before a proxy drops them.
package database

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const (
	// LockWait is how long a statement waits for a row lock before it fails with 1205.
	LockWait = 2 * time.Second
	// TableWait is how long it waits for a table that another session alters or, for a migration, still reads. Every later
	// statement on that table waits behind a migration that waits, for as long as the server's default of a day.
	TableWait = 10 * time.Second

	defaultAnswerWait = 30 * time.Second

	defaultPool = 16
)

// Config says which database to open.
type Config struct {
	// DSN has go-sql-driver's form: user:password@tcp(host:port)/schema or user@unix(/path)/schema.
	DSN string
	// Pool is the number of connections, open and idle alike; 16 where it is 0. Keep it below
	// the server's max_connections, shared by all processes. Turns take no more beside it.
	Pool int
	// AnswerWait bounds each wait for the server's answer; 30 s where it is 0. It must exceed
	// [LockWait], else a wait for a lock would look like a broken connection. A migration of
	// a large table needs hours.
	AnswerWait time.Duration
	// Logger hears of retries; slog.Default where it is nil.
	Logger *slog.Logger
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	gorm  *gorm.DB
	sql   *sql.DB
	turns *sql.DB // connections that hold named locks, see [DB.Turn]
	log   *slog.Logger
}

// Open prepares the pool without waiting for the server: a server that is down shows at the
// first statement, or at [DB.Ping]. It fails on a DSN that can't be parsed or names no schema.
func Open(config Config) (*DB, error) {
	settings, err := settingsFor(config.DSN, cmp.Or(config.AnswerWait, defaultAnswerWait))
	if err != nil {
		return nil, err
	}
	inner, err := mysql.NewConnector(settings)
	if err != nil {
		return nil, fmt.Errorf("database DSN: %w", err)
	}
	size := config.Pool
	if size <= 0 {
		size = defaultPool
	}
	pool := newPool(&connector{inner}, size)

	log := config.Logger
	if log == nil {
		log = slog.Default()
	}
	handle, err := gorm.Open(
		gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}),
		&gorm.Config{
			Logger:                 logger.Discard,
			SkipDefaultTransaction: true,
			DisableAutomaticPing:   true,
			NowFunc:                Now,
		})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), pool.Close())
	}
	return &DB{gorm: handle, sql: pool, turns: newPool(inner, size), log: log}, nil
}

func newPool(c driver.Connector, size int) *sql.DB {
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxLifetime(3 * time.Minute)
	return pool
}

// Now is the time as the database keeps it: UTC, cut to the millisecond.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Read returns a fresh statement chain outside any transaction, on the primary.
func (db *DB) Read(ctx context.Context) *gorm.DB {
	return db.gorm.Session(&gorm.Session{NewDB: true, Context: ctx})
}

// SQL is the pool itself, for migrations and for statements that gorm has no form for.
func (db *DB) SQL() *sql.DB { return db.sql }

// Ping asks the server whether it answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.sql.PingContext(ctx); err != nil {
		return fmt.Errorf("%s: %w", remedy(err), err)
	}
	return nil
}

// remedy says what to do about a database that lets nobody in.
func remedy(err error) string {
	switch {
	case hasNumber(err, 1049):
		return "database has no such schema (make it: CREATE DATABASE doortab CHARACTER SET utf8mb4)"
	case hasNumber(err, 1045), hasNumber(err, 1044), hasNumber(err, 1130), hasNumber(err, 1698):
		return "database refuses this user (check DOORTAB_DATABASE_DSN, and GRANT it all rights on the schema)"
	default:
		return "database does not answer (check DOORTAB_DATABASE_DSN and the server)"
	}
}

// Close ends the connections.
func (db *DB) Close() error { return errors.Join(db.sql.Close(), db.turns.Close()) }

package database

import (
	"context"
	"database/sql"
	"strings"

	"gorm.io/gorm"
)

// turnName is an expression: a lock counts for the whole server, so it names the schema. MySQL allows 64 characters.
const turnName = "CONCAT('doortab-', LEFT(SHA2(DATABASE(), 256), 32), '-', ?)"

// InTurns is [DB.InTxCounted] for processes that get in each other's way: before an attempt begins, it takes the named locks that
// turns gives, in that order, which must be the same everywhere, and keeps them until the attempt has ended. They only save
// work: who doesn't get one within a second, goes on without.
func (db *DB) InTurns(ctx context.Context, turns func() []string, work func(tx *gorm.DB, attempt int) error) error {
	return db.attempts(ctx, turns, work)
}

// takeTurns returns what gives the locks back.
func takeTurns(ctx context.Context, conn *sql.Conn, turns []string) (leave func()) {
	if len(turns) == 0 {
		return func() {}
	}
	args := make([]any, len(turns))
	for i, turn := range turns {
		args[i] = turn
	}
	locks := strings.Repeat(", GET_LOCK("+turnName+", 1)", len(turns))
	_, failed := conn.ExecContext(ctx, "DO "+locks[2:], args...)
	return func() {
		if _, err := conn.ExecContext(ctx, "DO RELEASE_ALL_LOCKS()"); err != nil || failed != nil {
			discard(conn)
		}
	}
}

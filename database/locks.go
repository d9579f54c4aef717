package database

import (
	"context"
	"database/sql"
	"strings"
)

// LockName is an SQL expression for a named lock of this schema: such a lock counts for the whole server. The prefix tells its
// uses apart; MySQL allows 64 characters in all, and has no MD5 any more.
func LockName(prefix string) string {
	return "CONCAT('doortab-" + prefix + "', LEFT(SHA2(DATABASE(), 256), 32))"
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
	locks := strings.Repeat(", GET_LOCK(CONCAT("+LockName("")+", '-', ?), 1)", len(turns))
	_, failed := conn.ExecContext(ctx, "DO "+locks[2:], args...)
	return func() {
		if _, err := conn.ExecContext(ctx, "DO RELEASE_ALL_LOCKS()"); err != nil || failed != nil {
			discard(conn)
		}
	}
}

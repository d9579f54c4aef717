package database

import (
	"context"
	"strings"
)

// LockName is an SQL expression for a named lock of this schema: such a lock counts for the whole server. The prefix tells its
// uses apart; MySQL allows 64 characters in all, and has no MD5 any more.
func LockName(prefix string) string {
	return "CONCAT('doortab-" + prefix + "', LEFT(SHA2(DATABASE(), 256), 32))"
}

// Turn takes named locks for processes that would get in each other's way, in the order of names, which must be the same
// everywhere, and keeps them until leave is called. They only save work: who doesn't get one within a second goes on without it and
// those behind it. The locks have connections of their own, so that no transaction waits for one that waits for a turn.
func (db *DB) Turn(ctx context.Context, names []string) (leave func()) {
	conn, err := db.turns.Conn(ctx)
	if err != nil {
		return func() {}
	}
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}
	locks := strings.Repeat(" AND GET_LOCK(CONCAT("+LockName("")+", '-', ?), 1)", len(names))
	_, failed := conn.ExecContext(ctx, "DO "+strings.TrimPrefix(locks, " AND "), args...)
	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_ALL_LOCKS()"); err != nil || failed != nil {
			discard(conn)
		}
		_ = conn.Close()
	}
}

// Package migrations holds the schema's SQL and runs it, one statement at a time, under a
// lock that only one process of an installation can hold.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"

	"doortab/database"
)

//go:embed sql/*.sql
var files embed.FS

const (
	// lockTries times lockWaitSeconds is how long one migrating process waits for another.
	lockTries = 6
	// lockWaitSeconds must stay below the time in which the database has to answer a statement.
	lockWaitSeconds = 10
)

var lockName = database.LockName("")

// Status is one migration and whether this database has it.
type Status struct {
	Version int64
	Name    string
	Applied bool
}

// Up brings the schema to this program's version and returns the versions that were applied.
func Up(ctx context.Context, db *database.DB) ([]int64, error) {
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	// goose looks for work before it takes the lock, and stumbles there over a version table that another process is just
	// making; a status makes it under the lock.
	if _, err := p.Status(ctx); err != nil {
		return nil, fmt.Errorf("migrate up: read its status: %w", err)
	}
	results, err := p.Up(ctx)
	if database.IsLockWait(err) {
		return versions(results), fmt.Errorf("migrate up: a table is in use, by a dump, an audit or a report: end that, then run it again: %w", err)
	}
	if err != nil {
		return versions(results), fmt.Errorf("migrate up (run it again once mended, applied steps stay): %w", err)
	}
	return versions(results), nil
}

// Down takes the newest migration back and returns its version; 0 where there was none.
func Down(ctx context.Context, db *database.DB) (int64, error) {
	p, err := provider(db)
	if err != nil {
		return 0, err
	}
	result, err := p.Down(ctx)
	if errors.Is(err, goose.ErrNoNextVersion) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("migrate down: %w", err)
	}
	return result.Source.Version, nil
}

// List tells of every migration whether it was applied, oldest first.
func List(ctx context.Context, db *database.DB) ([]Status, error) {
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	found, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read migration status: %w", err)
	}
	list := make([]Status, len(found))
	for i, s := range found {
		list[i] = Status{s.Source.Version, s.Source.Path, s.State == goose.StateApplied}
	}
	return list, nil
}

// Check returns an error that names the command to run where the schema is older than this
// program needs. A newer schema passes: old code runs on it during an upgrade.
func Check(ctx context.Context, db *database.DB) error {
	list, err := List(ctx, db)
	if err != nil {
		return err
	}
	for _, s := range list {
		if !s.Applied {
			return fmt.Errorf("database schema lacks migration %s: run `doortab migrate up`", s.Name)
		}
	}
	return nil
}

func provider(db *database.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(files, "sql")
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider(goose.DialectMySQL, db.SQL(), dir,
		goose.WithSessionLocker(namedLock{}), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// namedLock is the server's own lock, which ends with the session: a migrating process that
// dies leaves nothing to clean up.
type namedLock struct{}

func (namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for range lockTries {
		var got sql.NullInt64
		row := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", ?)", lockWaitSeconds) //nolint:gosec // an expression of ours
		if err := row.Scan(&got); err != nil {
			return fmt.Errorf("take the migration lock: %w", err)
		}
		if got.Int64 == 1 {
			return nil
		}
	}
	return fmt.Errorf("another process has been migrating this database for %d s: wait for it, then run again", lockTries*lockWaitSeconds)
}

func (namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK("+lockName+")")
	return err
}

func versions(results []*goose.MigrationResult) []int64 {
	list := make([]int64, len(results))
	for i, r := range results {
		list[i] = r.Source.Version
	}
	return list
}

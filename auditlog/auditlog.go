// Package auditlog keeps who changed what: one append-only line for each change that a person
// or a program with a token made, in the transaction of the change itself.
package auditlog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// Entry is one change.
type Entry struct {
	Action string // what was done, such as "product.patch"
	Target string // what it was done to, such as "product 7"
	Before any    // as JSON; nil where there was nothing before
	After  any    // as JSON; nil where there is nothing after. Never holds a secret.
}

type actorKey struct{}

// WithActor names who acts in everything that happens under the returned context.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor is who acts under a context; "doortab" where nobody was named.
func Actor(ctx context.Context) string {
	if actor, named := ctx.Value(actorKey{}).(string); named {
		return actor
	}
	return "doortab"
}

// Write adds a line, in the name of who acts under the transaction's context.
func Write(tx *gorm.DB, e Entry, now time.Time) error {
	return WriteAll(tx, []Entry{e}, now)
}

const rowsAtOnce = 500

var columns = []string{"entry_id", "actor", "action", "target", "before_change", "after_change", "created_at"}

// WriteAll is [Write] for a change of many things at once, a line for each.
func WriteAll(tx *gorm.DB, entries []Entry, now time.Time) error {
	actor, minted := Actor(tx.Statement.Context), make(map[int64]bool, len(entries))
	for some := range slices.Chunk(entries, rowsAtOnce) {
		rows := make([][]any, len(some))
		for i, e := range some {
			before, err := encode(e.Before)
			if err != nil {
				return fmt.Errorf("audit log of %s: %w", e.Target, err)
			}
			after, err := encode(e.After)
			if err != nil {
				return fmt.Errorf("audit log of %s: %w", e.Target, err)
			}
			rows[i] = []any{newID(now, minted), actor, e.Action, e.Target, before, after, now}
		}
		err := database.Insert(tx, "audit_log", columns, rows, "")
		if database.IsDuplicate(err) {
			return fmt.Errorf("audit log of %s: %w", some[0].Target, database.ErrConflict)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newID mints an id that none of minted is: among some thousands of one millisecond two are often equal.
func newID(now time.Time, minted map[int64]bool) int64 {
	id := database.NewID(now)
	for minted[id] {
		id = database.NewID(now)
	}
	minted[id] = true
	return id
}

func encode(value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	return json.Marshal(value)
}

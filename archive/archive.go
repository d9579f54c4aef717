// Package archive keeps the live tables small. [Run] moves old orders, movements and payloads to archive tables in small
// steps beside a Doortab that serves; a [Janitor] removes what nobody needs any more.
//
// What is archived is still read, resent events still get their first receipt, and the ledger has no gap:
// event keys, digests and receipts stay in settlements, and of each stock row the newest movement before the date stays as
// the opening one, whose balance the live ones go on from. An order that must be corrected comes back by [RestoreOrder].
package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// DefaultBatch is how many rows one step moves where nothing else is asked for.
const DefaultBatch = 500

// ErrRunning is returned where another process archives the same database.
var ErrRunning = errors.New("another process is archiving this database: wait for it to end")

// Options say what to archive and how fast.
type Options struct {
	// Before is the first moment that stays live: an order's createdAt, a movement's, and the receivedAt of an event.
	Before time.Time
	// Batch is how many rows of one kind a step moves at most, in one transaction; [DefaultBatch] where it is not above 0.
	Batch int
	// Pause is the wait after each step, which leaves the database to others.
	Pause time.Duration
	// Progress hears of each step; may be nil.
	Progress func(Progress)
}

// Progress is how far a run has come with the rows of one kind.
type Progress struct {
	What  string // orders, movements, payloads, conflicts
	Moved int64  // rows, in this run
	Total int64  // rows that were there to move when it began
}

// Count is how many rows of one kind there are to move, or were moved.
type Count struct {
	What string
	Rows int64
}

// phase moves the rows of one kind, oldest or lowest key first, and remembers how far it has come.
type phase interface {
	what() string
	// pending counts what there is to move.
	pending(ctx context.Context) (int64, error)
	// step moves some rows in one transaction; more tells that there may be others.
	step(ctx context.Context) (moved int64, more bool, err error)
}

func phases(db *database.DB, o Options) []phase {
	batch := o.Batch
	if batch <= 0 {
		batch = DefaultBatch
	}
	before := o.Before.UTC().Truncate(time.Millisecond)
	return []phase{
		&orders{db: db, before: before, batch: batch},
		&movements{db: db, before: before, batch: int64(batch)},
		&payloads{db: db, before: before, batch: batch, last: event{ReceivedAt: time.Unix(0, 0).UTC()}},
		&conflicts{db: db, before: before, batch: batch},
	}
}

// Pending counts what [Run] would move.
func Pending(ctx context.Context, db *database.DB, o Options) ([]Count, error) {
	var list []Count
	for _, p := range phases(db, o) {
		rows, err := p.pending(ctx)
		if err != nil {
			return nil, fmt.Errorf("count %s to archive: %w", p.what(), err)
		}
		list = append(list, Count{p.what(), rows})
	}
	return list, nil
}

// Run moves what is older than [Options.Before] and returns what it moved, also where it fails. Each step stands for
// itself: a run that ended anywhere is finished by another one. It fails with [ErrRunning], with what the database
// says, or when ctx ends.
func Run(ctx context.Context, db *database.DB, o Options) (moved []Count, err error) {
	release, err := lock(ctx, db)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, p := range phases(db, o) {
		rows, err := runPhase(ctx, p, o)
		moved = append(moved, Count{p.what(), rows})
		if err != nil {
			return moved, fmt.Errorf("archive %s (run it again, what is moved stays moved): %w", p.what(), err)
		}
	}
	return moved, nil
}

func runPhase(ctx context.Context, p phase, o Options) (int64, error) {
	total, err := p.pending(ctx)
	if err != nil {
		return 0, err
	}
	at := Progress{What: p.what(), Total: total}
	for more := true; more; {
		var moved int64
		moved, more, err = p.step(ctx)
		at.Moved += moved
		if o.Progress != nil {
			o.Progress(at)
		}
		if err == nil && moved > 0 && more {
			err = wait(ctx, o.Pause)
		}
		if err != nil {
			return at.Moved, err
		}
	}
	return at.Moved, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// lock lets one process archive: the server's own lock, which ends with the session. The steps are sound without it.
func lock(ctx context.Context, db *database.DB) (release func(), err error) {
	name := database.LockName("archive-")
	conn, err := db.SQL().Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("take the archive's lock: %w", err)
	}
	var got *int64
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK("+name+", 0)").Scan(&got)
	if err == nil && (got == nil || *got != 1) {
		err = ErrRunning
	}
	if err != nil {
		_ = conn.Close() // it only goes back to the pool
		return nil, fmt.Errorf("take the archive's lock: %w", err)
	}
	return func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK("+name+")") // a session that is lost has none
		_ = conn.Close()
	}, nil
}

// inTx runs one step, whose result is that of the attempt which was committed.
func inTx(ctx context.Context, db *database.DB, work func(tx *gorm.DB) (int64, error)) (moved int64, err error) {
	err = db.InTx(ctx, func(tx *gorm.DB) (err error) {
		moved, err = work(tx)
		return err
	})
	if err != nil {
		return 0, err
	}
	return moved, nil
}

package archive

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"doortab/database"
)

const (
	// KeepIdempotencyKeys is how long the API's contract keeps them at least.
	KeepIdempotencyKeys = 72 * time.Hour

	sweepEvery = time.Minute
	sweepRows  = 200                    // removed in one transaction
	sweepPause = 100 * time.Millisecond // after each
)

// Retention says how long rows are kept that the books don't need.
type Retention struct {
	IdempotencyKeys time.Duration // from their request on; 0 means KeepIdempotencyKeys
	DoorSessions    time.Duration // from their end on; 0 means for ever
	Reservations    time.Duration // from the end that they were made with on; 0 means for ever
	DeadLetters     time.Duration // from the last copy on; 0 means for ever
}

// Janitor removes what is past its time. Any number of processes may have one: each row is removed by its primary key, and by
// whoever comes first.
type Janitor struct {
	db      *database.DB
	kinds   []removable
	log     *slog.Logger
	removed *prometheus.CounterVec
}

// removable is one kind of rows with the time that it is kept.
type removable struct {
	what   string
	keep   time.Duration
	remove func(ctx context.Context, db *database.DB, before time.Time) (looked int, removed int64, err error)
}

// NewJanitor makes a Janitor, whose counter goes to metrics; nil where nobody reads it.
func NewJanitor(db *database.DB, r Retention, log *slog.Logger, metrics prometheus.Registerer) *Janitor {
	if r.IdempotencyKeys == 0 {
		r.IdempotencyKeys = KeepIdempotencyKeys
	}
	j := &Janitor{
		db: db, log: log,
		kinds: []removable{
			{"idempotency_keys", r.IdempotencyKeys, removeKeys},
			{"door_sessions", r.DoorSessions, removeSessions},
			{"reservations", r.Reservations, removeReservations},
			{"dead_letters", r.DeadLetters, removeLetters},
		},
		removed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "doortab_removed_total", Help: "Rows removed because they were past their time.",
		}, []string{"table"}),
	}
	for _, k := range j.kinds {
		j.removed.WithLabelValues(k.what)
	}
	if metrics != nil {
		metrics.MustRegister(j.removed)
	}
	return j
}

// Run sweeps every minute or so until ctx ends; processes that were started together don't sweep together.
func (j *Janitor) Run(ctx context.Context) {
	for wait(ctx, sweepEvery/2+rand.N(sweepEvery)) == nil { //nolint:gosec // jitter needs no secret randomness
		j.Sweep(ctx)
	}
}

// Sweep removes all that is past its time, a few rows at a time. What fails is logged, and left to the next sweep.
func (j *Janitor) Sweep(ctx context.Context) {
	for _, k := range j.kinds {
		if k.keep == 0 {
			continue
		}
		removed, err := j.sweep(ctx, k, database.Now().Add(-k.keep))
		j.removed.WithLabelValues(k.what).Add(float64(removed))
		if removed > 0 {
			j.log.Info("Rows past their time were removed.", "table", k.what, "rows", removed)
		}
		if err != nil && ctx.Err() == nil {
			j.log.Warn("Rows past their time can't be removed; the next sweep tries again.", "table", k.what, "error", err)
		}
	}
}

func (j *Janitor) sweep(ctx context.Context, k removable, before time.Time) (all int64, err error) {
	for {
		looked, removed, err := k.remove(ctx, j.db, before)
		all += removed
		if err != nil || looked < sweepRows {
			return all, err
		}
		if err := wait(ctx, sweepPause); err != nil {
			return all, err
		}
	}
}

// removeKeys looks for old keys without locks and deletes each by its primary key: a DELETE over a range would wait for keys
// whose first request is still running.
func removeKeys(ctx context.Context, db *database.DB, before time.Time) (looked int, removed int64, err error) {
	var old []struct {
		TokenID   string
		ScopeHash []byte
	}
	err = db.Read(ctx).Raw("SELECT token_id, scope_hash FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?",
		before, sweepRows).Scan(&old).Error
	if err != nil || len(old) == 0 {
		return 0, 0, err
	}
	keys := make([][]any, len(old))
	for i, key := range old {
		keys[i] = []any{key.TokenID, key.ScopeHash}
	}
	removed, err = removeRows(ctx, db, "idempotency_keys", "(token_id, scope_hash) IN ? AND created_at < ?", keys, before)
	return len(old), removed, err
}

// A session is kept while its event waits for a person: an order that a review makes is the app's that opened the door.
const oldSessions = `SELECT d.session_id FROM door_sessions d WHERE d.state = ? AND d.expires_at < ? AND d.ended_at < ?
	AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.device_id = d.device_id AND r.close_event_id = d.settled_event_id AND r.status = 'open')
	ORDER BY d.expires_at LIMIT ?`

// removeSessions goes by expiresAt, which has an index and is never long after the end.
func removeSessions(ctx context.Context, db *database.DB, before time.Time) (looked int, removed int64, err error) {
	for _, state := range []string{"closed", "expired", "refused"} {
		var ids []string
		err := db.Read(ctx).Raw(oldSessions, state, before, before, sweepRows).Scan(&ids).Error
		if err != nil {
			return looked, removed, fmt.Errorf("find old door sessions: %w", err)
		}
		if len(ids) == 0 {
			continue
		}
		// The event of an expired one may have closed it meanwhile: then it ended just now.
		n, err := removeRows(ctx, db, "door_sessions", "session_id IN ? AND state = ? AND ended_at < ?", ids, state, before)
		looked, removed = max(looked, len(ids)), removed+n
		if err != nil {
			return looked, removed, err
		}
	}
	return looked, removed, nil
}

// removeLetters goes by the id, which is in the order of the first copies.
func removeLetters(ctx context.Context, db *database.DB, before time.Time) (looked int, removed int64, err error) {
	var ids []int64
	err = db.Read(ctx).Raw(`SELECT dead_letter_id FROM dead_letters WHERE dead_letter_id < ? AND last_received_at < ?
		ORDER BY dead_letter_id LIMIT ?`, database.FirstID(before), before, sweepRows).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	removed, err = removeRows(ctx, db, "dead_letters", "dead_letter_id IN ? AND last_received_at < ?", ids, before)
	return len(ids), removed, err
}

func removeRows(ctx context.Context, db *database.DB, table, where string, args ...any) (int64, error) {
	return inTx(ctx, db, func(tx *gorm.DB) (int64, error) { return deleteRows(tx, table, where, args...) })
}

func deleteRows(tx *gorm.DB, table, where string, args ...any) (int64, error) {
	result := tx.Exec("DELETE t FROM "+table+" t FORCE INDEX (PRIMARY) WHERE "+where, args...)
	if result.Error != nil {
		return 0, fmt.Errorf("remove rows of %s: %w", table, result.Error)
	}
	return result.RowsAffected, nil
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound = errors.New("no such reconciliation")
	ErrBusy     = errors.New("another reconciliation is running: try again when it has ended")
)

// RunState says how far a run is.
type RunState string

// The states: waiting, running, then done or failed.
const (
	Waiting RunState = "waiting" // asked for; a serving process begins it within seconds
	Running RunState = "running"
	Done    RunState = "done"
	Failed  RunState = "failed" // Detail says why; what it had found is kept
)

// Origin says what a run was made by.
type Origin string

// The origins.
const (
	Periodic Origin = "periodic"
	Nightly  Origin = "nightly"
	Request  Origin = "request" // over REST
	Command  Origin = "command"
)

// Run is the record of one comparison.
type Run struct {
	RunID      int64
	State      RunState
	Origin     Origin
	StartedBy  string
	Everything bool  // promotions that are long over too
	Repairs    bool  // mend what is proven
	Promotions int64 // that were compared
	Found      int64 // differences
	Repaired   int64 // of them
	Behind     int64 // buckets whose write-back didn't get as far as their counters in time: not compared
	Detail     string
	CreatedAt  time.Time
	StartedAt  *time.Time
	EndedAt    *time.Time
}

const selectedRun = `SELECT run_id, state, origin, started_by, everything, repairs, promotions, found, repaired, behind, detail, created_at,
	started_at, ended_at FROM reconciliations `

// Ask notes in the caller's transaction that somebody wants a run, which a serving process then begins.
func Ask(tx *gorm.DB, repairs bool, now time.Time) (Run, error) {
	r := Run{
		RunID: database.NewID(now), State: Waiting, Origin: Request, StartedBy: auditlog.Actor(tx.Statement.Context), Everything: true,
		Repairs: repairs, CreatedAt: now,
	}
	if err := r.insert(tx); err != nil {
		return Run{}, err
	}
	return r, auditlog.Write(tx, auditlog.Entry{
		Action: "reconcile.ask", Target: fmt.Sprintf("reconciliation %d", r.RunID), After: map[string]any{"repair": repairs},
	}, now)
}

func (r Run) insert(tx *gorm.DB) error {
	err := database.Insert(tx, "reconciliations",
		[]string{"run_id", "state", "origin", "started_by", "everything", "repairs", "created_at", "started_at"},
		[][]any{{r.RunID, r.State, r.Origin, r.StartedBy, r.Everything, r.Repairs, r.CreatedAt, pointed(r.StartedAt)}}, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("reconciliation %d: %w", r.RunID, database.ErrConflict)
	}
	return err
}

func pointed(at *time.Time) any {
	if at == nil {
		return nil
	}
	return *at
}

// ReadRun reads one run, or returns [ErrNotFound].
func ReadRun(ctx context.Context, db *database.DB, runID int64) (Run, error) {
	var found []Run
	if err := db.Read(ctx).Raw(selectedRun+"WHERE run_id = ?", runID).Scan(&found).Error; err != nil {
		return Run{}, fmt.Errorf("read reconciliation %d: %w", runID, err)
	}
	if len(found) == 0 {
		return Run{}, fmt.Errorf("reconciliation %d: %w", runID, ErrNotFound)
	}
	return found[0], nil
}

// ListRuns reads up to limit runs with ids below before, the newest first; 0 means from the top.
func ListRuns(ctx context.Context, db *database.DB, before int64, limit int) (list []Run, err error) {
	query, args := selectedRun, []any{}
	if before > 0 {
		query, args = query+"WHERE run_id < ? ", append(args, before)
	}
	if err := db.Read(ctx).Raw(query+"ORDER BY run_id DESC LIMIT ?", append(args, limit)...).Scan(&list).Error; err != nil {
		return nil, fmt.Errorf("list reconciliations: %w", err)
	}
	return list, nil
}

// ReadDifferences reads up to limit differences that a run kept, in the order in which they were found.
func ReadDifferences(ctx context.Context, db *database.DB, runID int64, limit int) (list []Difference, err error) {
	err = db.Read(ctx).Raw(`SELECT promotion_id, cause, target, counted, due, repaired FROM reconciliation_findings
		WHERE run_id = ? ORDER BY number LIMIT ?`, runID, limit).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("read the differences of reconciliation %d: %w", runID, err)
	}
	return list, nil
}

// Count is how many differences a run found and left, of one cause and promotion.
type Count struct {
	PromotionID int64
	Cause       Cause
	Found       int64
	Repaired    int64
}

// ReadCounts adds up the differences that a run kept.
func ReadCounts(ctx context.Context, db *database.DB, runID int64) (list []Count, err error) {
	err = db.Read(ctx).Raw(`SELECT promotion_id, cause, COUNT(*) AS found, CAST(SUM(repaired) AS SIGNED) AS repaired
		FROM reconciliation_findings WHERE run_id = ? GROUP BY promotion_id, cause ORDER BY promotion_id, cause`, runID).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("count the differences of reconciliation %d: %w", runID, err)
	}
	return list, nil
}

// keptFindings is how many differences a run lists; beyond it they are only counted.
const keptFindings = 10_000

// keep adds differences to a run that is running.
func (r *Run) keep(ctx context.Context, db *database.DB, found []Difference) error {
	rows := make([][]any, 0, len(found))
	repaired := int64(0)
	for i, d := range found {
		if d.Repaired {
			repaired++
		}
		if number := r.Found + int64(i); number < keptFindings {
			rows = append(rows, []any{r.RunID, number, d.PromotionID, d.Cause, d.Target, d.Counted, d.Due, d.Repaired})
		}
	}
	r.Found, r.Repaired = r.Found+int64(len(found)), r.Repaired+repaired
	return db.InTx(ctx, func(tx *gorm.DB) error {
		if err := r.update(tx, Running); err != nil {
			return err
		}
		return database.Insert(tx, "reconciliation_findings",
			[]string{"run_id", "number", "promotion_id", "cause", "target", "counted", "due", "repaired"}, rows,
			"ON DUPLICATE KEY UPDATE run_id = run_id") // an answer to COMMIT was lost
	})
}

// end notes how a run ended.
func (r *Run) end(ctx context.Context, db *database.DB, failure error) error {
	now := database.Now()
	r.EndedAt = &now
	state := Done
	if failure != nil {
		state, r.Detail = Failed, cut(failure.Error(), 1000)
	}
	err := db.InTx(ctx, func(tx *gorm.DB) error { return r.update(tx, state) })
	r.State = state
	return err
}

func cut(text string, most int) string {
	runes := []rune(strings.ToValidUTF8(text, "?"))
	return string(runes[:min(len(runes), most)])
}

// update writes a run that is running. Where it isn't, another process took this one for dead.
func (r *Run) update(tx *gorm.DB, to RunState) error {
	result := tx.Exec(`UPDATE reconciliations SET state = ?, promotions = ?, found = ?, repaired = ?, behind = ?, detail = ?, ended_at = ?
		WHERE run_id = ? AND state IN (?, ?)`,
		to, r.Promotions, r.Found, r.Repaired, r.Behind, r.Detail, pointed(r.EndedAt), r.RunID, Running, to)
	if result.Error != nil {
		return fmt.Errorf("write reconciliation %d: %w", r.RunID, result.Error)
	}
	var states []RunState
	if result.RowsAffected == 0 {
		if err := tx.Raw("SELECT state FROM reconciliations WHERE run_id = ?", r.RunID).Scan(&states).Error; err != nil {
			return fmt.Errorf("read reconciliation %d: %w", r.RunID, err)
		}
		if len(states) == 0 || states[0] != to {
			return fmt.Errorf("reconciliation %d was ended by another process, which took this one for dead: run it again", r.RunID)
		}
	}
	return nil
}

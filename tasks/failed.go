package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hibiken/asynq"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound    = errors.New("no such failed task")
	ErrStillFails  = errors.New("still fails")
	ErrUnavailable = errors.New("Redis, which keeps the tasks, does not answer")
)

// FailedTask is one that failed again and again, and is kept for 90 days, 10,000 of them at most.
type FailedTask struct {
	ID       string // kind, subject and second
	Kind     Kind
	Subject  string    // the id of the thing that it ends
	DueAt    time.Time // when its thing's time was over
	FailedAt time.Time // the last time, to the second
	Attempts int
	Error    string // the last one's
}

// Place is where a task stands in the list: the newest failure first.
type Place struct {
	FailedAt int64  `json:"at"` // Unix seconds
	ID       string `json:"id"`
}

// Place is where the list goes on behind this task.
func (f FailedTask) Place() Place { return Place{f.FailedAt.Unix(), f.ID} }

func (p Place) compare(other Place) int {
	return cmp.Or(cmp.Compare(other.FailedAt, p.FailedAt), cmp.Compare(p.ID, other.ID))
}

const pageOfArchive = 500

// ListFailed returns failed tasks behind a place, nil being the beginning. It fails with [ErrUnavailable].
func (q *Queue) ListFailed(ctx context.Context, after *Place, limit int) ([]FailedTask, error) {
	if q.off() {
		return nil, nil
	}
	if err := q.register(ctx); err != nil {
		return nil, fmt.Errorf("list failed tasks: %w: %w", ErrUnavailable, err)
	}
	var found []FailedTask
	for page := 1; ; page++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		archived, err := q.inspector.ListArchivedTasks(q.name, asynq.PageSize(pageOfArchive), asynq.Page(page))
		if err != nil {
			return nil, fmt.Errorf("list failed tasks: %w: %w", ErrUnavailable, err)
		}
		for _, info := range archived {
			if f := failed(info); after == nil || after.compare(f.Place()) < 0 {
				found = append(found, f)
			}
		}
		if len(archived) < pageOfArchive {
			break
		}
	}
	slices.SortFunc(found, func(a, b FailedTask) int { return a.Place().compare(b.Place()) })
	return found[:min(len(found), limit)], nil
}

// register makes the queue's name known, which asynq does once in a process: a Redis that was emptied doesn't know it.
func (q *Queue) register(ctx context.Context) error {
	return q.redis.SAdd(ctx, "asynq:queues", q.name).Err()
}

func failed(info *asynq.TaskInfo) FailedTask {
	var p payload
	_ = json.Unmarshal(info.Payload, &p) // what can't be read failed for that, and says so
	return FailedTask{
		ID: info.ID, Kind: Kind(info.Type), Subject: p.Subject, DueAt: p.Due, FailedAt: info.LastFailedAt.UTC(),
		Attempts: info.Retried + 1, Error: info.LastErr,
	}
}

func (q *Queue) find(id string) (*asynq.TaskInfo, error) {
	if q.off() {
		return nil, fmt.Errorf("task %s: %w", id, ErrNotFound)
	}
	info, err := q.inspector.GetTaskInfo(q.name, id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return nil, fmt.Errorf("task %s: %w", id, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("read task %s: %w: %w", id, ErrUnavailable, err)
	case info.State != asynq.TaskStateArchived:
		return nil, fmt.Errorf("task %s: %w", id, ErrNotFound)
	default:
		return info, nil
	}
}

// Retry runs a failed task here and now, and removes it where it succeeds. It fails with [ErrNotFound], [ErrStillFails] or
// [ErrUnavailable].
func (q *Queue) Retry(ctx context.Context, id string) (Outcome, error) {
	info, err := q.find(id)
	if err != nil {
		return Failed, err
	}
	outcome, err := q.work(ctx, Kind(info.Type), info.Payload)
	if err != nil && isFailure(err) {
		return outcome, fmt.Errorf("task %s %w: %w", id, ErrStillFails, err)
	}
	if err != nil {
		return outcome, err
	}
	return outcome, q.remove(ctx, info, "failed_task.retry")
}

// Discard removes a failed task for good. It fails with [ErrNotFound] or [ErrUnavailable].
func (q *Queue) Discard(ctx context.Context, id string) error {
	info, err := q.find(id)
	if err != nil {
		return err
	}
	return q.remove(ctx, info, "failed_task.discard")
}

// remove writes the line first: of two stores one is always behind, and a line for a task that is still there can be explained.
func (q *Queue) remove(ctx context.Context, info *asynq.TaskInfo, action string) error {
	f := failed(info)
	err := q.db.InTx(ctx, func(tx *gorm.DB) error {
		return auditlog.Write(tx, auditlog.Entry{
			Action: action, Target: "failed task " + f.ID,
			Before: map[string]any{"dueAt": f.DueAt, "failedAt": f.FailedAt, "attempts": f.Attempts, "error": f.Error},
		}, database.Now())
	})
	if err != nil {
		return err
	}
	err = q.inspector.DeleteTask(q.name, f.ID)
	if err != nil && !errors.Is(err, asynq.ErrTaskNotFound) { // somebody else was quicker
		return fmt.Errorf("remove task %s: %w: %w", f.ID, ErrUnavailable, err)
	}
	return nil
}

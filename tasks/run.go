package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"doortab/database"
)

// run is what asynq calls for each task.
func (q *Queue) run(ctx context.Context, t *asynq.Task) error {
	q.running.Add(1)
	defer q.running.Done()
	outcome, err := q.work(ctx, Kind(t.Type()), t.Payload())
	q.metrics.ran.WithLabelValues(t.Type(), string(outcome)).Inc()
	return err
}

// Outcome says what a task came to.
type Outcome string

// The outcomes of tasks.
const (
	Done   Outcome = "done"   // its thing has ended, by this task or before
	Later  Outcome = "later"  // its thing got more time, and a task for the end of that
	Failed Outcome = "failed" // it runs again, or is archived
)

func (q *Queue) work(ctx context.Context, kind Kind, body []byte) (Outcome, error) {
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return Failed, fmt.Errorf("read task: %w: %w", err, asynq.SkipRetry)
	}
	handler, known := q.handlers[kind]
	if !known {
		return Failed, fmt.Errorf("task of kind %q: this program does not know how to run it (is another process newer?)", kind)
	}
	due, err := handler(ctx, p.Subject)
	if err != nil {
		return Failed, fmt.Errorf("%s %s: %w", kind, p.Subject, err)
	}
	if due.IsZero() {
		return Done, nil
	}
	return Later, q.enqueue(ctx, task{kind, p.Subject, due})
}

// isFailure: a database that is away speaks against no task, so each is tried until it is back.
func isFailure(err error) bool { return database.ClassOf(err) == database.Permanent }

// delay grows with each failure; while the database is away it stays what it is.
func (q *Queue) delay(failures int, _ error, _ *asynq.Task) time.Duration {
	if failures < len(q.pauses) {
		return q.pauses[failures]
	}
	return usualPauses[len(usualPauses)-1] // scheduled by a process that tries more often
}

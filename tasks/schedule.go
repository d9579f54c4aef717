package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

// payload is what a task carries. The due time is for people who look at it once it has failed.
type payload struct {
	Subject string    `json:"subject"`
	Due     time.Time `json:"due"`
}

// second is when a task runs: Redis keeps whole seconds, and nothing may end before its time.
func (t task) second() time.Time {
	second := t.due.Truncate(time.Second)
	if second.Before(t.due) {
		second = second.Add(time.Second)
	}
	return second
}

// id makes a thing's task for one second the same, whoever schedules it.
func (t task) id() string {
	return string(t.kind) + "." + t.subject + "." + strconv.FormatInt(t.second().Unix(), 10)
}

// schedule hands on what waits, until the queue stops, and then the rest.
func (q *Queue) schedule() {
	for {
		select {
		case t := <-q.scheduled:
			q.handOn(t)
		case <-q.stopping:
			for range len(q.scheduled) {
				q.handOn(<-q.scheduled)
			}
			return
		}
	}
}

// handOn lets a task go that Redis doesn't take: the next one may come in time, and the sweep finds this one.
func (q *Queue) handOn(t task) {
	if q.outage.lasts() {
		q.metrics.lost.WithLabelValues(string(t.kind)).Inc()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	if err := q.enqueue(ctx, t); err != nil {
		q.metrics.lost.WithLabelValues(string(t.kind)).Inc()
		q.log.Debug("Task can't be scheduled; the sweep does its work.", "task", t.id(), "error", err)
	}
}

func (q *Queue) enqueue(ctx context.Context, t task) error {
	body, err := json.Marshal(payload{t.subject, t.due.UTC()})
	if err != nil {
		return fmt.Errorf("task %s as JSON: %w", t.id(), err)
	}
	_, err = q.client.EnqueueContext(ctx, asynq.NewTask(string(t.kind), body), asynq.Queue(q.name), asynq.TaskID(t.id()),
		asynq.ProcessAt(t.second()), asynq.MaxRetry(len(q.pauses)), asynq.Timeout(runFor))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) { // it is there already
		return fmt.Errorf("schedule task %s: %w", t.id(), err)
	}
	return nil
}

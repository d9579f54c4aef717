package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/claims"
	"doortab/database"
	"doortab/door"
	"doortab/reservation"
	"doortab/settlement"
	"doortab/tasks"
)

// openTasks knows how each kind of thing ends: as the sweep of its kind ends it.
func openTasks(
	redisURL, installation string, db *database.DB, service *claims.Service, log *slog.Logger, metrics prometheus.Registerer,
) (*tasks.Queue, error) {
	return tasks.New(tasks.Config{
		RedisURL: redisURL, Installation: installation, DB: db, Logger: log, Metrics: metrics,
		Handlers: map[tasks.Kind]tasks.Handler{
			tasks.DoorSession: func(ctx context.Context, id string) (time.Time, error) { return door.End(ctx, db, id) },
			tasks.Claim:       numbered(service.End),
			tasks.Reservation: numbered(func(ctx context.Context, id int64) (time.Time, error) { return reservation.End(ctx, db, id) }),
		},
	})
}

// numbered ends what has a number for an id.
func numbered(end func(context.Context, int64) (time.Time, error)) tasks.Handler {
	return func(ctx context.Context, subject string) (time.Time, error) {
		id, ok := settlement.ParseID(subject)
		if !ok {
			return time.Time{}, fmt.Errorf("%q is no id: discard the task", subject)
		}
		return end(ctx, id)
	}
}

type failedTasksCommand struct {
	List    failedList    `cmd:"" help:"List the tasks, the newest failure first."`
	Retry   failedRetry   `cmd:"" help:"Run a task now, and remove it where it succeeds."`
	Discard failedDiscard `cmd:"" help:"Remove a task for good."`
}

// tasksFlags reach the tasks.
type tasksFlags struct {
	databaseFlags
	RedisURL string `name:"redis-url" placeholder:"URL" help:"Redis of the serving processes, which holds the tasks."`
}

func (f *tasksFlags) with(ctx context.Context, c *console, do func(*tasks.Queue) error) error {
	if f.RedisURL == "" {
		return errors.New("no Redis: give --redis-url or DOORTAB_REDIS_URL as the serving processes have it; without one there are no delayed tasks")
	}
	return f.withSchema(ctx, c, func(db *database.DB) error {
		installation, err := settlement.Installation(ctx, db)
		if err != nil {
			return err
		}
		service := claims.New(claims.Config{DB: db, Logger: f.logger(c)})
		defer service.Close()
		queue, err := openTasks(f.RedisURL, installation, db, service, f.logger(c), nil)
		if err != nil {
			return err
		}
		defer func() { _ = queue.Close() }()
		return do(queue)
	})
}

type failedList struct {
	tasksFlags
	Limit int `default:"50" min:"1" max:"100000" help:"How many at most."`
}

// Run is called by the command line.
func (l *failedList) Run(ctx context.Context, c *console) error {
	return l.with(ctx, c, func(queue *tasks.Queue) error {
		list, err := queue.ListFailed(ctx, nil, l.Limit)
		if err != nil {
			return err
		}
		for _, f := range list {
			c.printf("%s  %s  due %s, %d attempts: %q\n", f.ID, f.FailedAt.Format(time.RFC3339), f.DueAt.Format(time.RFC3339), f.Attempts, f.Error)
		}
		return nil
	})
}

// failedID is the argument that names a failed task.
type failedID struct {
	ID string `arg:"" help:"The first word of its line in the list."`
}

type failedRetry struct {
	tasksFlags
	failedID
}

// Run is called by the command line.
func (r *failedRetry) Run(ctx context.Context, c *console) error {
	return r.with(ctx, c, func(queue *tasks.Queue) error {
		outcome, err := queue.Retry(ctx, r.ID)
		if err != nil {
			return err
		}
		c.printf("%s %s\n", outcome, r.ID)
		return nil
	})
}

type failedDiscard struct {
	tasksFlags
	failedID
}

// Run is called by the command line.
func (d *failedDiscard) Run(ctx context.Context, c *console) error {
	return d.with(ctx, c, func(queue *tasks.Queue) error {
		if err := queue.Discard(ctx, d.ID); err != nil {
			return err
		}
		c.printf("discarded %s\n", d.ID)
		return nil
	})
}

// stopTasks has what waits scheduled and what runs finished, in the time that a stopping node has.
func (n *node) stopTasks(ctx context.Context) {
	if err := n.tasks.Stop(ctx); err != nil {
		n.tasksLeft = true
		n.log.Warn("Stopped with delayed tasks in hand; others or the sweeps will run them.", "error", err)
	}
}

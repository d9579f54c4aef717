// Package tasks ends things at their second: door sessions, claims, reservations whose time is over.
//
// It is never needed for it: whatever the queue in Redis loses, a sweep of the rows finds a few seconds later, by the same
// functions. So a task is scheduled after COMMIT, off the path of the request, and is let go where Redis has no time for it. A
// task that fails again and again is archived, where people list, retry and discard it.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"doortab/database"
)

// Kind says what a task does.
type Kind string

// The kinds of tasks: each ends a thing whose time is over. Their names stand in Redis and in ids.
const (
	DoorSession Kind = "door-session"
	Claim       Kind = "claim"
	Reservation Kind = "reservation"
)

// Handler ends a thing whose time is over, and returns the zero time. Where the thing got more time meanwhile, it changes
// nothing and returns when that ends. It must bear to run twice, and beside the sweep.
type Handler func(ctx context.Context, subject string) (due time.Time, err error)

const (
	waiting  = 8192 // tasks that may wait to be scheduled
	atOnce   = 8    // handlers
	checked  = 200 * time.Millisecond
	runFor   = 30 * time.Second
	patience = 3 * time.Second // for handlers that run at the end
	answerIn = time.Second     // Redis
)

// Config holds what a [Queue] needs.
type Config struct {
	RedisURL     string       // "": nothing is scheduled
	Installation string       // keeps two installations apart in one Redis
	DB           *database.DB // for the audit log
	Handlers     map[Kind]Handler
	// Pauses are behind each failure of a task but the last, which archives it; nil: 1, 2, 4, 8 and 16 s.
	Pauses  []time.Duration
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

var usualPauses = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// Queue schedules tasks and, once started, runs them. A nil one, and one without Redis, does neither and has no failed ones.
type Queue struct {
	db       *database.DB
	handlers map[Kind]Handler
	log      *slog.Logger
	metrics  *metrics

	redis     *redis.Client // nil without
	name      string
	outage    *outage
	client    *asynq.Client
	inspector *asynq.Inspector
	pauses    []time.Duration

	scheduled chan task
	scheduler sync.WaitGroup
	running   sync.WaitGroup // handlers
	server    *asynq.Server  // nil until started
	stop      sync.Once
	stopping  chan struct{}
}

// task is what is to be scheduled.
type task struct {
	kind    Kind
	subject string
	due     time.Time
}

// New makes a queue without connecting to Redis. It fails on a URL that can't be read.
func New(c Config) (*Queue, error) {
	q := &Queue{
		db: c.DB, handlers: c.Handlers, log: c.Logger, name: "doortab:" + c.Installation, pauses: c.Pauses,
		scheduled: make(chan task, waiting), stopping: make(chan struct{}),
	}
	if q.pauses == nil {
		q.pauses = usualPauses
	}
	if c.RedisURL != "" {
		options, err := redis.ParseURL(c.RedisURL)
		if err != nil {
			// The cause may quote the URL, which may hold a password.
			return nil, errors.New("Redis URL cannot be read: write it as redis://[:password@]host:port/0")
		}
		options.MaxRetries = -1
		options.ContextTimeoutEnabled = true
		options.DialTimeout, options.DialerRetries = answerIn, 1
		options.ReadTimeout, options.WriteTimeout = answerIn, answerIn
		options.DisableIdentity = true
		logging.Disable() // what it logs of its own accord is also returned
		q.redis = redis.NewClient(options)
		q.outage = &outage{log: c.Logger, stopping: q.stopping}
		q.redis.AddHook(q.outage)
		q.client, q.inspector = asynq.NewClientFromRedisClient(q.redis), asynq.NewInspectorFromRedisClient(q.redis)
	}
	q.metrics = newMetrics(q, c.Metrics)
	return q, nil
}

func (q *Queue) off() bool { return q == nil || q.redis == nil }

// Schedule has a thing ended at a time, to the next whole second. It never blocks: where too many wait, or Redis doesn't answer,
// the sweep ends the thing. Call it after COMMIT only.
func (q *Queue) Schedule(kind Kind, subject string, due time.Time) {
	if q.off() {
		return
	}
	select {
	case q.scheduled <- task{kind, subject, due}:
	default:
		q.metrics.lost.WithLabelValues(string(kind)).Inc()
	}
}

// Start begins to schedule and to run tasks, until [Queue.Stop].
func (q *Queue) Start() error {
	if q.off() {
		return nil
	}
	q.server = asynq.NewServerFromRedisClient(q.redis, asynq.Config{
		Concurrency: atOnce, Queues: map[string]int{q.name: 1},
		TaskCheckInterval: checked, DelayedTaskCheckInterval: checked,
		RetryDelayFunc: q.delay, IsFailure: isFailure,
		ShutdownTimeout: patience, Logger: debugLog{q.log}, LogLevel: asynq.WarnLevel,
	})
	if err := q.server.Start(asynq.HandlerFunc(q.run)); err != nil {
		return fmt.Errorf("start delayed tasks: %w", err)
	}
	q.scheduler.Go(q.schedule)
	return nil
}

// Stop schedules what waits, lets the handlers that run finish for 3 s and ends. It returns an error where ctx ends first, or
// where handlers still run. A second one does nothing.
func (q *Queue) Stop(ctx context.Context) (err error) {
	if q.off() {
		return nil
	}
	q.stop.Do(func() { err = q.end(ctx) })
	return err
}

// Close ends the connections of a queue that was never started. On one that was, [Queue.Stop] has done it.
func (q *Queue) Close() (err error) {
	if q.off() {
		return nil
	}
	q.stop.Do(func() {
		close(q.stopping)
		err = q.redis.Close()
	})
	return err
}

func (q *Queue) end(ctx context.Context) error {
	close(q.stopping)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.scheduler.Wait()
		if q.server != nil {
			q.server.Shutdown()
		}
		q.running.Wait()
	}()
	select {
	case <-ended:
		return q.redis.Close()
	case <-ctx.Done():
	}
	// A Redis that hangs holds the server up, until its connections end.
	if err := q.redis.Close(); err != nil {
		return fmt.Errorf("close Redis: %w", err)
	}
	select {
	case <-ended:
		return nil
	case <-time.After(answerIn):
		return errors.New("delayed tasks still run: the database holds them up")
	}
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// rest is the pause behind each command that Redis didn't answer.
const rest = time.Second

// outage goes around every command to Redis. It tells once that Redis is away and once that it is back, and slows down whoever
// asks meanwhile: asynq asks for the next task at once where the last question failed.
type outage struct {
	log      *slog.Logger
	stopping <-chan struct{}
	now      atomic.Bool
}

// lasts tells whether the last command found no Redis.
func (o *outage) lasts() bool { return o.now.Load() }

// DialHook leaves connecting as it is; the command that waits for the connection fails.
func (o *outage) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is called around each command.
func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		o.note(ctx, err)
		return err
	}
}

// ProcessPipelineHook is called around each pipeline.
func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		o.note(ctx, err)
		return err
	}
}

func (o *outage) note(ctx context.Context, err error) {
	var answer redis.Error
	if err == nil || errors.As(err, &answer) { // also one that says no
		if o.now.CompareAndSwap(true, false) {
			o.log.Info("Redis answers again; delayed tasks are scheduled.")
		}
		return
	}
	if errors.Is(ctx.Err(), context.Canceled) { // who asked has gone, which says nothing of Redis
		return
	}
	var network net.Error
	if o.now.CompareAndSwap(false, true) && !errors.Is(err, redis.ErrClosed) {
		o.log.Warn("Redis does not answer; the sweeps end what is overdue.", "timeout", errors.As(err, &network) && network.Timeout(), "error", err)
	}
	pause := time.NewTimer(rest)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	case <-o.stopping:
	}
}

// debugLog takes what asynq logs of its own accord: what matters of it is told by outage, metrics and the archive.
type debugLog struct{ log *slog.Logger }

func (l debugLog) say(args []any) { l.log.Debug("Delayed tasks.", "says", fmt.Sprint(args...)) }

// Debug implements asynq.Logger, as the others do.
func (l debugLog) Debug(args ...any) { l.say(args) }

// Info is for the library.
func (l debugLog) Info(args ...any) { l.say(args) }

// Warn is for the library.
func (l debugLog) Warn(args ...any) { l.say(args) }

// Error is for the library.
func (l debugLog) Error(args ...any) { l.say(args) }

// Fatal is for the library, which never calls it.
func (l debugLog) Fatal(args ...any) { l.say(args) }

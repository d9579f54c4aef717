package claims

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

const (
	lanes       = 2    // pipelines on their way at a time: Redis works on one while the other is being made or read
	maxPipeline = 256  // scripts in one
	maxCalls    = 8192 // that wait for one
)

// call is one run of a script that somebody waits for.
type call struct {
	script *script
	keys   []string
	args   []any

	done  chan struct{}
	reply any
	err   error
}

// run runs a script. Scripts of many callers share a pipeline: it takes what has queued up while the one before was on its way,
// and never waits for more. An answer that got lost is asked for once more.
func (r *Redis) run(ctx context.Context, s *script, keys []string, args ...any) (any, error) {
	c := &call{script: s, keys: keys, args: args, done: make(chan struct{})}
	select {
	case r.calls <- c:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ended:
		return nil, ErrClosed
	}
	select {
	case <-c.done:
		return c.reply, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ended:
		return nil, ErrClosed
	}
}

// serve runs what queues up until the service ends.
func (r *Redis) serve() {
	for {
		select {
		case <-r.ended:
			return
		case first := <-r.calls:
			r.send(context.Background(), r.gather(first))
		}
	}
}

func (r *Redis) gather(first *call) []*call {
	group := []*call{first}
	for len(group) < maxPipeline {
		select {
		case c := <-r.calls:
			group = append(group, c)
		default:
			return group
		}
	}
	return group
}

func (r *Redis) send(ctx context.Context, group []*call) {
	lost := r.attempt(ctx, group, evalSHA)
	if len(lost) > 0 {
		lost = r.attempt(ctx, lost, eval)
	}
	for _, c := range lost {
		c.end(nil, c.err)
	}
}

// attempt answers the calls that Redis answered and returns the others, each with its error: their script may have run.
func (r *Redis) attempt(ctx context.Context, group []*call, add func(context.Context, redis.Pipeliner, *call)) (lost []*call) {
	answers, err := r.pipeline(ctx, func(p redis.Pipeliner) {
		for _, c := range group {
			add(ctx, p, c)
		}
	})
	for i, c := range group {
		c.err = err
		if i < len(answers) {
			c.err = answers[i].Err()
		}
		if c.err != nil {
			c.err = fmt.Errorf("%w: %w", errRedisDown, c.err)
			lost = append(lost, c)
			continue
		}
		c.end(answers[i].(*redis.Cmd).Val(), nil)
	}
	return lost
}

func evalSHA(ctx context.Context, p redis.Pipeliner, c *call) {
	p.EvalSha(ctx, c.script.sha, c.keys, c.args...)
}

// eval also loads the script, for a Redis that doesn't know it yet.
func eval(ctx context.Context, p redis.Pipeliner, c *call) {
	p.Eval(ctx, c.script.text, c.keys, c.args...)
}

func (c *call) end(reply any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// runEach runs a script on several buckets at once and returns their replies in order.
func (r *Redis) runEach(ctx context.Context, s *script, keys [][]string, args [][]any) ([]any, error) {
	group := make([]*call, len(keys))
	for i := range keys {
		group[i] = &call{script: s, keys: keys[i], args: args[i], done: make(chan struct{})}
	}
	r.send(ctx, group)
	replies, errs := make([]any, len(group)), make([]error, len(group))
	for i, c := range group {
		replies[i], errs[i] = c.reply, c.err
	}
	return replies, errors.Join(errs...)
}

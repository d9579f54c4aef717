package main

import (
	"context"
	"sync"
)

// jobs are goroutines that share one end.
type jobs struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

func (j *jobs) start(job func(context.Context)) {
	j.once.Do(func() { j.ctx, j.cancel = context.WithCancel(context.Background()) })
	j.wait.Go(func() { job(j.ctx) })
}

// stop tells all to end, and reports whether they did before ctx ended.
func (j *jobs) stop(ctx context.Context) bool {
	if j.cancel != nil {
		j.cancel()
	}
	ended := make(chan struct{})
	go func() {
		j.wait.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}

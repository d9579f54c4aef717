package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// calmLimit is far more than a disk takes for the server's memory.
	calmLimit = 5 * time.Minute
	// calmPages is how many unwritten pages are none that matter.
	calmPages = 100
)

// eager makes the server write its pages as fast as the disk takes them, and usually is what it was before.
type eager struct{ dirtyPercent, capacity, capacityMost float64 }

// calm waits until the server has written what a filling left in its memory, which would else be written in somebody's turn.
func (l *Lab) calm(ctx context.Context) (err error) {
	l.say("waiting for the server to write its pages")
	var usually eager
	row := l.admin.SQL().QueryRowContext(ctx, "SELECT @@innodb_max_dirty_pages_pct, @@innodb_io_capacity, @@innodb_io_capacity_max")
	if err := row.Scan(&usually.dirtyPercent, &usually.capacity, &usually.capacityMost); err != nil {
		return fmt.Errorf("read how the server writes its pages: %w", err)
	}
	if err := l.set(ctx, eager{0, 50_000, 50_000}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.set(ctx, usually)) }()
	return l.awaitPages(ctx)
}

// set keeps the capacity below its own limit at each step.
func (l *Lab) set(ctx context.Context, e eager) error {
	for _, setting := range []string{
		fmt.Sprintf("innodb_max_dirty_pages_pct = %g", e.dirtyPercent),
		"innodb_io_capacity = 100",
		fmt.Sprintf("innodb_io_capacity_max = %.0f", e.capacityMost),
		fmt.Sprintf("innodb_io_capacity = %.0f", e.capacity),
	} {
		if _, err := l.admin.SQL().ExecContext(context.WithoutCancel(ctx), "SET GLOBAL "+setting); err != nil {
			return fmt.Errorf("set how the server writes its pages: %w", err)
		}
	}
	return nil
}

func (l *Lab) awaitPages(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, calmLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var dirty int64
		row := l.admin.SQL().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")
		if err := row.Scan(new(string), &dirty); err != nil {
			return fmt.Errorf("wait for the server to write its pages: %w", err)
		}
		if dirty < calmPages {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d pages were still unwritten: %w", dirty, context.Cause(ctx))
		}
	}
}

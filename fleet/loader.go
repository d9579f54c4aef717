package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"doortab/database"
)

const (
	maxBatch = 1000
	loadWait = 5 * time.Second
	failFast = time.Second
)

var errBusy = errors.New("the database is busy or down: try again")

// loader turns many reads at the same moment into few: while one statement runs, whoever comes joins the next. So a
// whole fleet that reconnects asks a few hundred times, one statement at a time.
type loader struct {
	read func(context.Context, []int64) (map[int64][32]byte, error)

	mu       sync.Mutex
	open     *batch // takes further ids
	newest   *batch
	failedAt time.Time
}

type batch struct {
	ids    []int64
	before <-chan struct{} // nil or closed when the batch ahead is done
	done   chan struct{}
	hashes map[int64][32]byte
	err    error
}

// load reads one hash; set is false where there is none. It answers within [loadWait], and at once where the database
// failed less than a second ago.
func (l *loader) load(id int64) (hash [32]byte, set bool, err error) {
	b, leads := l.join(id)
	if b == nil {
		return hash, false, errBusy
	}
	if leads {
		l.run(b)
	}
	<-b.done
	hash, set = b.hashes[id]
	return hash, set, b.err
}

func (l *loader) join(id int64) (b *batch, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.failedAt) < failFast {
		return nil, false
	}
	if l.open == nil || len(l.open.ids) >= maxBatch {
		b = &batch{done: make(chan struct{})}
		if l.newest != nil {
			b.before = l.newest.done
		}
		l.open, l.newest, leads = b, b, true
	}
	l.open.ids = append(l.open.ids, id)
	return l.open, leads
}

func (l *loader) run(b *batch) {
	defer close(b.done)
	ctx, cancel := context.WithTimeout(context.Background(), loadWait)
	defer cancel()
	if b.before != nil {
		select {
		case <-b.before:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	if l.open == b {
		l.open = nil
	}
	ids := b.ids
	l.mu.Unlock()
	if b.err = ctx.Err(); b.err == nil {
		b.hashes, b.err = l.read(ctx, ids)
	}
	if b.err != nil {
		l.mu.Lock()
		l.failedAt = time.Now()
		l.mu.Unlock()
	}
}

func readHashes(ctx context.Context, db *database.DB, ids []int64) (map[int64][32]byte, error) {
	var rows []struct {
		DeviceID   int64
		SecretHash []byte
	}
	err := db.Read(ctx).Raw("SELECT device_id, secret_hash FROM cabinets WHERE device_id IN ? AND secret_hash IS NOT NULL",
		ids).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read secrets of cabinets: %w", err)
	}
	hashes := make(map[int64][32]byte, len(rows))
	for _, row := range rows {
		hashes[row.DeviceID] = [32]byte(row.SecretHash)
	}
	return hashes, nil
}

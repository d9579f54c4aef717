package admin

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

const (
	keepKeys   = 72 * time.Hour
	purgeEvery = 5 * time.Second
	purgeRows  = 200
)

// purger removes idempotency keys that are past their time, a few now and then, beside the requests that make new ones.
type purger struct {
	db   *database.DB
	log  *slog.Logger
	last atomic.Int64 // Unix nanoseconds
}

func (p *purger) purge(ctx context.Context) {
	last, now := p.last.Load(), time.Now()
	if now.UnixNano()-last < int64(purgeEvery) || !p.last.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	if err := p.remove(ctx); err != nil {
		p.log.Warn("Old idempotency keys can't be removed; a later request tries again.", "error", err)
	}
}

// remove looks for old keys without locks and deletes each by its primary key: a DELETE over a range would wait for keys
// whose first request is still running.
func (p *purger) remove(ctx context.Context) error {
	var old []struct {
		TokenID   string
		ScopeHash []byte
	}
	err := p.db.Read(ctx).Raw("SELECT token_id, scope_hash FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?",
		database.Now().Add(-keepKeys), purgeRows).Scan(&old).Error
	if err != nil || len(old) == 0 {
		return err
	}
	return p.db.InTx(ctx, func(tx *gorm.DB) error {
		for _, key := range old {
			err := tx.Exec("DELETE FROM idempotency_keys WHERE token_id = ? AND scope_hash = ?", key.TokenID, key.ScopeHash).Error
			if err != nil {
				return fmt.Errorf("delete an idempotency key: %w", err)
			}
		}
		return nil
	})
}

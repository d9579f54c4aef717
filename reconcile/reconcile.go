// Package reconcile compares what is counted with the rows that it counts: a promotion's quota, its persons, its claims and
// leases, what is reserved of a cabinet's goods.
//
// It reads one snapshot for each promotion, so that it finds nothing while claims are in flight. Each run is kept, with each
// difference under the name of its cause. It mends counters whose rows agree among themselves, on demand, each in a transaction
// that counts anew under lock; rows are facts and it never changes them.
package reconcile

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/claims"
	"doortab/database"
)

// Config holds what a [Service] needs.
type Config struct {
	DB *database.DB
	// Redis holds the counters of promotions; nil: they are not compared. The caller closes it.
	Redis   *claims.Redis
	Every   time.Duration         // between two periodic runs of all processes together; 0: only what is asked for
	Repairs bool                  // whether periodic runs mend what is proven
	Logger  *slog.Logger          // nil: slog.Default
	Metrics prometheus.Registerer // nil: none
}

// Service compares and repairs.
type Service struct {
	db      *database.DB
	every   time.Duration
	repairs bool
	log     *slog.Logger
	metrics *metrics
	redis   *claims.Redis // nil: none

	settleFor, fenceFor time.Duration
}

// New makes a service, which works while [Service.Serve] or [Service.Run] does.
func New(c Config) *Service {
	s := &Service{
		db: c.DB, every: c.Every, repairs: c.Repairs, log: cmp.Or(c.Logger, slog.Default()), metrics: newMetrics(), redis: c.Redis,
		settleFor: settleFor, fenceFor: fenceFor,
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(s.metrics)
	}
	return s
}

// Options say what a run is to do.
type Options struct {
	Origin     Origin
	Everything bool // promotions that are long over too
	Repairs    bool // mend what is proven
}

// Run compares now, and returns the run's record once it has ended. Where another process is at it, it returns [ErrBusy].
func (s *Service) Run(ctx context.Context, o Options) (Run, error) {
	var r Run
	err := s.alone(ctx, func() error {
		now := database.Now()
		r = Run{
			RunID: database.NewID(now), State: Running, Origin: o.Origin, StartedBy: auditlog.Actor(ctx), Everything: o.Everything,
			Repairs: o.Repairs, CreatedAt: now, StartedAt: &now,
		}
		if err := s.db.InTx(ctx, r.insert); err != nil {
			return err
		}
		return s.finish(ctx, &r)
	})
	return r, err
}

// alone runs work while no other process reconciles, or returns [ErrBusy]. The lock ends with its connection; whoever then has it
// finds the run of a process that died, and says so in its record.
func (s *Service) alone(ctx context.Context, work func() error) (err error) {
	conn, err := s.db.SQL().Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect for the lock of reconciliations: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	name := database.LockName("reconcile-")
	var locked sql.Null[int64]
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+name+", 0)").Scan(&locked); err != nil {
		return fmt.Errorf("take the lock of reconciliations: %w", err)
	}
	if locked.V != 1 {
		return ErrBusy
	}
	defer func() {
		_, failed := conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK("+name+")")
		err = errors.Join(err, failed)
	}()
	if err := s.buryDead(ctx); err != nil {
		return err
	}
	return work()
}

func (s *Service) buryDead(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE reconciliations SET state = ?, detail = ?, ended_at = ? WHERE state = ?",
			Failed, "its process ended before it did", database.Now(), Running).Error
	})
	if err != nil {
		return fmt.Errorf("end the reconciliation of a process that is gone: %w", err)
	}
	return nil
}

// finish compares all that a run is to compare, and keeps what it finds as it goes.
func (s *Service) finish(ctx context.Context, r *Run) error {
	failure := s.compareAll(ctx, r)
	if err := r.end(context.WithoutCancel(ctx), s.db, failure); err != nil || failure != nil {
		return errors.Join(failure, err)
	}
	level := slog.LevelInfo
	if r.Found > r.Repaired {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "Promotions and reservations were reconciled.", "reconciliation", r.RunID, "promotions", r.Promotions,
		"differences", r.Found, "repaired", r.Repaired, "behind", r.Behind)
	return nil
}

// pause lies between promotions of which something was repaired.
const pause = 100 * time.Millisecond

func (s *Service) compareAll(ctx context.Context, r *Run) error {
	ids, err := s.promotions(ctx, r.Everything)
	if err != nil {
		return err
	}
	for _, id := range ids {
		found, err := s.comparePromotion(ctx, r, id)
		if err != nil {
			return err
		}
		r.Promotions++
		repaired := r.Repaired
		if len(found) > 0 {
			if err := r.keep(ctx, s.db, found); err != nil {
				return err
			}
		}
		if r.Repaired > repaired && wait(ctx, pause) != nil {
			return ctx.Err()
		}
	}
	found, err := s.compareReserved(ctx, r)
	if err != nil || len(found) == 0 {
		return err
	}
	return r.keep(ctx, s.db, found)
}

// promotions are those whose counters may have changed since they were last looked at or that had differences then, or all.
func (s *Service) promotions(ctx context.Context, everything bool) (ids []int64, err error) {
	query, args := "SELECT promotion_id FROM promotions ORDER BY promotion_id", []any{}
	if !everything {
		query = `SELECT promotion_id FROM promotions WHERE state IN ('warming', 'live', 'paused') OR updated_at > ?
			UNION SELECT promotion_id FROM claims WHERE state = 'held'
			UNION SELECT promotion_id FROM promotion_epochs WHERE state <> 'done'
			UNION SELECT promotion_id FROM reconciliation_findings WHERE NOT repaired AND promotion_id <> 0
				AND run_id = (SELECT MAX(run_id) FROM reconciliations WHERE state = 'done')
			ORDER BY promotion_id`
		args = append(args, database.Now().Add(-24*time.Hour))
	}
	if err := s.db.Read(ctx).Raw(query, args...).Scan(&ids).Error; err != nil {
		return nil, fmt.Errorf("list the promotions to reconcile: %w", err)
	}
	return ids, nil
}

func (s *Service) comparePromotion(ctx context.Context, r *Run, promotionID int64) ([]Difference, error) {
	found, err := s.compareBooks(ctx, r, promotionID)
	if err != nil || s.redis == nil {
		return found, err
	}
	sold, err := s.compareSold(ctx, r, promotionID)
	return append(found, sold...), err
}

func (s *Service) compareBooks(ctx context.Context, r *Run, promotionID int64) (found []Difference, err error) {
	err = s.db.Snapshot(ctx, func(tx *gorm.DB) error {
		b, err := readBooks(tx, promotionID, database.Now())
		if err == nil {
			found = b.judge()
		}
		return err
	})
	if err != nil || len(found) == 0 || !r.Repairs {
		return found, err
	}
	return found, s.repairBooks(ctx, promotionID, r.RunID, found)
}

func (s *Service) compareReserved(ctx context.Context, r *Run) (found []Difference, err error) {
	err = s.db.Snapshot(ctx, func(tx *gorm.DB) (err error) {
		found, err = reservedDifferences(tx, database.Now())
		return err
	})
	if err != nil || len(found) == 0 || !r.Repairs {
		return found, err
	}
	return found, s.repairReserved(ctx, r.RunID, found)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

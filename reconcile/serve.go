package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

const (
	lookEvery = 2 * time.Second
	// nightHour is when, in UTC, the first run of a day looks at everything.
	nightHour = 3
	keepEmpty = 30 * 24 * time.Hour // runs that found nothing
	keepFound = 90 * 24 * time.Hour // the others
)

// Serve runs what is asked for and what is due, until ctx ends. Of any number of processes, one does.
func (s *Service) Serve(ctx context.Context) {
	for wait(ctx, lookEvery/2+rand.N(lookEvery)) == nil { //nolint:gosec // jitter needs no secret randomness
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("Reconciliation did not end; it is tried again.", "error", err)
		}
	}
}

// Look runs what is asked for, or else what is due, and brings the metrics up to date.
func (s *Service) Look(ctx context.Context) error {
	err := s.runNext(ctx)
	if errors.Is(err, ErrBusy) {
		err = nil
	}
	return errors.Join(err, s.refresh(ctx))
}

func (s *Service) runNext(ctx context.Context) error {
	asked, err := s.asked(ctx)
	if err != nil {
		return err
	}
	due, err := s.due(ctx)
	if err != nil || asked == nil && due == "" {
		return err
	}
	return s.alone(ctx, func() error {
		// Another process may have run it before this one had the lock.
		if asked, err = s.asked(ctx); err != nil {
			return err
		}
		if asked != nil {
			return s.begin(ctx, asked)
		}
		if due, err = s.due(ctx); err != nil || due == "" {
			return err
		}
		now := database.Now()
		return s.begin(ctx, &Run{
			RunID: database.NewID(now), Origin: due, StartedBy: auditlog.Actor(ctx), Everything: due == Nightly, Repairs: s.repairs,
			CreatedAt: now,
		})
	})
}

// begin makes a run that was asked for, or a new one, the running one, and finishes it.
func (s *Service) begin(ctx context.Context, r *Run) error {
	now := database.Now()
	asked := r.State == Waiting
	r.State, r.StartedAt = Running, &now
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		if !asked {
			return r.insert(tx)
		}
		return changeOne(tx, fmt.Sprintf("reconciliation %d", r.RunID),
			"UPDATE reconciliations SET state = ?, started_at = ? WHERE run_id = ? AND state = ?", Running, now, r.RunID, Waiting)
	})
	if err != nil {
		return err
	}
	if r.Origin == Nightly {
		if err := s.removeOld(ctx, now); err != nil {
			return err
		}
	}
	return s.finish(auditlog.WithActor(ctx, r.StartedBy), r)
}

func (s *Service) asked(ctx context.Context) (*Run, error) {
	var found []*Run
	err := s.db.Read(ctx).Raw(selectedRun+"WHERE state = ? ORDER BY run_id LIMIT 1", Waiting).Scan(&found).Error
	if err != nil {
		return nil, fmt.Errorf("look for a reconciliation that is asked for: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

// due is the origin of the run that is due, "" where none is.
func (s *Service) due(ctx context.Context) (Origin, error) {
	if s.every == 0 {
		return "", nil
	}
	var last struct{ Periodic, Nightly *time.Time }
	err := s.db.Read(ctx).Raw(`SELECT MAX(created_at) AS periodic, MAX(CASE WHEN origin = ? THEN created_at END) AS nightly
		FROM reconciliations WHERE origin IN (?, ?) AND run_id >= ?`,
		Nightly, Nightly, Periodic, database.FirstID(database.Now().Add(-max(48*time.Hour, s.every)))).Scan(&last).Error
	if err != nil {
		return "", fmt.Errorf("look when reconciliation last ran: %w", err)
	}
	now := database.Now()
	night := time.Date(now.Year(), now.Month(), now.Day(), nightHour, 0, 0, 0, time.UTC)
	if now.Before(night) {
		night = night.AddDate(0, 0, -1)
	}
	switch {
	case last.Nightly == nil || last.Nightly.Before(night):
		return Nightly, nil
	case last.Periodic == nil || now.Sub(*last.Periodic) >= s.every:
		return Periodic, nil
	}
	return "", nil
}

// removeOld removes the records of old runs, those that found something with their differences. What was mended stays in the
// audit log, and what stands is found again by each run.
func (s *Service) removeOld(ctx context.Context, now time.Time) error {
	var old []int64
	err := s.db.Read(ctx).Raw(`SELECT run_id FROM reconciliations WHERE state IN (?, ?) AND (run_id < ? OR run_id < ? AND found = 0)
		ORDER BY run_id LIMIT 10000`,
		Done, Failed, database.FirstID(now.Add(-keepFound)), database.FirstID(now.Add(-keepEmpty))).Scan(&old).Error
	if err != nil {
		return fmt.Errorf("find the records of old reconciliations: %w", err)
	}
	for _, runID := range old {
		if err := s.db.InTx(ctx, func(tx *gorm.DB) error { return remove(tx, runID) }); err != nil {
			return err
		}
	}
	return nil
}

func remove(tx *gorm.DB, runID int64) error {
	for _, table := range []string{"reconciliation_findings", "reconciliations"} {
		if err := tx.Exec("DELETE FROM "+table+" WHERE run_id = ?", runID).Error; err != nil {
			return fmt.Errorf("remove the record of reconciliation %d: %w", runID, err)
		}
	}
	return nil
}

package door

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
)

const (
	maxReports    = 4096 // that wait
	reportsAtOnce = 200
	reportsPause  = 500 * time.Millisecond
	ofTheReporter = ` WHERE session_id IN ? AND (session_id, device_id) IN ? AND state = ?`
)

// Report is what a cabinet said about an unlock on its own topic.
type Report struct {
	DeviceID int64 // the topic's: a session of another cabinet isn't its to change
	cabinet.DoorReport
	Ack func() // it is kept, or changes nothing
}

// Reports carries what cabinets say about unlocks into their sessions, whatever has queued up in one go.
type Reports struct {
	db    *database.DB
	log   *slog.Logger
	queue chan Report
}

// NewReports returns reports that are written to db once [Reports.Run] runs.
func NewReports(db *database.DB, log *slog.Logger) *Reports {
	return &Reports{db, log, make(chan Report, maxReports)}
}

// Offer takes a report without blocking, or returns false where there is no room for it now.
func (r *Reports) Offer(report Report) bool {
	select {
	case r.queue <- report:
		return true
	default:
		return false
	}
}

// Run works until ctx ends. What is not written by then is not acknowledged, so that another process hears it.
func (r *Reports) Run(ctx context.Context) {
	for {
		var group []Report
		select {
		case <-ctx.Done():
			return
		case report := <-r.queue:
			group = r.take(report)
		}
		if !r.write(ctx, group) {
			return
		}
		for _, report := range group {
			report.Ack()
		}
	}
}

func (r *Reports) take(first Report) []Report {
	group := []Report{first}
	for len(group) < reportsAtOnce {
		select {
		case next := <-r.queue:
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

// write tries until the group is kept; false where ctx ended before. What the database will never take is let go: the
// session then ends by its time.
func (r *Reports) write(ctx context.Context, group []Report) bool {
	for {
		err := Apply(ctx, r.db, group)
		if err == nil {
			return true
		}
		r.log.Warn("Reports of doors can't be written.", "reports", len(group), "error", err)
		if database.ClassOf(err) == database.Permanent {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(reportsPause):
		}
	}
}

// Apply makes sessions open, refused or, where nobody pulled the door, expired. Only sessions of the cabinet that reports
// change, and only while they are opening: what comes late or doesn't fit is ignored.
func Apply(ctx context.Context, db *database.DB, reports []Report) error {
	now := database.Now()
	for _, step := range []struct {
		state cabinet.DoorState
		set   string
		args  []any
	}{
		{cabinet.DoorOpened, "SET state = ?, opened_at = ?, expires_at = ?", []any{Open, now, now.Add(CloseWithin)}},
		{cabinet.DoorRefused, ending, []any{Refused, now}},
		{cabinet.DoorNotPulled, ending, []any{Expired, now}},
	} {
		ids, keys := reporting(reports, step.state)
		if len(ids) == 0 {
			continue
		}
		err := db.InTx(ctx, func(tx *gorm.DB) error {
			return tx.Exec("UPDATE door_sessions "+step.set+ofTheReporter+" AND expires_at > ?",
				append(step.args, ids, keys, Opening, now)...).Error
		})
		if err != nil {
			return fmt.Errorf("write %d reports of doors %s: %w", len(ids), step.state, err)
		}
	}
	return nil
}

const ending = "SET state = ?, ended_at = ?, open_device = NULL, open_user = NULL"

func reporting(reports []Report, state cabinet.DoorState) (ids []string, keys [][]any) {
	for _, r := range reports {
		if r.State == state {
			ids = append(ids, r.SessionID)
			keys = append(keys, []any{r.SessionID, r.DeviceID})
		}
	}
	return ids, keys
}

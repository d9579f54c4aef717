package settlement

import (
	"context"
	"log/slog"
	"time"
)

// NewPatientRemembered has time enough for a Redis on a busy machine.
func NewPatientRemembered(url, installation string) (*Remembered, error) {
	return newRemembered(url, installation, 10*time.Second, slog.New(slog.DiscardHandler))
}

// TellGaps looks up what is due at a time, as [Service.WatchGaps] does again and again.
func (s *Service) TellGaps(ctx context.Context, now time.Time) { s.tellGaps(ctx, now) }

package settlement

import (
	"log/slog"
	"time"
)

// NewPatientRemembered has time enough for a Redis on a busy machine.
func NewPatientRemembered(url, installation string) (*Remembered, error) {
	return newRemembered(url, installation, 10*time.Second, slog.New(slog.DiscardHandler))
}

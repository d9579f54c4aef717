// Package settlement turns door-close events into outcomes: exactly one for each event, kept
// in one database transaction together with its order, its stock movements and its receipt.
//
// [Service.Settle] takes whatever has queued up as one group. It promises for each event that
// all of it is kept or nothing, and that no answer is given without a committed outcome (R2).
package settlement

import (
	"cmp"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
	"doortab/promotion"
)

// DefaultThreshold is the confidence from which a cabinet's own count is taken.
const DefaultThreshold = 0.8

// ErrNotFound is returned for what does not exist.
var ErrNotFound = errors.New("not found")

// Answer says what became of a [Delivery].
type Answer struct {
	// Receipt goes to the cabinet; nil where none is owed.
	Receipt *cabinet.Receipt
	// Err tells that nothing of the event was kept: settle it again.
	Err error

	text []byte // the receipt as JSON, where it is written already
}

// ReceiptJSON is the receipt as it is sent; nil where none is owed.
func (a Answer) ReceiptJSON() []byte {
	if a.text != nil || a.Receipt == nil {
		return a.text
	}
	return a.Receipt.JSON()
}

// Unwritable tells that the event fails by an error of no known class, which another try may
// not mend: it is not worth trying for ever.
func (a Answer) Unwritable() bool {
	return a.Err != nil && database.ClassOf(a.Err) == database.Permanent
}

// Alone tells that the failure is this event's own, so that it must not hold up others:
// it is unwritable, or somebody holds a row that it needs.
func (a Answer) Alone() bool { return a.Unwritable() || database.IsLockWait(a.Err) }

// Config holds what a [Service] needs.
type Config struct {
	DB *database.DB
	// Remembered answers repeats from Redis (R1); nil where there is none.
	Remembered *Remembered
	// Currency is the ISO 4217 code of every price.
	Currency string
	// Threshold is the confidence from which a cabinet's own count is taken; 0 means
	// [DefaultThreshold].
	Threshold float64
	// GapPatience is how long a missing event is waited for before [Service.WatchGaps] tells of it; 0 means
	// [DefaultGapPatience].
	GapPatience time.Duration
	Logger      *slog.Logger
	Metrics     prometheus.Registerer
}

// Service settles events. It is safe for concurrent use.
type Service struct {
	db         *database.DB
	remembered *Remembered
	rules      rules
	catalogue  inventory.Cache
	log        *slog.Logger
	metrics    *metrics
	offers     promotion.OfferCache
	lookFirst  countdown // groups that are yet to look for repeats before they insert
	takeTurns  countdown // groups that are yet to take turns with other processes

	gapPatience time.Duration
	gaps        gaps
}

// countdown is how many groups are yet to do what the last trouble taught.
type countdown struct{ left atomic.Int64 }

func (c *countdown) restart(groups int64) { c.left.Store(groups) }

// next counts a group off, and tells whether there was one left.
func (c *countdown) next() bool { return c.left.Load() > 0 && c.left.Add(-1) >= 0 }

// New makes a Service.
func New(c Config) *Service {
	if c.Threshold == 0 {
		c.Threshold = DefaultThreshold
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(newReviewQueue(c.DB, c.Logger))
	}
	return &Service{
		db:         c.DB,
		remembered: c.Remembered,
		rules:      rules{currency: c.Currency, threshold: c.Threshold},
		log:        c.Logger,
		metrics:    newMetrics(c.Metrics),

		gapPatience: cmp.Or(c.GapPatience, DefaultGapPatience),
	}
}

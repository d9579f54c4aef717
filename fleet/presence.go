package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/database"
)

const (
	silentAfter     = time.Hour
	presenceFor     = 30 * time.Second // how long a count is good: it reads all cabinets
	presenceReadFor = 2 * time.Second
)

// Presence tells at a scrape how many cabinets are online and how many have gone silent. Where the database doesn't answer
// it tells nothing, so that the other metrics still are read.
type Presence struct {
	db             *database.DB
	log            *slog.Logger
	online, silent *prometheus.Desc

	mu     sync.Mutex
	counts presence
	readAt time.Time
}

type presence struct{ Online, Silent int64 }

// NewPresence makes a collector that is still to be registered.
func NewPresence(db *database.DB, log *slog.Logger) *Presence {
	return &Presence{
		db: db, log: log,
		online: prometheus.NewDesc("doortab_cabinets_online", "Cabinets that are online.", nil, nil),
		silent: prometheus.NewDesc("doortab_cabinets_silent", "Cabinets that were online once and have not been for an hour.", nil, nil),
	}
}

// Describe is called at registration.
func (p *Presence) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- p.online
	descriptions <- p.silent
}

// Collect is called at each scrape.
func (p *Presence) Collect(metrics chan<- prometheus.Metric) {
	counts, err := p.count()
	if err != nil {
		p.log.Debug("Cabinets can't be counted.", "error", err)
		return
	}
	metrics <- prometheus.MustNewConstMetric(p.online, prometheus.GaugeValue, float64(counts.Online))
	metrics <- prometheus.MustNewConstMetric(p.silent, prometheus.GaugeValue, float64(counts.Silent))
}

func (p *Presence) count() (presence, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.readAt) < presenceFor {
		return p.counts, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), presenceReadFor)
	defer cancel()
	var counts presence
	err := p.db.Read(ctx).Raw(`SELECT COALESCE(SUM(online), 0) AS online, COALESCE(SUM(NOT online AND last_seen_at < ?), 0) AS silent
		FROM cabinets`, database.Now().Add(-silentAfter)).Scan(&counts).Error
	if err != nil {
		return presence{}, fmt.Errorf("count cabinets: %w", err)
	}
	p.counts, p.readAt = counts, time.Now()
	return counts, nil
}

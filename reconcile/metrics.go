package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// labelled is how many promotions have numbers of their own; those beyond are counted together.
const labelled = 50

var (
	differencesDesc = prometheus.NewDesc("doortab_reconciliation_differences",
		"Differences of the last reconciliation that stand unrepaired; promotion none: of reservations.", []string{"promotion", "cause"}, nil)
	behindDesc = prometheus.NewDesc("doortab_reconciliation_behind",
		"Buckets that the last reconciliation could not compare, since their write-back was behind.", nil, nil)
	successDesc = prometheus.NewDesc("doortab_reconciliation_last_success_timestamp_seconds",
		"When the last reconciliation ended that came to its end; 0 where none has.", nil, nil)
)

// metrics are those of the last run that came to its end, whichever process had it.
type metrics struct {
	mu     sync.Mutex
	last   Run // RunID 0: none yet
	counts []Count
}

func newMetrics() *metrics { return &metrics{} }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- differencesDesc
	to <- behindDesc
	to <- successDesc
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.EndedAt == nil {
		to <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, 0)
		return
	}
	to <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, float64(m.last.EndedAt.UnixMilli())/1000)
	to <- prometheus.MustNewConstMetric(behindDesc, prometheus.GaugeValue, float64(m.last.Behind))
	for of, n := range m.standing() {
		to <- prometheus.MustNewConstMetric(differencesDesc, prometheus.GaugeValue, float64(n), of[0], of[1])
	}
}

// standing counts by labels. The counts come by promotion.
func (m *metrics) standing() map[[2]string]int64 {
	named, counts := map[int64]bool{}, map[[2]string]int64{}
	for _, c := range m.counts {
		if c.Found == c.Repaired {
			continue
		}
		label := "none"
		if c.PromotionID != 0 {
			if len(named) < labelled {
				named[c.PromotionID] = true
			}
			if label = "other"; named[c.PromotionID] {
				label = strconv.FormatInt(c.PromotionID, 10)
			}
		}
		counts[[2]string{label, string(c.Cause)}] += c.Found - c.Repaired
	}
	return counts
}

// refresh reads the last run that came to its end, unless it is known.
func (s *Service) refresh(ctx context.Context) error {
	var found []Run
	err := s.db.Read(ctx).Raw(selectedRun+"WHERE state = ? ORDER BY run_id DESC LIMIT 1", Done).Scan(&found).Error
	if err != nil {
		return fmt.Errorf("read the last reconciliation: %w", err)
	}
	s.metrics.mu.Lock()
	known := s.metrics.last.RunID
	s.metrics.mu.Unlock()
	if len(found) == 0 || found[0].RunID == known {
		return nil
	}
	counts, err := ReadCounts(ctx, s.db, found[0].RunID)
	if err != nil {
		return err
	}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	s.metrics.last, s.metrics.counts = found[0], counts
	return nil
}

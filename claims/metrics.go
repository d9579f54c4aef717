package claims

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	labelled = 100 // promotions that have series of their own at a time
	others   = "other"
)

type metrics struct {
	prededuction *prometheus.CounterVec
	lag          *prometheus.GaugeVec
	pending      *prometheus.GaugeVec
	epochs       *prometheus.GaugeVec
	letters      prometheus.Counter

	mu     sync.Mutex
	series map[int64]*series
}

// series is what one promotion's metrics are made of.
type series struct {
	label    string
	outcomes map[string]prometheus.Counter
	waiting  map[int64]waitingEntries // by epoch
}

type waitingEntries struct {
	entries int64
	age     time.Duration
}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "doortab", Name: name, Help: help}, []string{"promotion"})
	}
	m := &metrics{
		prededuction: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "doortab", Name: "prededuction_total",
			Help: "Answers of Redis to claims, by promotion and outcome: ok, same, limit_reached, token_used, sold_out, dry, no_epoch, unavailable.",
		}, []string{"promotion", "outcome"}),
		lag:     gauge("writeback_lag_seconds", "Age of the oldest claim that Redis gave and that is not in the database, by promotion."),
		pending: gauge("writeback_pending", "Claims that Redis gave and that are not in the database, by promotion."),
		epochs:  gauge("promotion_epoch", "Number of the epoch of a promotion's counters in Redis that this process knows."),
		letters: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "doortab", Name: "writeback_dead_letters_total", Help: "Claims that Redis gave and that were kept as dead letters.",
		}),
		series: map[int64]*series{},
	}
	if r != nil {
		r.MustRegister(m.prededuction, m.lag, m.pending, m.epochs, m.letters)
	}
	return m
}

// of is called with the lock held.
func (m *metrics) of(promotionID int64) *series {
	s := m.series[promotionID]
	if s == nil {
		s = &series{label: others, outcomes: map[string]prometheus.Counter{}, waiting: map[int64]waitingEntries{}}
		if len(m.series) < labelled {
			s.label = strconv.FormatInt(promotionID, 10)
		}
		m.series[promotionID] = s
	}
	return s
}

func (m *metrics) deducted(promotionID int64, outcome string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(promotionID)
	counter := s.outcomes[outcome]
	if counter == nil {
		counter = m.prededuction.WithLabelValues(s.label, outcome)
		s.outcomes[outcome] = counter
	}
	counter.Inc()
}

func (m *metrics) epoch(promotionID, epoch int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epochs.WithLabelValues(m.of(promotionID).label).Set(float64(epoch))
}

// waiting notes what the streams of one epoch hold; a promotion may have several that aren't done.
func (m *metrics) waiting(promotionID, epoch, entries int64, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(promotionID)
	s.waiting[epoch] = waitingEntries{entries, age}
	m.showWaiting(s.label)
}

// writtenBack notes that an epoch is done.
func (m *metrics) writtenBack(promotionID, epoch int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(promotionID)
	delete(s.waiting, epoch)
	m.showWaiting(s.label)
}

// showWaiting adds up all promotions that have a label.
func (m *metrics) showWaiting(label string) {
	var entries int64
	var age time.Duration
	for _, s := range m.series {
		if s.label != label {
			continue
		}
		for _, w := range s.waiting {
			entries += w.entries
			if w.entries > 0 {
				age = max(age, w.age)
			}
		}
	}
	m.lag.WithLabelValues(label).Set(age.Seconds())
	m.pending.WithLabelValues(label).Set(float64(entries))
}

// forget drops the series of a promotion that is over.
func (m *metrics) forget(promotionID int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[promotionID]
	if s == nil {
		return
	}
	delete(m.series, promotionID)
	if s.label == others {
		m.showWaiting(others)
		return
	}
	m.prededuction.DeletePartialMatch(prometheus.Labels{"promotion": s.label})
	m.lag.DeleteLabelValues(s.label)
	m.pending.DeleteLabelValues(s.label)
	m.epochs.DeleteLabelValues(s.label)
}

package settlement

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/cabinet"
)

type metrics struct {
	outcomes *prometheus.CounterVec
	repeats  *prometheus.CounterVec
	letters  *prometheus.CounterVec
	attempts *prometheus.CounterVec
	failures prometheus.Counter
	short    prometheus.Counter
	seqGaps  prometheus.Counter
	seqJumps prometheus.Counter
	recalled *prometheus.CounterVec
	phases   *prometheus.HistogramVec
}

// since notes how long a phase of a group took that began at a time.
func (m *metrics) since(phase string, began time.Time) {
	m.phases.WithLabelValues(phase).Observe(time.Since(began).Seconds())
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "doortab", Name: name, Help: help})
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "doortab", Name: name, Help: help}, []string{label})
	}
	m := &metrics{
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "doortab", Name: "settle_phase_seconds",
			Help:    "Time of a group in each phase: decode, recall (from Redis), judge (with what it reads), write, commit, remember (in Redis).",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}, []string{"phase"}),
		outcomes: vector("settlements_total", "Events settled for the first time, by outcome.", "outcome"),
		repeats:  vector("repeats_total", "Deliveries answered with an outcome that was there, by who knew it.", "source"),
		letters:  vector("dead_letters_total", "Messages kept as dead letters, by reason.", "reason"),
		attempts: vector("settle_attempts_total", "Settlement transactions begun, by attempt: 1 to 3 optimistic, then FOR UPDATE.", "attempt"),
		failures: counter("settle_failures_total", "Deliveries that got no outcome and will be tried again."),
		short:    counter("shortfalls_total", "Settlements that took more than the books had."),
		seqGaps:  counter("sequence_gaps_total", "Runs of events of a cabinet that are still missing some time after a later one came."),
		seqJumps: counter("sequence_jumps_total", "Events whose seq ran too far ahead to be adopted."),
		recalled: vector("redis_recall_total", "Look-ups of receipts in Redis, by result.", "result"),
	}
	m.begin()
	if r != nil {
		r.MustRegister(m.outcomes, m.repeats, m.letters, m.attempts, m.failures, m.short, m.seqGaps, m.seqJumps, m.recalled, m.phases)
	}
	return m
}

// begin makes the series that alerts watch, at 0: an increase of a series that was not there
// yet does not show.
func (m *metrics) begin() {
	for _, outcome := range []cabinet.Outcome{cabinet.Settled, cabinet.Empty, cabinet.Review, cabinet.Restocked, cabinet.Conflict} {
		m.outcomes.WithLabelValues(string(outcome))
	}
	for _, reason := range []string{LetterMalformed, LetterIdentityMismatch, LetterUnknownCabinet, LetterInternal} {
		m.letters.WithLabelValues(reason)
	}
	m.repeats.WithLabelValues("redis")
	m.repeats.WithLabelValues("database")
}

// count tells what became of one delivery.
func (m *metrics) count(it *item) {
	switch receipt := it.answer.Receipt; {
	case it.answer.Err != nil:
		m.failures.Inc()
	case it.letter != nil && it.retried:
	case it.letter != nil:
		m.letters.WithLabelValues(it.letter.reason).Inc()
	case it.recalled:
		m.repeats.WithLabelValues("redis").Inc()
	case it.repeat:
		m.repeats.WithLabelValues("database").Inc()
	default:
		m.outcomes.WithLabelValues(string(receipt.Outcome)).Inc()
		for _, reason := range receipt.Reasons {
			if reason == cabinet.ReasonShortfall {
				m.short.Inc()
			}
		}
	}
}

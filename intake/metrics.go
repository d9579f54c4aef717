package intake

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	groups  prometheus.Histogram
	seconds prometheus.Histogram
	refused prometheus.Counter
}

func newMetrics(i *Intake) *metrics {
	m := &metrics{
		groups: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "doortab", Name: "group_size", Help: "Messages settled in one group.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000},
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "doortab", Name: "settle_seconds", Help: "Time to settle one group.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "doortab", Name: "intake_refused_total", Help: "Messages that found the queue full.",
		}),
	}
	if i.Metrics == nil {
		return m
	}
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "doortab", Name: name, Help: help}, read)
	}
	i.Metrics.MustRegister(m.groups, m.seconds, m.refused,
		gauge("database_stuck_seconds", "How long the group that waits longest for the database has been waiting.",
			func() float64 { return i.Stuck().Seconds() }),
		gauge("unsettled_oldest_seconds", "Age of the oldest event that was taken and has no outcome yet; 0 for none.",
			func() float64 { return i.Unsettled().Seconds() }),
		gauge("held_bytes", "Bytes of payloads taken and not acknowledged.", func() float64 { return float64(i.held.Load()) }),
		gauge("queue_depth", "Messages waiting for a worker.", func() float64 { return float64(i.queues.depth()) }),
		gauge("retrying_events", "Events that are tried again beside the others.", func() float64 {
			return float64(i.retries.pending.Load())
		}))
	return m
}

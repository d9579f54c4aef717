package tasks

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	ran  *prometheus.CounterVec
	lost *prometheus.CounterVec
}

func newMetrics(q *Queue, r prometheus.Registerer) *metrics {
	m := &metrics{
		ran: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "doortab_tasks_total", Help: "Delayed tasks that ran, by kind and outcome: done, later, failed.",
		}, []string{"kind", "outcome"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "doortab_tasks_unscheduled_total", Help: "Delayed tasks that were not scheduled, so that a sweep did their work, by kind.",
		}, []string{"kind"}),
	}
	for kind := range q.handlers {
		m.lost.WithLabelValues(string(kind))
		for _, outcome := range []Outcome{Done, Later, Failed} {
			m.ran.WithLabelValues(string(kind), string(outcome))
		}
	}
	if r != nil {
		r.MustRegister(m.ran, m.lost, newCollector(q))
	}
	return m
}

// collector reads how many tasks Redis holds at each scrape; where it doesn't answer, nothing is told.
type collector struct {
	queue           *Queue
	waiting, failed *prometheus.Desc
}

func newCollector(q *Queue) *collector {
	return &collector{
		queue:   q,
		waiting: prometheus.NewDesc("doortab_tasks_waiting", "Delayed tasks whose time has not come, or that will be tried again.", nil, nil),
		failed:  prometheus.NewDesc("doortab_failed_tasks", "Delayed tasks that failed again and again and wait for a person.", nil, nil),
	}
}

// Describe is called at registration.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.waiting
	descriptions <- c.failed
}

// Collect is called at each scrape.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	waiting, failed, err := c.queue.sizes()
	if err != nil {
		c.queue.log.Debug("Delayed tasks can't be counted.", "error", err)
		return
	}
	to <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(waiting))
	to <- prometheus.MustNewConstMetric(c.failed, prometheus.GaugeValue, float64(failed))
}

func (q *Queue) sizes() (waiting, failed int, err error) {
	if q.off() {
		return 0, 0, nil
	}
	if q.outage.lasts() {
		return 0, 0, ErrUnavailable // a scrape doesn't wait for it
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	if err := q.register(ctx); err != nil {
		return 0, 0, err
	}
	info, err := q.inspector.GetQueueInfo(q.name)
	if err != nil {
		return 0, 0, err
	}
	return info.Scheduled + info.Pending + info.Active + info.Retry, info.Archived, nil
}

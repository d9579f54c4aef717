package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"

	"doortab/mqtt"
)

// mqttMetric is one number of the Stats of a client or of the embedded broker.
type mqttMetric[S any] struct {
	name  string
	help  string
	kind  prometheus.ValueType
	value func(S) float64
}

var clientMetrics = []mqttMetric[mqtt.Stats]{
	{"connects_total", "Connections made to the broker.", prometheus.CounterValue,
		func(s mqtt.Stats) float64 { return float64(s.Connects) }},
	{"received_total", "Messages that arrived.", prometheus.CounterValue,
		func(s mqtt.Stats) float64 { return float64(s.Received) }},
	{"dropped_total", "Messages that no handler will see: no room.", prometheus.CounterValue,
		func(s mqtt.Stats) float64 { return float64(s.Dropped) }},
	{"sent_total", "Messages sent that the broker has acknowledged.", prometheus.CounterValue,
		func(s mqtt.Stats) float64 { return float64(s.Sent) }},
	{"given_up_total", "Messages to send that the broker has not acknowledged in time.", prometheus.CounterValue,
		func(s mqtt.Stats) float64 { return float64(s.GivenUp) }},
	{"unacknowledged", "Messages received and not yet acknowledged.", prometheus.GaugeValue,
		func(s mqtt.Stats) float64 { return float64(s.Unacknowledged) }},
	{"queued", "Messages to send without an outcome yet.", prometheus.GaugeValue,
		func(s mqtt.Stats) float64 { return float64(s.Queued) }},
}

var brokerMetrics = []mqttMetric[mqtt.BrokerStats]{
	{"clients", "Connections that are open, the three of this process included.", prometheus.GaugeValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Clients) }},
	{"refused_connects_total", "Wrong secrets, client ids, wills and protocol versions.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.RefusedConnects) }},
	{"revoked_total", "Connections ended because their credential was replaced.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Revoked) }},
	{"refused_publishes_total", "Messages to a topic of somebody else.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.RefusedPublishes) }},
	{"refused_subscriptions_total", "Subscriptions of a topic of somebody else.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.RefusedSubscriptions) }},
	{"oversize_total", "Connections ended by too large a packet.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Oversize) }},
	{"paused", "Connections not read at this moment since the window is full.", prometheus.GaugeValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Paused) }},
	{"pauses_total", "Messages that had to wait for room in the window.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Pauses) }},
	{"not_admitted_total", "Messages whose connection ended while they waited for room.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.NotAdmitted) }},
	{"unresponsive_total", "Connections ended since their cabinet did not read or acknowledge.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Unresponsive) }},
	{"dropped_total", "Messages that a receiver will not get.", prometheus.CounterValue,
		func(s mqtt.BrokerStats) float64 { return float64(s.Dropped) }},
}

// measureMQTT registers what the clients and the broker, if there is one, count.
func (n *node) measureMQTT() {
	n.registry.MustRegister(
		newStatsCollector("doortab_mqtt_client_", prometheus.Labels{"client": "events"}, clientMetrics, n.events.Stats),
		newStatsCollector("doortab_mqtt_client_", prometheus.Labels{"client": "receipts"}, clientMetrics, n.receipts.Stats),
		newStatsCollector("doortab_mqtt_client_", prometheus.Labels{"client": "statuses"}, clientMetrics, n.statuses.Stats))
	if n.broker != nil {
		n.registry.MustRegister(newStatsCollector("doortab_mqtt_broker_", nil, brokerMetrics, n.broker.Stats))
	}
}

// measureBreakers registers what each circuit breaker in front of Redis does: 0 closed, 1 half open, 2 open.
func (n *node) measureBreakers() {
	for name, state := range map[string]func() gobreaker.State{"receipts": n.remembered.Breaker, "rate-limits": n.limits.Breaker,
		"promotions": n.counters.Breaker} {
		n.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "doortab_breaker_state", Help: "Circuit breaker: 0 closed, 1 half open, 2 open.",
			ConstLabels: prometheus.Labels{"name": name},
		}, func() float64 { return float64(state()) }))
	}
}

// statsCollector reads all numbers at the moment of a scrape.
type statsCollector[S any] struct {
	stats   func() S
	metrics []mqttMetric[S]
	descs   []*prometheus.Desc
}

func newStatsCollector[S any](prefix string, labels prometheus.Labels, metrics []mqttMetric[S], stats func() S) *statsCollector[S] {
	c := &statsCollector[S]{stats: stats, metrics: metrics}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc(prefix+m.name, m.help, nil, labels))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *statsCollector[S]) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statsCollector[S]) Collect(to chan<- prometheus.Metric) {
	s := c.stats()
	for i, m := range c.metrics {
		to <- prometheus.MustNewConstMetric(c.descs[i], m.kind, m.value(s))
	}
}

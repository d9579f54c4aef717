package main

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Whatever the clients and the broker count can be watched, and the operator is told what for.
func TestMQTTMetricsAreServedAndDocumented(t *testing.T) {
	t.Parallel()
	n := &node{
		config:   nodeConfig{MQTTListen: "127.0.0.1:0", Instance: "test"},
		log:      slog.New(slog.DiscardHandler),
		registry: prometheus.NewRegistry(),
	}
	if err := n.openMQTT(); err != nil {
		t.Fatal(err)
	}
	defer n.broker.Close()
	n.measureMQTT()
	families, err := n.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(clientMetrics) + len(brokerMetrics); len(families) != want {
		t.Errorf("%d metrics, want %d", len(families), want)
	}
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		short := strings.TrimPrefix(strings.TrimPrefix(f.GetName(), "doortab_mqtt_client"), "doortab_mqtt_broker")
		if !strings.Contains(string(text), short) {
			t.Errorf("docs/operating.md says nothing of %s", f.GetName())
		}
	}
}

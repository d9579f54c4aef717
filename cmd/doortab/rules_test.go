package main

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const rulesFolder = "../../deploy/prometheus/"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A rule on a metric that nobody exports never fires, and promtool doesn't know.
func TestEveryMetricOfTheAlertRulesIsExported(t *testing.T) {
	t.Parallel()
	n := startedNode(t, nodeConfig{})
	rules := read(t, rulesFolder+"doortab.rules.yml")
	named := regexp.MustCompile(`doortab_[a-z_]+`).FindAllString(rules, -1)
	if len(named) < 20 {
		t.Fatalf("%d metrics in the rules", len(named))
	}
	for _, metric := range named {
		eventually(t, 10*time.Second, "a process exports "+metric, func() bool { // some parts register when they start to run
			return strings.Contains(strings.Join(exports(n.registry), "\n"), `fqName: "`+metric+`",`)
		})
	}
}

// startedNode is a node in this process, on a database of its own.
func startedNode(t *testing.T, config nodeConfig) *node {
	t.Helper()
	config.DatabaseDSN, config.MQTTListen, config.HTTPAddr = newInstallation(t, 0).dsn, "127.0.0.1:0", "127.0.0.1:0"
	config.Currency = "CNY"
	n, err := startNode(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// exports describes all metrics, those without a series yet too.
func exports(registry *prometheus.Registry) (list []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	for d := range descriptions {
		list = append(list, d.String())
	}
	return list
}

func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	t.Parallel()
	rules, tests, page := read(t, rulesFolder+"doortab.rules.yml"), read(t, rulesFolder+"doortab.rules.test.yml"), read(t, "../../docs/monitoring.md")
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	if len(alerts) < 20 {
		t.Fatalf("%d alerts", len(alerts))
	}
	for _, alert := range alerts {
		if !strings.Contains(tests, "alertname: "+alert[1]+"\n") {
			t.Errorf("%s has no unit test", alert[1])
		}
		if !strings.Contains(page, "| `"+alert[1]+"` |") {
			t.Errorf("docs/monitoring.md says nothing of %s", alert[1])
		}
	}
	for _, named := range regexp.MustCompile("(?m)^\\| `(Doortab\\w+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(rules, "alert: "+named[1]+"\n") {
			t.Errorf("docs/monitoring.md has %s, which is no alert", named[1])
		}
	}
}

func TestBreakersTellOfARedisThatIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url  string
		away bool
	}{
		"away": {"redis://127.0.0.1:1/0", true}, "none": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startedNode(t, nodeConfig{RedisURL: c.url})
			for _, breaker := range []string{"receipts", "rate-limits"} {
				if is := n.metric(t, "doortab_breaker_state", breaker); is > 0 != c.away {
					t.Errorf("the breaker of %s is %v", breaker, is)
				}
			}
		})
	}
}

// metric is a gauge or counter by its only label, or the first by name.
func (n *node) metric(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no %s of %s", name, label)
	return 0
}

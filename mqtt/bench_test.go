package mqtt_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"doortab/mqtt"
	"doortab/services/servicestest"
)

// BenchmarkPublishHandleAck is one event of 600 bytes from one of 8 cabinets to the worker and its acknowledgement.
func BenchmarkPublishHandleAck(b *testing.B) {
	brokers := map[string]func() *rig{
		"embedded":  func() *rig { return embedded(b, nil) },
		"mosquitto": func() *rig { return &rig{name: "mosquitto", root: newRoot(), url: servicestest.Mosquitto(b).URL()} },
	}
	for name, begin := range brokers {
		b.Run(name, func(b *testing.B) {
			r := begin()
			handled := make(chan struct{}, 1024)
			run(b, r.worker("w", func(m *mqtt.Message) bool {
				select {
				case handled <- struct{}{}:
					m.Ack()
					return true
				default:
					return false
				}
			}))
			payload := strings.Repeat("x", 600)
			var next atomic.Int64
			for i := range 8 {
				c := r.cabinet(b, fmt.Sprint(1001+i))
				go func() {
					for next.Add(1) <= int64(b.N) {
						if done(c.Publish(r.topic(fmt.Sprint(1001+i), "door-closed"), 1, false, payload)) != nil {
							return
						}
					}
				}()
			}
			b.ResetTimer()
			for range b.N {
				await(b, handled)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkSend is one receipt of 400 bytes, pipelined, to its PUBACK.
func BenchmarkSend(b *testing.B) {
	for _, name := range []string{"embedded", "mosquitto"} {
		b.Run(name, func(b *testing.B) {
			r := &rig{name: "mosquitto", root: newRoot()}
			if name == "embedded" {
				r = embedded(b, nil)
			} else {
				r.url = servicestest.Mosquitto(b).URL()
			}
			cfg := r.worker("w", func(*mqtt.Message) bool { return true })
			cfg.SendQueue = b.N
			client := run(b, cfg)
			outcomes := make(chan error, b.N)
			payload := []byte(strings.Repeat("x", 400))
			b.ResetTimer()
			for range b.N {
				check(b, client.Send(r.topic("1001", "receipts"), payload, func(err error) { outcomes <- err }))
			}
			for range b.N {
				check(b, await(b, outcomes))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
		})
	}
}

// BenchmarkFleetStatus is what a reconnect of the status client costs when 100,000 cabinets have a status kept.
func BenchmarkFleetStatus(b *testing.B) {
	const cabinets = 100_000
	for _, name := range []string{"embedded", "mosquitto"} {
		r := &rig{name: "mosquitto", root: newRoot()}
		if name == "embedded" {
			r = embedded(b, nil)
		} else {
			r.url = servicestest.Mosquitto(b).URL()
		}
		keepStatuses(b, r, cabinets)
		for qos := range byte(2) {
			b.Run(fmt.Sprint(name, "/qos", qos), func(b *testing.B) {
				for range b.N {
					seen, took := readStatuses(b, r, qos, cabinets)
					b.ReportMetric(float64(seen), "statuses")
					b.ReportMetric(took.Seconds(), "s/reconnect")
				}
			})
		}
	}
}

func keepStatuses(b *testing.B, r *rig, n int) {
	b.Helper()
	var last paho.Token
	cfg := r.worker("seed", func(*mqtt.Message) bool { return true })
	cfg.SendQueue = n
	client := run(b, cfg)
	_ = last
	for i := range n {
		check(b, client.Publish(b.Context(), r.topic(strconv.Itoa(i), "status"), []byte(`{"online":true,"bootId":"7f3a"}`), 0, true))
	}
}

// readStatuses counts until a second passes without one.
func readStatuses(b *testing.B, r *rig, qos byte, most int64) (int64, time.Duration) {
	b.Helper()
	var seen atomic.Int64
	begin, last := time.Now(), time.Now()
	cfg := r.worker("status", nil)
	cfg.Subscriptions = []mqtt.Subscription{{Filter: r.root + "/+/status", QoS: qos, Handle: func(m *mqtt.Message) bool {
		seen.Add(1)
		m.Ack()
		return true
	}}}
	cfg.Logger = slog.New(slog.DiscardHandler)
	_, stop := start(b, cfg)
	defer stop()
	count := int64(0)
	for seen.Load() < most && time.Since(last) < time.Second {
		if now := seen.Load(); now != count {
			count, last = now, time.Now()
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	if os.Getenv("DEBUG") != "" {
		b.Logf("rss")
	}
	return seen.Load(), last.Sub(begin)
}

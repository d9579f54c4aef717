package mqtt_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"doortab/mqtt"
	"doortab/services"
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
	for _, name := range []string{"embedded", "mosquitto", "mosquitto with max_queued_messages 0"} {
		r := &rig{name: "mosquitto", root: newRoot()}
		switch name {
		case "embedded":
			r = embedded(b, nil)
		case "mosquitto":
			r.url = servicestest.Mosquitto(b).URL()
		default:
			unlimited := services.Options{Mosquitto: &services.MosquittoOptions{Lines: []string{"max_queued_messages 0"}}}
			r.url = servicestest.Start(b, unlimited).Mosquitto.URL()
		}
		fillStatuses(b, r, cabinets)
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

func fillStatuses(b *testing.B, r *rig, n int) {
	b.Helper()
	client := run(b, r.worker("seed", func(*mqtt.Message) bool { return true }))
	var group errgroup.Group
	group.SetLimit(32)
	for i := range n {
		group.Go(func() error {
			return client.Publish(b.Context(), r.topic(strconv.Itoa(i), "status"), []byte(`{"online":true,"bootId":"7f3a"}`), 1, true)
		})
	}
	check(b, group.Wait())
}

// readStatuses counts until all are there or five seconds pass without one.
func readStatuses(b *testing.B, r *rig, qos byte, all int) (seen int, took time.Duration) {
	b.Helper()
	arrived := make(chan struct{}, all)
	cfg := r.worker("status", nil)
	cfg.Subscriptions = []mqtt.Subscription{{Filter: r.root + "/+/status", QoS: qos, Handle: func(m *mqtt.Message) bool {
		arrived <- struct{}{}
		m.Ack()
		return true
	}}}
	begin := time.Now()
	_, stop := start(b, cfg)
	defer stop()
	for seen < all {
		select {
		case <-arrived:
			seen, took = seen+1, time.Since(begin)
		case <-time.After(5 * time.Second):
			return seen, took
		}
	}
	return seen, took
}

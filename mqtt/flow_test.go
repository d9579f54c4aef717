package mqtt_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"doortab/mqtt"
)

// rawCabinet writes what it likes when it likes, as a burst needs.
type rawCabinet struct {
	net.Conn
	t testing.TB
	r *rig
	// receipts counts by payload what arrived, acks what was acknowledged by packet id.
	receipts, acks map[string]int
}

func (r *rig) rawCabinet(t testing.TB, device string, keepAlive uint16) *rawCabinet {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "tcp://"))
	check(t, err)
	check(t, conn.(*net.TCPConn).SetReadBuffer(64<<10))
	t.Cleanup(func() { _ = conn.Close() })
	check(t, conn.SetReadDeadline(time.Now().Add(4*patience)))
	c := &rawCabinet{conn, t, r, map[string]int{}, map[string]int{}}
	hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	hello.ProtocolName, hello.ProtocolVersion, hello.CleanSession, hello.Keepalive = "MQTT", 4, true, keepAlive
	hello.ClientIdentifier, hello.UsernameFlag, hello.PasswordFlag = device+"-raw", true, true
	hello.Username, hello.Password = device, []byte("secret-"+device)
	check(t, hello.Write(c))
	c.expect(packets.Connack)
	listen := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	listen.MessageID, listen.Topics, listen.Qoss = 1, []string{r.topic(device, "receipts")}, []byte{1}
	check(t, listen.Write(c))
	c.expect(packets.Suback)
	return c
}

func (c *rawCabinet) expect(kind byte) {
	c.t.Helper()
	p, err := packets.ReadPacket(c)
	check(c.t, err)
	if want := packets.PacketNames[kind]; !strings.HasPrefix(p.String(), want) {
		c.t.Fatalf("got %v, want %s", p, want)
	}
}

func event(topic string, id uint16, payload string) []byte {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.Qos, p.TopicName, p.MessageID, p.Payload = 1, topic, id, []byte(payload)
	var out bytes.Buffer
	_ = p.Write(&out) // a buffer takes everything
	return out.Bytes()
}

// burst writes all payloads at once; the acknowledgements of receipts come behind them.
func (c *rawCabinet) burst(device string, payloads []string) {
	c.t.Helper()
	var all bytes.Buffer
	for i, p := range payloads {
		all.Write(event(c.r.topic(device, "door-closed"), uint16(i+1), p))
	}
	var mine sync.Mutex
	mine.Lock()
	go func() {
		defer mine.Unlock()
		_, _ = c.Write(all.Bytes()) // the reader below misses what did not go out
	}()
	for read := 0; read < 2*len(payloads); read++ {
		p, err := packets.ReadPacket(c)
		if err != nil {
			c.t.Fatalf("after %d acknowledgements and %d receipts: %v", len(c.acks), len(c.receipts), err)
		}
		c.note(p, &mine)
	}
}

func (c *rawCabinet) note(p packets.ControlPacket, mine *sync.Mutex) {
	switch p := p.(type) {
	case *packets.PubackPacket:
		c.acks[fmt.Sprint(p.MessageID)]++
	case *packets.PublishPacket:
		c.receipts[string(p.Payload)]++
		if mine.TryLock() { // what arrives amid the burst stays unacknowledged
			ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			ack.MessageID = p.MessageID
			_ = ack.Write(c)
			mine.Unlock()
		}
	}
}

// settler answers each message with a receipt of the same payload and acknowledges it, once it may begin.
type settler struct {
	inbox
	begin  chan struct{}
	pause  time.Duration // after every 100 messages
	counts map[string]int
}

func (s *settler) run(ctx context.Context, client *mqtt.Client, receipts string, messages int) {
	select {
	case <-s.begin:
	case <-ctx.Done():
		return
	}
	for i := range messages {
		var m *mqtt.Message
		select {
		case m = <-s.inbox:
		case <-ctx.Done(): // the test has failed
			return
		}
		s.counts[string(m.Payload)]++
		for client.Send(receipts, m.Payload, nil) != nil { // the queue is full
			<-time.After(time.Millisecond)
		}
		m.Ack()
		if s.pause > 0 && i%100 == 99 {
			<-time.After(s.pause)
		}
	}
}

// Each delivery gets one acknowledgement and one receipt, on the connection that it came by, however many come at once.
func TestBurstOnOneConnectionIsAnsweredWhole(t *testing.T) {
	t.Parallel()
	const window = 300
	bursts := map[string][]string{"1000 copies": copies(1000), "4000 copies": copies(4000), "3000 distinct": distinct(3000)}
	consumers := map[string]func(*settler){
		"quick":         func(s *settler) { close(s.begin) },
		"slow":          func(s *settler) { s.pause = 5 * time.Millisecond; close(s.begin) },
		"after a pause": func(*settler) {},
	}
	for burst, payloads := range bursts {
		for consumer, adjust := range consumers {
			t.Run(burst+", "+consumer, func(t *testing.T) {
				t.Parallel()
				r := embedded(t, func(c *mqtt.BrokerConfig) { c.Window = window })
				s := &settler{inbox: make(inbox, window), begin: make(chan struct{}), counts: map[string]int{}}
				adjust(s)
				client := run(t, r.worker("w", s.take))
				c := r.rawCabinet(t, "1001", 60)
				var settling sync.WaitGroup
				settling.Go(func() { s.run(t.Context(), client, r.topic("1001", "receipts"), len(payloads)) })
				if consumer == "after a pause" {
					settling.Go(func() {
						eventually(t, "the cabinet is paused", func() bool { return r.broker.Stats().Paused == 1 })
						close(s.begin)
					})
				}
				c.burst("1001", payloads)
				settling.Wait()
				c.checkAnswers(payloads, s.counts)
			})
		}
	}
}

func (c *rawCabinet) checkAnswers(payloads []string, handled map[string]int) {
	c.t.Helper()
	want := map[string]int{}
	for _, p := range payloads {
		want[p]++
	}
	for p, n := range want {
		if handled[p] != n || c.receipts[p] != n {
			c.t.Fatalf("%q was sent %d times, handled %d times and answered %d times", p, n, handled[p], c.receipts[p])
		}
	}
	if len(c.acks) != len(payloads) {
		c.t.Errorf("%d of %d acknowledged", len(c.acks), len(payloads))
	}
	if s := c.r.broker.Stats(); s.Dropped+s.NotAdmitted+s.Unresponsive != 0 || s.Paused != 0 {
		c.t.Errorf("not in peace: %+v", s)
	}
}

func copies(n int) []string {
	all := distinct(n)
	for i := range all {
		all[i] = all[0]
	}
	return all
}

func distinct(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%06d%s", i, strings.Repeat("x", 400))
	}
	return all
}

func TestFullWindowPausesItsPublisherAlone(t *testing.T) {
	t.Parallel()
	const window = 10
	for name, change := range map[string]func(*mqtt.BrokerConfig){
		"by number": func(c *mqtt.BrokerConfig) { c.Window = window },
		"by bytes":  func(c *mqtt.BrokerConfig) { c.WindowBytes = window*1000 + 500 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := embedded(t, change)
			got := make(inbox, 100)
			client := run(t, r.worker("w", got.take))
			c, other := r.cabinet(t, "1001"), r.cabinet(t, "1002")
			receipts := other.listen(r.topic("1002", "receipts"))
			payload := strings.Repeat("x", 1000-len(r.topic("1001", "door-closed")))
			for range window {
				c.publish(r.topic("1001", "door-closed"), payload)
			}
			paused := c.Publish(r.topic("1001", "door-closed"), 1, false, payload)
			eventually(t, "it is paused", func() bool { return r.broker.Stats().Paused == 1 })
			check(t, client.Publish(t.Context(), r.topic("1002", "receipts"), []byte("receipt"), 1, false))
			await(t, receipts)
			other.publish(r.topic("1002", "status"), "no worker acknowledges it")
			if paused.WaitTimeout(0) {
				t.Error("a message was acknowledged that found no room")
			}
			await(t, got).Ack()
			check(t, done(paused))
			if s := r.broker.Stats(); s.Pauses != 1 || s.Paused+int(s.NotAdmitted) != 0 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

func TestMessageLargerThanTheWindowGoesAlone(t *testing.T) {
	t.Parallel()
	r := embedded(t, func(c *mqtt.BrokerConfig) { c.WindowBytes = 1000 })
	got := make(inbox, 10)
	run(t, r.worker("w", got.take))
	c := r.cabinet(t, "1001")
	for range 3 {
		c.publish(r.topic("1001", "door-closed"), strings.Repeat("x", 5000))
		await(t, got).Ack()
	}
}

// Nothing that waits for room may outlive its connection.
func TestPausedConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keepAlive uint16
		end       func(*testing.T, *rig)
	}{
		"after its keep-alive":        {1, func(*testing.T, *rig) {}},
		"when its cabinet comes anew": {60, func(t *testing.T, r *rig) { r.rawCabinet(t, "1001", 60) }},
		"when the broker closes":      {60, func(_ *testing.T, r *rig) { r.broker.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := embedded(t, func(c *mqtt.BrokerConfig) { c.Window = 1 })
			run(t, r.worker("w", make(inbox, 10).take))
			c := r.rawCabinet(t, "1001", tc.keepAlive)
			for i := range 2 {
				_, err := c.Write(event(r.topic("1001", "door-closed"), uint16(i+1), "x"))
				check(t, err)
			}
			eventually(t, "it is paused", func() bool { return r.broker.Stats().Paused == 1 })
			tc.end(t, r)
			eventually(t, "it is counted", func() bool { return r.broker.Stats().NotAdmitted == 1 })
			if n := r.broker.Stats().Paused; n != 0 {
				t.Errorf("%d still wait", n)
			}
		})
	}
}

// A cabinet that takes nothing must not hold up the receipts of others.
func TestUnresponsiveCabinetIsEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size int
		read func(*rawCabinet)
	}{
		"it does not read":        {64 << 10, func(*rawCabinet) {}},
		"it does not acknowledge": {1, func(c *rawCabinet) { _, _ = bytes.NewBuffer(nil).ReadFrom(c) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := embedded(t, nil)
			client := run(t, r.worker("w", make(inbox, 1).take))
			bad, good := r.rawCabinet(t, "1001", 3600), r.cabinet(t, "1002") // it never pings, and must not end for that
			receipts := good.listen(r.topic("1002", "receipts"))
			var reading sync.WaitGroup
			reading.Go(func() { tc.read(bad) })
			var slowest time.Duration
			for i := 0; r.broker.Stats().Unresponsive == 0 && i < 10_000; i++ {
				check(t, client.Publish(t.Context(), r.topic("1001", "receipts"), make([]byte, tc.size), 1, false))
				if i%100 == 0 {
					begin := time.Now()
					check(t, client.Publish(t.Context(), r.topic("1002", "receipts"), []byte("receipt"), 1, false))
					await(t, receipts)
					slowest = max(slowest, time.Since(begin))
				}
			}
			reading.Wait()
			eventually(t, "it is gone", func() bool { return r.broker.Stats().Clients == 2 })
			if s := r.broker.Stats(); s.Unresponsive != 1 || slowest > 2*time.Second {
				t.Errorf("counted %d; another's receipt took up to %v", s.Unresponsive, slowest)
			}
		})
	}
}

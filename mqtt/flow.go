package mqtt

import (
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// maxInflight is the most messages that a connected cabinet may leave unacknowledged. It is far above what it needs to
	// read in peace: the acknowledgements of a cabinet that sends a burst come behind the burst.
	maxInflight = 8192
	// maxOffline is the same for a session that is kept while its cabinet is away.
	maxOffline = 256
	// maxLocalInflight is the same for a client of this process. Only kept messages, which nobody admits, can come near it.
	maxLocalInflight = 50_000
)

// goesToLocal says whether a client of this process gets the topic and will have to acknowledge it. Only that takes room in
// the window, so that a full one does not stop statuses and telemetry.
func (r *rules) goesToLocal(topic string) bool {
	subscribers := r.broker.server.Topics.Subscribers(topic)
	if r.anyLocal(subscribers.Subscriptions) {
		return true
	}
	for _, group := range subscribers.Shared {
		if r.anyLocal(group) {
			return true
		}
	}
	return false
}

func (r *rules) anyLocal(subscriptions map[string]packets.Subscription) bool {
	for id, s := range subscriptions {
		if s.Qos > 0 && r.isLocal(id) {
			return true
		}
	}
	return false
}

// admit reserves room in the window for the publish in progress. While there is none it blocks the connection's reader, so
// that TCP holds up the sender. False means that the connection has ended, for its keep-alive at the latest: its pings are
// not read meanwhile.
func (r *rules) admit(cl *mochi.Client, s *session, size int) bool {
	place := r.broker.window.enter(size)
	if !place.granted() {
		r.broker.count.pauses.Add(1)
		timer := time.NewTimer(time.Duration(cl.State.Keepalive) * 1500 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-place.grant:
		case <-s.shut:
		case <-timer.C:
			_ = s.Close()
			user, _, _ := s.identity()
			r.broker.log.Info("Closed an MQTT connection: its message found no room within its keep-alive", "user", user)
		}
	}
	if s.isShut() {
		r.broker.window.leave(place)
		r.broker.count.notAdmitted.Add(1)
		return false
	}
	s.reserved = size
	return true
}

// OnPacketProcessed frees what OnPublish reserved; what a local client got meanwhile is counted on its own.
func (r *rules) OnPacketProcessed(cl *mochi.Client, _ packets.Packet, _ error) {
	sessionOf(cl).settle(r.broker.window)
}

// OnQosPublish counts what goes to a local client.
func (r *rules) OnQosPublish(cl *mochi.Client, pk packets.Packet, _ int64, _ int) {
	if s := sessionOf(cl); s != nil && s.local && pk.FixedHeader.Type == packets.Publish {
		s.sent(pk.PacketID, len(pk.Payload)+len(pk.TopicName), r.broker.window)
	}
}

// OnACLCheck is asked before each delivery. Who may publish and subscribe is decided in OnPublish and OnSubscribe; here a
// receiver is held to its bounds.
func (r *rules) OnACLCheck(cl *mochi.Client, _ string, write bool) bool {
	s := sessionOf(cl)
	if write || s == nil || s.subscribing.Load() {
		return true
	}
	if r.hasRoom(cl, s) {
		return true
	}
	r.broker.count.dropped.Add(1)
	return false
}

// hasRoom waits for room in the server's queue, which drops what it has no room for and would not tell. A cabinet that does
// not acknowledge is ended and not waited for: that would hold up the acknowledgements that its own messages wait for.
func (r *rules) hasRoom(cl *mochi.Client, s *session) bool {
	unacknowledged := cl.State.Inflight.Len()
	switch {
	case s.local:
		return unacknowledged < maxLocalInflight && s.pace()
	case s.isShut():
		return unacknowledged < maxOffline
	case unacknowledged >= maxInflight:
		s.out.stuck.Store(true)
		_ = s.Close()
		return false
	}
	return s.pace() || unacknowledged < maxOffline
}

// OnPacketSent makes room in the queue of a client.
func (*rules) OnPacketSent(cl *mochi.Client, pk packets.Packet, _ []byte) {
	if pk.FixedHeader.Type == packets.Publish {
		sessionOf(cl).written()
	}
}

// OnPublishDropped counts what the queue of a receiver had no room for.
func (r *rules) OnPublishDropped(cl *mochi.Client, _ packets.Packet) {
	r.broker.count.dropped.Add(1)
	if s := sessionOf(cl); s != nil {
		s.written()
	}
}

// OnDisconnect cuts what is kept for the cabinet's return.
func (r *rules) OnDisconnect(cl *mochi.Client, _ error, expire bool) {
	if expire {
		return
	}
	kept := cl.State.Inflight.GetAll(false)
	for i := maxOffline; i < len(kept); i++ {
		if cl.State.Inflight.Delete(kept[i].PacketID) {
			r.broker.count.dropped.Add(1)
		}
	}
}

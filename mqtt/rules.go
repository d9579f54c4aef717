package mqtt

import (
	"math"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// rules is where the broker asks who may do what.
type rules struct {
	mochi.HookBase
	broker *Broker
}

// ID names the hook in the broker's log.
func (*rules) ID() string { return "doortab" }

// Provides names the events that the rules take part in.
func (*rules) Provides(event byte) bool {
	switch event {
	case mochi.OnConnect, mochi.OnConnectAuthenticate, mochi.OnSessionEstablish, mochi.OnACLCheck, mochi.OnPacketRead,
		mochi.OnPacketSent, mochi.OnPacketProcessed, mochi.OnSubscribe, mochi.OnSubscribed, mochi.OnPublish,
		mochi.OnPublishDropped, mochi.OnQosPublish, mochi.OnWill, mochi.OnDisconnect,
		mochi.OnClientExpired:
		return true
	}
	return false
}

func sessionOf(cl *mochi.Client) *session {
	s, _ := cl.Net.Conn.(*session)
	return s
}

// OnConnect answers CONNECT: it refuses with the standard's return code, or notes who it is.
func (r *rules) OnConnect(cl *mochi.Client, pk packets.Packet) error {
	s := sessionOf(cl)
	if s.local {
		return nil
	}
	username := string(pk.Connect.Username)
	token, code, reason := r.judge(username, pk)
	if reason == "" {
		if most := keepAliveSeconds(r.broker.cfg.MaxKeepAlive); cl.State.Keepalive == 0 || cl.State.Keepalive > most {
			cl.State.Keepalive = most
		}
		s.identify(username, token)
		return nil
	}
	r.broker.count.refusedConnects.Add(1)
	r.broker.log.Info("Refused an MQTT connection", "reason", reason, "user", username,
		"client", pk.Connect.ClientIdentifier, "remote", cl.Net.Remote)
	_ = r.broker.server.SendConnack(cl, code, false, nil)
	return code
}

func (r *rules) judge(username string, pk packets.Packet) (token string, code packets.Code, reason string) {
	cfg, id := r.broker.cfg, pk.Connect.ClientIdentifier
	if pk.ProtocolVersion > 4 {
		return "", packets.ErrUnsupportedProtocolVersion, "protocol newer than MQTT 3.1.1"
	}
	if username == "" {
		return "", packets.ErrBadUsernameOrPassword, "anonymous"
	}
	token, ok := cfg.Authenticate(username, pk.Connect.Password)
	if !ok {
		return "", packets.ErrBadUsernameOrPassword, "wrong user or secret"
	}
	if !cfg.ClientIDAllowed(username, id) || r.isLocal(id) {
		return "", packets.ErrClientIdentifierNotValid, "client id of somebody else"
	}
	if pk.Connect.WillFlag && !cfg.MayPublish(username, pk.Connect.WillTopic) {
		return "", packets.ErrBadUsernameOrPassword, "last will to a topic of somebody else"
	}
	return token, packets.CodeSuccess, ""
}

// isLocal says whether a client of this process has the id.
func (r *rules) isLocal(id string) bool {
	cl, ok := r.broker.server.Clients.Get(id)
	return ok && sessionOf(cl) != nil && sessionOf(cl).local
}

// OnConnectAuthenticate lets pass whom OnConnect has let pass.
func (r *rules) OnConnectAuthenticate(cl *mochi.Client, _ packets.Packet) bool {
	s := sessionOf(cl)
	_, _, known := s.identity()
	return s.local || known
}

// OnSessionEstablish ends an older connection of the same client id first, so that its last will does not arrive after the
// news of the new one.
func (r *rules) OnSessionEstablish(cl *mochi.Client, _ packets.Packet) {
	older, ok := r.broker.server.Clients.Get(cl.ID)
	if !ok || sessionOf(older) == nil {
		return
	}
	s := sessionOf(older)
	_ = s.Close()
	select {
	case <-s.gone:
	case <-time.After(brokerWriteTimeout):
	}
}

// OnPacketRead frees the window on PUBACK. The server keeps what it sends and what it receives under one packet id, so that
// a SUBSCRIBE or UNSUBSCRIBE whose id is in flight the other way would be refused; that entry only serves a redelivery.
func (r *rules) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	switch pk.FixedHeader.Type {
	case packets.Puback:
		if s := sessionOf(cl); s.local {
			s.acknowledged(pk.PacketID, r.broker.window)
		}
	case packets.Subscribe, packets.Unsubscribe:
		cl.State.Inflight.Delete(pk.PacketID)
	}
	return pk, nil
}

// OnPublish passes on what a user may publish. What it may not is acknowledged and dropped, the standard's way of refusing
// (MQTT 3.1.1, 3.3.5).
func (r *rules) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	s := sessionOf(cl)
	if s.local {
		return pk, nil
	}
	username, _, _ := s.identity()
	if !r.broker.cfg.MayPublish(username, pk.TopicName) {
		r.broker.count.refusedPublishes.Add(1)
		r.broker.log.Info("Dropped an MQTT message to a topic of somebody else", "user", username, "topic", pk.TopicName)
		return pk, packets.CodeSuccessIgnore
	}
	if r.broker.cfg.ClearRetain(pk.TopicName) || len(pk.Payload) > r.broker.cfg.MaxRetained {
		pk.FixedHeader.Retain = false
	}
	if pk.FixedHeader.Qos > 0 && r.goesToLocal(pk.TopicName) && !r.admit(cl, s, len(pk.Payload)+len(pk.TopicName)) {
		return pk, packets.ErrRejectPacket
	}
	return pk, nil
}

// OnSubscribe makes a filter invalid that the user may not subscribe; the SUBACK then refuses it.
func (r *rules) OnSubscribe(cl *mochi.Client, pk packets.Packet) packets.Packet {
	s := sessionOf(cl)
	s.subscribing.Store(true)
	if s.local {
		return pk
	}
	username, _, _ := s.identity()
	for i, f := range pk.Filters {
		if !r.broker.cfg.MaySubscribe(username, f.Filter) {
			r.broker.count.refusedSubscriptions.Add(1)
			r.broker.log.Info("Refused an MQTT subscription", "user", username, "filter", f.Filter)
			pk.Filters[i].Filter = ""
		}
	}
	return pk
}

// OnSubscribed ends what OnSubscribe began.
func (*rules) OnSubscribed(cl *mochi.Client, _ packets.Packet, _ []byte) {
	sessionOf(cl).subscribing.Store(false)
}

// OnWill applies the rule about retaining to a last will.
func (r *rules) OnWill(_ *mochi.Client, will mochi.Will) (mochi.Will, error) {
	if r.broker.cfg.ClearRetain(will.TopicName) || len(will.Payload) > r.broker.cfg.MaxRetained {
		will.Retain = false
	}
	return will, nil
}

// OnClientExpired forgets the subscriptions of a session that is kept no longer, which the server leaves behind.
func (r *rules) OnClientExpired(cl *mochi.Client) {
	cl.ClearInflights()
	r.broker.server.UnsubscribeClient(cl)
}

// keepAliveSeconds is a keep-alive as MQTT writes it, which knows no more than 65,535 s.
func keepAliveSeconds(d time.Duration) uint16 {
	return uint16(min(max(d/time.Second, 1), math.MaxUint16))
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"doortab/cabinet"
	"doortab/door"
	"doortab/intake"
	"doortab/mqtt"
	"doortab/settlement"
)

const (
	// group is the share that all workers of an installation take door-close events from, where none is named.
	group         = "doortab"
	minHookSecret = 16 // characters
)

var goodGroup = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

func (c nodeConfig) checkBroker() error {
	_, isCabinet := cabinet.ParseDeviceID(c.MQTTUsername)
	switch {
	case !goodGroup.MatchString(c.MQTTShare):
		return errors.New("--mqtt-share: give up to 64 letters, digits, hyphens and underscores")
	case c.MQTTHook == "":
		return nil
	case c.MQTTURL == "":
		return errors.New("--mqtt-hook-secret is for an external broker: give --mqtt-url too")
	case len(c.MQTTHook) < minHookSecret:
		return fmt.Errorf("--mqtt-hook-secret: give at least %d characters, such as `openssl rand -hex 32` prints", minHookSecret)
	case isCabinet:
		return errors.New("--mqtt-username: a number is a cabinet's name: give the workers another")
	default:
		return nil
	}
}

// maxPacket is the most of a message that is read. It is far more than an event may have, since a
// cabinet whose event is too large is owed an answer, which only the whole of it can name.
const maxPacket = 4 << 20

// openMQTT makes the three clients: one for events, one for their receipts, since the first isn't read while it holds all that
// it may, and one for all else that cabinets say and for unlocks, so that the retained states of a whole fleet never stand
// before any of these.
func (n *node) openMQTT() (err error) {
	base := mqtt.Config{
		URL: n.config.MQTTURL, Username: n.config.MQTTUsername, Password: n.config.MQTTPassword,
		CAFile: n.config.MQTTCAFile, MaxPayload: maxPacket, Logger: n.log,
	}
	if n.config.MQTTURL == "" {
		broker := n.brokerConfig()
		if broker.TLS, err = n.encryption("mqtt", n.config.MQTTTLSCert, n.config.MQTTTLSKey); err != nil {
			return err
		}
		if n.broker, err = mqtt.NewBroker(broker); err != nil {
			return err
		}
		base.URL, base.Dial = "", n.broker.Dial
	}
	n.client = base
	share := cmp.Or(n.config.MQTTShare, group)
	events, receipts, statuses := base, base, base
	events.ClientID = "doortab-" + n.instance()
	events.Subscriptions = []mqtt.Subscription{{Filter: cabinet.DoorClosedFilter, QoS: 1, Share: share, Handle: n.takeEvent}}
	receipts.ClientID = events.ClientID + "-receipts"
	statuses.ClientID = events.ClientID + "-status"
	statuses.Subscriptions = []mqtt.Subscription{
		{Filter: cabinet.DoorFilter, QoS: 1, Share: share, Handle: n.takeDoor},
		{Filter: cabinet.TelemetryFilter, QoS: 0, Share: share, Handle: n.takeTelemetry},
		{Filter: cabinet.StatusFilter, QoS: 0, Handle: n.takeStatus}, // shared ones get no retained messages
	}
	if n.events, err = mqtt.New(events); err != nil {
		return err
	}
	if n.receipts, err = mqtt.New(receipts); err != nil {
		return err
	}
	n.statuses, err = mqtt.New(statuses)
	return err
}

func (n *node) takeEvent(m *mqtt.Message) bool {
	deviceID, _, _ := cabinet.ParseTopic(m.Topic)
	taken := n.intake.Offer(intake.Message{
		Delivery: settlement.Delivery{
			DeviceID: deviceID, Topic: m.Topic, Payload: m.Payload, Size: m.Size, Digest: m.Digest, ReceivedAt: m.ReceivedAt,
		},
		Ack: m.Ack, Defer: m.Defer,
	})
	if taken {
		n.received.Add(1)
	}
	return taken
}

func (n *node) takeStatus(m *mqtt.Message) bool {
	deviceID, _, ok := cabinet.ParseTopic(m.Topic)
	if !ok {
		return true
	}
	status, err := cabinet.DecodeStatus(m.Payload)
	if err != nil {
		n.log.Debug("Status of a cabinet cannot be read.", "topic", m.Topic, "error", err)
		return true
	}
	n.board.Offer(deviceID, status.Online, status.BootID, m.ReceivedAt)
	return true
}

func (n *node) takeDoor(m *mqtt.Message) bool {
	deviceID, _, _ := cabinet.ParseTopic(m.Topic)
	report, err := cabinet.DecodeDoorReport(m.Payload)
	if err != nil {
		n.log.Debug("Report of a door cannot be read.", "topic", m.Topic, "error", err)
		m.Ack()
		return true
	}
	return n.doors.Offer(door.Report{DeviceID: deviceID, DoorReport: report, Ack: m.Ack})
}

func (n *node) takeTelemetry(m *mqtt.Message) bool {
	deviceID, _, ok := cabinet.ParseTopic(m.Topic)
	celsius, known, err := cabinet.DecodeTelemetry(m.Payload)
	switch {
	case err != nil:
		n.log.Debug("Telemetry of a cabinet cannot be read.", "topic", m.Topic, "error", err)
	case ok && known:
		n.board.OfferTemperature(deviceID, celsius, m.ReceivedAt)
	}
	return true
}

// sendUnlock doesn't wait for a connection: who stands before the door would have gone.
func (n *node) sendUnlock(ctx context.Context, topic string, payload []byte) error {
	return n.statuses.Publish(ctx, topic, payload, 0, false)
}

func (n *node) sendReceipt(topic string, payload []byte) {
	err := n.receipts.Send(topic, payload, func(err error) {
		if err != nil {
			n.log.Warn("Receipt was not delivered; the cabinet asks again.", "topic", topic, "error", err)
		}
	})
	if err != nil {
		n.log.Warn("Receipt was not sent; the cabinet asks again.", "topic", topic, "error", err)
	}
}

// brokerConfig confines each cabinet to its own topics and its own client ids (R10).
func (n *node) brokerConfig() mqtt.BrokerConfig {
	return mqtt.BrokerConfig{
		Listen:       n.config.MQTTListen,
		Authenticate: n.secrets.Authenticate,
		StillValid:   n.secrets.StillValid,
		ClientIDAllowed: func(username, clientID string) bool {
			return clientID == username || strings.HasPrefix(clientID, username+"-")
		},
		MayPublish:   confined(cabinet.MayPublish),
		MaySubscribe: confined(cabinet.MaySubscribe),
		ClearRetain: func(topic string) bool {
			_, leaf, ok := cabinet.ParseTopic(topic)
			return ok && leaf == cabinet.LeafDoorClosed
		},
		MaxPacket: maxPacket,
		Logger:    n.log,
	}
}

func confined(rule func(deviceID int64, topic string) bool) func(username, topic string) bool {
	return func(username, topic string) bool {
		deviceID, err := strconv.ParseInt(username, 10, 64)
		return err == nil && rule(deviceID, topic)
	}
}

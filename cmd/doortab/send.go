package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"

	"doortab/cabinet"
	"doortab/mqtt"
)

// cabinetSend is a cabinet for the length of one event: for trying things by hand.
type cabinetSend struct {
	DeviceID int64         `arg:"" help:"The cabinet's number."`
	Event    string        `arg:"" help:"The event as JSON; closeEventId, deviceId and closedAt are added where they are missing."`
	Secret   string        `required:"" help:"The cabinet's secret."`
	MQTT     string        `name:"mqtt" default:"tcp://127.0.0.1:1883" help:"Where cabinets connect."`
	CAFile   string        `name:"ca-file" placeholder:"FILE" help:"PEM file of the authority behind an mqtts broker; the system's where it is missing."`
	Wait     time.Duration `default:"15s" min:"1ms" max:"24h" help:"How long to wait for the receipt."`
}

// Run is called by the command line.
func (s *cabinetSend) Run(ctx context.Context, c *console) error {
	payload, id, err := s.complete(time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	receipts, ready := make(chan []byte, 16), make(chan struct{}, 1)
	client, err := mqtt.New(mqtt.Config{
		URL: s.MQTT, CAFile: s.CAFile, ClientID: strconv.FormatInt(s.DeviceID, 10) + "-send",
		Username: strconv.FormatInt(s.DeviceID, 10), Password: s.Secret, Logger: slog.New(slog.DiscardHandler),
		Subscriptions: []mqtt.Subscription{{Filter: cabinet.ReceiptsTopic(s.DeviceID), QoS: 1, Handle: offer(receipts)}},
		OnConnect: func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- client.Run(running) }()
	receipt, err := s.exchange(ctx, client, payload, id, ready, receipts)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	c.printf("%s\n", receipt)
	var answered struct{ Outcome cabinet.Outcome }
	if json.Unmarshal(receipt, &answered) == nil && answered.Outcome == cabinet.Rejected {
		_, _ = fmt.Fprintln(c.log, "doortab: rejected: `doortab dead-letters list` says why")
	}
	return nil
}

// exchange publishes the event and waits for the receipt that names it.
func (s *cabinetSend) exchange(
	ctx context.Context, client *mqtt.Client, payload []byte, id string, ready <-chan struct{}, receipts <-chan []byte,
) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("cabinet %d was not let in at %s within %s: check the address and the secret", s.DeviceID, s.MQTT, s.Wait)
	case <-ready:
	}
	if err := client.Publish(ctx, cabinet.DoorClosedTopic(s.DeviceID), payload, 1, false); err != nil {
		return nil, fmt.Errorf("publish the event: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no receipt for %s within %s: see `doortab dead-letters list` and the log of serve", id, s.Wait)
		case receipt := <-receipts:
			var named struct{ CloseEventID string }
			if json.Unmarshal(receipt, &named) == nil && named.CloseEventID == id {
				return receipt, nil
			}
		}
	}
}

// complete adds what every event must have.
func (s *cabinetSend) complete(now time.Time) (payload []byte, closeEventID string, err error) {
	members := map[string]json.RawMessage{} // numbers and all stay as they were written
	if err := json.Unmarshal([]byte(s.Event), &members); err != nil {
		return nil, "", fmt.Errorf(`event is not a JSON object, such as {"userId":42,"items":[{"productId":7,"quantity":2}]}: %w`, err)
	}
	for name, value := range map[string]any{
		"closeEventId": uuid.NewString(), "deviceId": s.DeviceID, "closedAt": now.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
	} {
		if _, given := members[name]; !given {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, "", err
			}
			members[name] = text
		}
	}
	if err := json.Unmarshal(members["closeEventId"], &closeEventID); err != nil {
		return nil, "", errors.New("closeEventId is not a string: without one there is no receipt to wait for")
	}
	payload, err = json.Marshal(members)
	return payload, closeEventID, err
}

func offer(receipts chan<- []byte) func(*mqtt.Message) bool {
	return func(m *mqtt.Message) bool {
		m.Ack()
		select {
		case receipts <- m.Payload:
		default: // more receipts than anybody asked for
		}
		return true
	}
}

package cabinet

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unlock tells a cabinet to open for a session until a time, and to report with the id given.
type Unlock struct {
	SessionID    string
	CloseEventID string
	Kind         Kind
	ExpiresAt    time.Time // kept to the millisecond
}

// MarshalJSON writes the unlock as section 4 of the design has it.
func (u Unlock) MarshalJSON() ([]byte, error) {
	w := writer{buf: make([]byte, 0, 192)}
	w.open('{')
	w.member("sessionId").text(u.SessionID)
	w.member("closeEventId").text(u.CloseEventID)
	w.member("kind").text(string(u.Kind))
	w.member("expiresAt").instantOrNull(u.ExpiresAt)
	w.close('}')
	return w.buf, nil
}

// DoorState is what became of an unlock.
type DoorState string

// The states that a cabinet reports.
const (
	DoorOpened    DoorState = "opened"
	DoorRefused   DoorState = "refused"    // it would not unlock
	DoorNotPulled DoorState = "not_pulled" // it unlocked, nobody opened, and it locked again
)

// DoorReport is a cabinet's answer to an unlock. Its own time of it decides nothing (R14) and is not read.
type DoorReport struct {
	SessionID string
	State     DoorState
}

// DecodeDoorReport reads a payload of the door topic. Unknown members are ignored.
func DecodeDoorReport(payload []byte) (DoorReport, error) {
	if len(payload) > MaxPayload {
		return DoorReport{}, fmt.Errorf("door report: %d bytes are more than %d", len(payload), MaxPayload)
	}
	var wire struct {
		SessionID jsontext.Value `json:"sessionId"`
		State     DoorState      `json:"state"`
	}
	if err := json.Unmarshal(payload, &wire); err != nil {
		return DoorReport{}, fmt.Errorf("door report: %w", err)
	}
	if len(wire.SessionID) == 0 {
		return DoorReport{}, errors.New("door report: sessionId is missing")
	}
	id, sound := identifier(wire.SessionID)
	if !sound {
		return DoorReport{}, errors.New("door report: sessionId is no id")
	}
	switch wire.State {
	case DoorOpened, DoorRefused, DoorNotPulled:
		return DoorReport{id, wire.State}, nil
	default:
		return DoorReport{}, fmt.Errorf("door report: state %q, want opened, refused or not_pulled", wire.State)
	}
}

// The range of temperatures that a cabinet can have; what lies outside is a broken sensor.
const (
	minTemperatureC = -100
	maxTemperatureC = 200
)

// DecodeTelemetry reads a payload of the telemetry topic: the temperature in °C. Unknown members are ignored; known is
// false where the payload says none.
func DecodeTelemetry(payload []byte) (temperatureC float64, known bool, err error) {
	if len(payload) > MaxPayload {
		return 0, false, fmt.Errorf("telemetry: %d bytes are more than %d", len(payload), MaxPayload)
	}
	var wire struct {
		TemperatureC *float64 `json:"temperatureC"`
	}
	if err := json.Unmarshal(payload, &wire); err != nil {
		return 0, false, fmt.Errorf("telemetry: %w", err)
	}
	if wire.TemperatureC == nil {
		return 0, false, nil
	}
	if t := *wire.TemperatureC; t < minTemperatureC || t > maxTemperatureC {
		return 0, false, fmt.Errorf("telemetry: temperatureC %g, want %d to %d", t, minTemperatureC, maxTemperatureC)
	}
	return *wire.TemperatureC, true, nil
}

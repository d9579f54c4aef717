package cabinet

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Status is what a cabinet keeps retained on its status topic, and leaves there as its last will.
type Status struct {
	Online bool   `json:"online"`
	BootID string `json:"bootId"` // changes with each start of the controller; "" for none
}

// DecodeStatus reads a status payload. Unknown members are ignored, and so is a bootId that isn't an id.
func DecodeStatus(payload []byte) (Status, error) {
	if len(payload) > MaxPayload {
		return Status{}, fmt.Errorf("status: %d bytes are more than %d", len(payload), MaxPayload)
	}
	var wire struct {
		Online *bool          `json:"online"`
		BootID jsontext.Value `json:"bootId"`
	}
	if err := json.Unmarshal(payload, &wire); err != nil {
		return Status{}, fmt.Errorf("status: %w", err)
	}
	if wire.Online == nil {
		return Status{}, errors.New("status: online is missing, want true or false")
	}
	status := Status{Online: *wire.Online}
	if len(wire.BootID) > 0 {
		status.BootID, _ = identifier(wire.BootID)
	}
	return status, nil
}

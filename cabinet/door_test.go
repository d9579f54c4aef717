package cabinet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestUnlockHasTheShapeOfTheDesign(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 10, 0, 0, 123_456_789, time.FixedZone("", 3600))
	text, err := json.Marshal(Unlock{"s-1", "e-1", KindSale, at})
	want := `{"sessionId":"s-1","closeEventId":"e-1","kind":"sale","expiresAt":"2026-11-30T09:00:00.123Z"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDecodeDoorReport(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]DoorReport{
		`{"sessionId":"s-1","state":"opened","at":"2026-11-30T10:00:00Z"}`: {"s-1", DoorOpened},
		`{"sessionId":"s-1","state":"refused","at":7}`:                     {"s-1", DoorRefused},
		`{"state":"not_pulled","sessionId":"s-1","x":{}}`:                  {"s-1", DoorNotPulled},
		`{"sessionId":"s-1","state":"closed"}`:                             {},
		`{"sessionId":"s-1"}`:                                              {},
		`{"state":"opened"}`:                                               {},
		`{"sessionId":null,"state":"opened"}`:                              {},
		`{"sessionId":7,"state":"opened"}`:                                 {},
		`{"sessionId":"","state":"opened"}`:                                {},
		`{"sessionId":"s 1","state":"opened"}`:                             {},
		`[]`:                                                               {},
		``:                                                                 {},
		`{"sessionId":"` + strings.Repeat("x", MaxPayload) + `"}`:          {},
	} {
		got, err := DecodeDoorReport([]byte(payload))
		if got != want || (err == nil) != (want != DoorReport{}) {
			t.Errorf("%.80s: %v, %v", payload, got, err)
		}
	}
}

func TestDecodeTelemetry(t *testing.T) {
	t.Parallel()
	for payload, c := range map[string]struct {
		want  float64
		known bool
		wrong bool
	}{
		`{"temperatureC":3.9,"at":"2026-11-30T10:00:00Z","humidity":40}`: {3.9, true, false},
		`{"temperatureC":-18}`:  {-18, true, false},
		`{"humidity":40}`:       {0, false, false},
		`{"temperatureC":null}`: {0, false, false},
		`{"temperatureC":"3"}`:  {0, false, true},
		`{"temperatureC":1e9}`:  {0, false, true},
		`{"temperatureC":-101}`: {0, false, true},
		`3.9`:                   {0, false, true},
	} {
		got, known, err := DecodeTelemetry([]byte(payload))
		if got != c.want || known != c.known || (err != nil) != c.wrong {
			t.Errorf("%s: %v, %v, %v", payload, got, known, err)
		}
	}
}

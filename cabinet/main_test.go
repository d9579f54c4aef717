package cabinet_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"doortab/cabinet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// example is the design's event.
const example = `{
  "closeEventId": "0198f0c2-6a52-7e0b-9c53-0b8f2f6d9a11",
  "deviceId": 1001,
  "kind": "sale",
  "sessionId": "0198f0c2-aaaa",
  "userId": 42,
  "seq": 918,
  "bootId": "7f3a",
  "openedAt": "2026-11-30T10:00:00.000Z",
  "closedAt": "2026-11-30T10:00:21.480Z",
  "items":   [{"productId": 7, "quantity": 2, "confidence": 0.98}],
  "weights": [{"lane": 3, "beforeGrams": 5230, "afterGrams": 4540}],
  "rfid":    {"before": ["3036142C8C008F8000053244", "3036142C8C008F8000053245"], "after": []}
}`

// with is a small sound event plus the members given, written as JSON.
func with(members ...string) string {
	base := []string{`"closeEventId":"e1"`, `"deviceId":1001`, `"closedAt":"2026-11-30T10:00:21.480Z"`}
	return "{" + strings.Join(append(base, members...), ",") + "}"
}

func decode(t *testing.T, payload string) *cabinet.Event {
	t.Helper()
	event, err := cabinet.Decode([]byte(payload))
	if err != nil {
		t.Fatalf("%v\n%s", err, payload)
	}
	return event
}

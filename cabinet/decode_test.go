package cabinet_test

import (
	"testing"

	"doortab/cabinet"
)

func TestDecodeReadsTheDesignsExample(t *testing.T) {
	t.Parallel()
	event, err := cabinet.Decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := event.MarshalJSON()
	again, err := cabinet.Decode(out)
	if err != nil || again.Digest() != event.Digest() {
		t.Fatal(err, string(out))
	}
}

const example = `{
  "closeEventId": "0198f0c2-6a52-7e0b-9c53-0b8f2f6d9a11",
  "deviceId": 1001,
  "kind": "sale",
  "sessionId": "0198f0c2-6a52",
  "userId": 42,
  "seq": 918,
  "bootId": "7f3a",
  "openedAt": "2026-11-30T10:00:00.000Z",
  "closedAt": "2026-11-30T10:00:21.480Z",
  "items":   [{"productId": 7, "quantity": 2, "confidence": 0.98}],
  "weights": [{"lane": 3, "beforeGrams": 5230, "afterGrams": 4540}],
  "rfid":    {"before": ["3036142C8C008F8000053244", "3036142C8C008F8000053245"], "after": []}
}`

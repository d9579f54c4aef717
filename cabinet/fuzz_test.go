package cabinet_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"doortab/cabinet"
)

// FuzzDecode: no payload panics; the same payload means the same; an event keeps the limits and, written again, its digest.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, payload []byte) {
		event, err := cabinet.Decode(payload)
		if err != nil {
			var wrong *cabinet.EnvelopeError
			if !errors.As(err, &wrong) || wrong.Problem == "" {
				t.Fatalf("not an EnvelopeError: %#v", err)
			}
			return
		}
		again, err := cabinet.Decode(payload)
		if err != nil || again.Digest() != event.Digest() {
			t.Fatalf("decoded twice: error %v, digests %x and %x", err, event.Digest(), again.Digest())
		}
		checkLimits(t, event)
		checkWrittenAgain(t, event)
	})
}

func checkLimits(t *testing.T, e *cabinet.Event) {
	if e.CloseEventID == "" || e.DeviceID < 1 || e.DeviceID > cabinet.MaxID || e.UserID < 0 || e.UserID > cabinet.MaxID ||
		e.ClosedAt.Year() < 1 || e.ClosedAt.Year() > 9999 || !e.HasItems && !e.HasWeights && !e.HasRFID {
		t.Fatalf("envelope beyond its limits: %+v", e)
	}
	for i, item := range e.Items {
		if item.ProductID < 1 || item.Quantity < 1 || item.Quantity > cabinet.MaxItems*cabinet.MaxQuantity ||
			item.Confidence < 0 || item.Confidence > 1 || i > 0 && e.Items[i-1].ProductID >= item.ProductID {
			t.Fatalf("item beyond its limits or out of order: %+v", e.Items)
		}
	}
	for i, weight := range e.Weights {
		if weight.Lane < 1 || i > 0 && e.Weights[i-1].Lane >= weight.Lane {
			t.Fatalf("weight beyond its limits or out of order: %+v", e.Weights)
		}
	}
}

func checkWrittenAgain(t *testing.T, e *cabinet.Event) {
	written, err := json.Marshal(e)
	if err != nil {
		t.Fatalf("%v: %+v", err, e)
	}
	if len(written) > cabinet.MaxPayload {
		return // defaults that are spelled out can take an event over the limit that came without them
	}
	again, err := cabinet.Decode(written)
	if err != nil || again.Digest() != e.Digest() || again.CloseEventID != e.CloseEventID || again.DeviceID != e.DeviceID {
		t.Fatalf("written again it isn't the same: %v\n%s", err, written)
	}
}

func BenchmarkDecodeAndDigest(b *testing.B) {
	small := []byte(with(`"userId":42`, `"seq":918`, `"items":[{"productId":7,"quantity":2},{"productId":9,"quantity":1}]`))
	large := []byte(with(`"rfid":{"before":[` + tags(2000) + `],"after":[]}`))
	for name, payload := range map[string][]byte{"small": small, "example": []byte(example), "2000 tags": large} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				event, err := cabinet.Decode(payload)
				if err != nil {
					b.Fatal(err)
				}
				event.Digest()
			}
		})
	}
}

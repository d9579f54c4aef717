package settlement

import (
	"encoding/json"
	"slices"
	"time"

	"doortab/cabinet"
	"doortab/inventory"
)

// rules decide what an event means. They are pure: prices and times come in as arguments.
type rules struct {
	currency  string
	threshold float64
}

// line is one sure line of an order, with the numbers that decided it.
type line struct {
	cabinet.Line
	evidence lineEvidence
}

type lineEvidence struct {
	Source     string  `json:"source"`
	Rule       string  `json:"rule"`
	Quantity   int64   `json:"quantity"`
	Confidence float64 `json:"confidence"`
}

// proposed is a line that a person may add to the sure ones.
type proposed struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
}

// doubt is one thing in an event that could not be decided, as its review shows it.
type doubt struct {
	Reason cabinet.Reason  `json:"reason"`
	Where  string          `json:"where"`
	Entry  json.RawMessage `json:"entry,omitempty"`
}

// verdict is what the rules make of one event.
type verdict struct {
	outcome  cabinet.Outcome
	reasons  []cabinet.Reason
	lines    []line // ascending by product
	proposed []proposed
	doubts   []doubt
}

// judge takes the prices that were in force at pricedAt; the device's clock is compared with receivedAt.
func (r rules) judge(e *cabinet.Event, prices inventory.Prices, pricedAt, receivedAt time.Time) verdict {
	v := verdict{lines: []line{}, proposed: []proposed{}, doubts: []doubt{}}
	for _, entry := range e.Malformed {
		v.doubt(entry.Reason, entry.Where, entry.Raw)
	}
	r.items(&v, e, prices, pricedAt)
	if !e.HasItems {
		otherEvidence(&v, e)
	}
	if e.Kind == cabinet.KindSale && e.UserID == 0 && v.somethingTaken() {
		v.reason(cabinet.ReasonUnattributed)
	}
	if cabinet.Skewed(e.ClosedAt, receivedAt) {
		v.reason(cabinet.ReasonClockSkew)
	}
	v.outcome = v.decide(e.Kind)
	return v
}

func (r rules) items(v *verdict, e *cabinet.Event, prices inventory.Prices, pricedAt time.Time) {
	for _, item := range e.Items {
		price, known := prices.At(item.ProductID, pricedAt)
		switch {
		case !known:
			v.doubt(cabinet.ReasonUnknownProduct, "items", itemEntry(item))
		case item.Confidence < r.threshold:
			v.doubt(cabinet.ReasonLowConfidence, "items", itemEntry(item))
			v.proposed = append(v.proposed, proposed{item.ProductID, item.Quantity})
		default:
			v.lines = append(v.lines, line{
				Line: cabinet.Line{
					ProductID: item.ProductID, Quantity: item.Quantity,
					UnitPriceMinor: price, AmountMinor: price * item.Quantity,
				},
				evidence: lineEvidence{Source: "items", Rule: "cabinet_count", Quantity: item.Quantity, Confidence: item.Confidence},
			})
		}
	}
}

// otherEvidence looks at scales and antennas where the cabinet gave no count of its own: what
// they saw change is not charged but decided by a person.
func otherEvidence(v *verdict, e *cabinet.Event) {
	for _, w := range e.Weights {
		if w.BeforeGrams != w.AfterGrams {
			v.doubt(cabinet.ReasonUnexplainedWeight, "weights", marshal(map[string]any{
				"lane": w.Lane, "beforeGrams": w.BeforeGrams, "afterGrams": w.AfterGrams,
			}))
		}
	}
	if !slices.Equal(e.RFID.Before, e.RFID.After) {
		v.doubt(cabinet.ReasonUnknownEPC, "rfid", marshal(map[string]any{"before": e.RFID.Before, "after": e.RFID.After}))
	}
}

func (v *verdict) doubt(reason cabinet.Reason, where string, entry []byte) {
	v.reason(reason)
	v.doubts = append(v.doubts, doubt{reason, where, entry})
}

func (v *verdict) reason(reason cabinet.Reason) {
	if !slices.Contains(v.reasons, reason) {
		v.reasons = append(v.reasons, reason)
	}
}

func (v *verdict) somethingTaken() bool {
	return len(v.lines) > 0 || slices.ContainsFunc(v.doubts, doubt.ofGoods)
}

// ofGoods tells a doubt about what was taken from one about who, when and in which order.
func (d doubt) ofGoods() bool {
	switch d.Where {
	case "closeEventId", "kind", "userId", "sessionId", "seq", "openedAt":
		return false
	default:
		return true
	}
}

func (v *verdict) decide(kind cabinet.Kind) cabinet.Outcome {
	needsPerson := func(r cabinet.Reason) bool { return !r.Informs() }
	switch {
	case slices.ContainsFunc(v.reasons, needsPerson):
		return cabinet.Review
	case kind == cabinet.KindRestock:
		return cabinet.Restocked
	case len(v.lines) > 0:
		return cabinet.Settled
	default:
		return cabinet.Empty
	}
}

// hasOrder: an order exists once it has a line (R15), and a restock door never makes one (R11).
func (v *verdict) hasOrder(kind cabinet.Kind) bool {
	return kind == cabinet.KindSale && len(v.lines) > 0
}

func (v *verdict) totalMinor() int64 {
	total := int64(0)
	for _, l := range v.lines {
		total += l.AmountMinor
	}
	return total
}

func itemEntry(i cabinet.Item) []byte {
	return marshal(map[string]any{"productId": i.ProductID, "quantity": i.Quantity, "confidence": i.Confidence})
}

// marshal writes values that cannot fail to be JSON.
func marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

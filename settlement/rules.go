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
	evidence    cabinet.Evidence
	promotionID int64 // whose price it has; 0: none
}

// verdict is what the rules make of one event.
type verdict struct {
	outcome  cabinet.Outcome
	reasons  []cabinet.Reason
	lines    []line // ascending by product
	evidence cabinet.Verdict
}

// judge lays the evidence against what the books know of the cabinet, and adds what evidence
// knows nothing of: prices, who opened the door, and the clock.
//
// The prices are those that were in force at pricedAt; the device's clock is compared with receivedAt.
func (r rules) judge(
	e *cabinet.Event, shelf cabinet.Shelf, prices inventory.Prices, pricedAt, receivedAt time.Time,
) verdict {
	shelf.Threshold = r.threshold
	v := verdict{evidence: cabinet.Judge(e, shelf)}
	v.lines = make([]line, 0, len(v.evidence.Lines))
	for _, f := range v.evidence.Findings {
		v.reason(f.Reason)
	}
	for _, l := range v.evidence.Lines {
		price, known := prices.At(l.ProductID, pricedAt)
		if !known { // taken off the catalogue a moment ago
			v.reason(cabinet.ReasonUnknownProduct)
			v.evidence.Findings = append(v.evidence.Findings, cabinet.Finding{
				Reason: cabinet.ReasonUnknownProduct, Where: "catalogue", Evidence: l.Evidence,
			})
			v.evidence.Tags = slices.DeleteFunc(v.evidence.Tags, func(m cabinet.TagMove) bool {
				return m.ProductID == l.ProductID && m.Place == cabinet.TagSold // what isn't on an order isn't sold
			})
			continue
		}
		v.lines = append(v.lines, line{
			Line: cabinet.Line{
				ProductID: l.ProductID, Quantity: l.Quantity, UnitPriceMinor: price, AmountMinor: price * l.Quantity,
			},
			evidence: l.Evidence,
		})
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

func (v *verdict) reason(reason cabinet.Reason) {
	if !slices.Contains(v.reasons, reason) {
		v.reasons = append(v.reasons, reason)
	}
}

func (v *verdict) somethingTaken() bool {
	return len(v.lines) > 0 || slices.ContainsFunc(v.evidence.Findings, ofGoods)
}

// ofGoods tells a doubt about what was taken from one about who, when and in which order.
func ofGoods(f cabinet.Finding) bool {
	switch f.Where {
	case "userId", "sessionId", "seq", "openedAt":
		return false
	default:
		return !f.Reason.Informs()
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

// marshal writes values that cannot fail to be JSON.
func marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

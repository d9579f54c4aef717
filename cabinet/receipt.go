package cabinet

import "time"

// Outcome says what became of a door-close event.
type Outcome string

// The outcomes, section 4 of the design.
const (
	Settled   Outcome = "settled"   // an order was made
	Empty     Outcome = "empty"     // nothing was taken, no order
	Review    Outcome = "review"    // a person decides; the order, if any, holds the sure lines
	Restocked Outcome = "restocked" // a member of staff's door
	Conflict  Outcome = "conflict"  // the id is taken by other content (R3)
	Rejected  Outcome = "rejected"  // can't be settled: unknown cabinet or malformed
)

// Reason is a stable code that says why an outcome is as it is.
type Reason string

// The reasons, section 4 of the design.
const (
	ReasonUnattributed      Reason = "unattributed"
	ReasonUnknownProduct    Reason = "unknown_product"
	ReasonInvalidQuantity   Reason = "invalid_quantity"
	ReasonUnexplainedWeight Reason = "unexplained_weight"
	ReasonForeignObject     Reason = "foreign_object"
	ReasonEvidenceDisagrees Reason = "evidence_disagrees"
	ReasonUnknownEPC        Reason = "unknown_epc"
	ReasonEPCNotInCabinet   Reason = "epc_not_in_cabinet"
	ReasonLowConfidence     Reason = "low_confidence"
	ReasonShortfall         Reason = "shortfall"
	ReasonClockSkew         Reason = "clock_skew"
	ReasonMisplacedReturn   Reason = "misplaced_return"
	ReasonConflict          Reason = "conflict"
	ReasonSessionMismatch   Reason = "session_mismatch"
	ReasonUnknownLane       Reason = "unknown_lane"
	ReasonEPCAlreadySold    Reason = "epc_already_sold"
	ReasonEPCElsewhere      Reason = "epc_elsewhere"
	ReasonReservedTaken     Reason = "reserved_taken"
)

// Informs reports whether the reason only informs: alone it doesn't cause a review.
func (r Reason) Informs() bool {
	switch r {
	case ReasonShortfall, ReasonClockSkew, ReasonMisplacedReturn, ReasonReservedTaken:
		return true
	default:
		return false
	}
}

// Receipt tells a cabinet the outcome of one event; only then may it forget the event (R2).
type Receipt struct {
	CloseEventID string    `json:"closeEventId"`
	DeviceID     int64     `json:"deviceId"`
	Outcome      Outcome   `json:"outcome"`
	Duplicate    bool      `json:"duplicate"`
	OrderID      string    `json:"orderId"`    // "" for none, null in JSON
	Currency     string    `json:"currency"`   // ISO 4217
	TotalMinor   int64     `json:"totalMinor"` // minor units of Currency
	Lines        []Line    `json:"lines"`
	Reasons      []Reason  `json:"reasons"`
	SettledAt    time.Time `json:"settledAt"` // kept to the millisecond; zero is null in JSON
}

// Line is one product of an order as the receipt shows it, in minor units.
type Line struct {
	ProductID      int64 `json:"productId"`
	Quantity       int64 `json:"quantity"`
	UnitPriceMinor int64 `json:"unitPriceMinor"`
	AmountMinor    int64 `json:"amountMinor"`
}

// MarshalJSON writes the receipt with every member, also where there is nothing to say: no order is null, no lines and
// no reasons are empty lists.
func (r Receipt) MarshalJSON() ([]byte, error) { return r.JSON(), nil }

// JSON is what MarshalJSON writes, without the detour by encoding/json, which reads it all again.
func (r Receipt) JSON() []byte {
	w := writer{buf: make([]byte, 0, 512)}
	w.open('{')
	w.member("closeEventId").text(r.CloseEventID)
	w.member("deviceId").number(r.DeviceID)
	w.member("outcome").code(string(r.Outcome))
	w.member("duplicate").flag(r.Duplicate)
	w.member("orderId").textOrNull(r.OrderID)
	w.member("currency").text(r.Currency)
	w.member("totalMinor").number(r.TotalMinor)
	w.lines(r.Lines)
	w.member("reasons").open('[')
	for _, reason := range r.Reasons {
		w.element().code(string(reason))
	}
	w.close(']')
	w.member("settledAt").instantOrNull(r.SettledAt)
	w.close('}')
	return w.buf
}

func (w *writer) lines(lines []Line) {
	w.member("lines").open('[')
	for _, line := range lines {
		w.element().open('{')
		w.member("productId").number(line.ProductID)
		w.member("quantity").number(line.Quantity)
		w.member("unitPriceMinor").number(line.UnitPriceMinor)
		w.member("amountMinor").number(line.AmountMinor)
		w.close('}')
	}
	w.close(']')
}

package cabinet

import "encoding/json"

// Verdict is what the evidence of one event means. At a sale its lines are units taken, at a restock units added.
type Verdict struct {
	Lines    []EvidenceLine // sure; ascending by product, quantities of at least 1
	Proposed []Proposed     // what a person may add to the sure lines; ascending by product, quantities of at least 1
	Findings []Finding      // why a person must look, or what is worth knowing
	Tags     []TagMove      // what the books are to note of tags; ascending by EPC
	Strays   []Stray        // all that lies in a wrong lane after this door, in place of Shelf.Strays
}

// EvidenceLine is one product of a verdict with the numbers that decided it.
type EvidenceLine struct {
	ProductID int64    `json:"productId"`
	Quantity  int64    `json:"quantity"`
	Evidence  Evidence `json:"evidence"`
}

// Proposed is one product of which a person may add units to the sure lines.
type Proposed struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
}

// Finding is one thing that the evidence can't decide, or that is worth knowing though it is decided: Reason.Informs
// tells which.
type Finding struct {
	Reason   Reason   `json:"reason"`
	Where    string   `json:"where"` // "weights lane 3", "rfid", "items product 7", or where the event's entry is malformed
	Evidence Evidence `json:"evidence"`
	// Refund names the product whose earlier sale looks wrong, since its tag is back; 0 for none.
	Refund int64 `json:"refundProductId,omitempty"`
	// Sales names the sales of tags that were sold already. Judge knows nothing of orders and leaves them to its caller.
	Sales []TagSale `json:"sales,omitempty"`
	Entry Raw       `json:"entry,omitempty"` // of a malformed entry, as it came
}

// TagSale is the door at which a tag was sold, and the order that it is on; "" where that is made together with the finding.
type TagSale struct {
	EPC          string `json:"epc"`
	DeviceID     int64  `json:"deviceId"`
	CloseEventID string `json:"closeEventId"`
	OrderID      string `json:"orderId,omitempty"`
}

// Raw is JSON text that is kept as it came.
type Raw []byte

// MarshalJSON writes the text as it is.
func (r Raw) MarshalJSON() ([]byte, error) { return r, nil }

// Evidence keeps the numbers that decided a line or a finding, as GET /v1/settlements shows them.
type Evidence struct {
	Source     Source         `json:"source,omitempty"`
	Rule       Rule           `json:"rule"`
	Quantity   int64          `json:"quantity,omitempty"`
	Confidence float64        `json:"confidence,omitempty"` // 0 to 1
	Lanes      []LaneEvidence `json:"lanes,omitempty"`
	EPCs       []string       `json:"epcs,omitempty"`
	Counts     *Counts        `json:"counts,omitempty"`
	Moves      []Moved        `json:"moves,omitempty"`
}

// JSON is what encoding/json makes of it, without reflection where no lists are: so it is on most lines.
func (e *Evidence) JSON() []byte {
	if e.Lanes != nil || e.EPCs != nil || e.Counts != nil || e.Moves != nil || e.Confidence != 0 && e.Confidence < 1e-6 {
		return marshalEvidence(e)
	}
	w := writer{buf: make([]byte, 0, 96)}
	w.open('{')
	if e.Source != "" {
		w.member("source").code(string(e.Source))
	}
	w.member("rule").code(string(e.Rule))
	if e.Quantity != 0 {
		w.member("quantity").number(e.Quantity)
	}
	if e.Confidence != 0 {
		w.member("confidence").float(e.Confidence)
	}
	w.close('}')
	return w.buf
}

func marshalEvidence(e *Evidence) []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // a confidence that is no number
	}
	return text
}

// LaneEvidence is one lane as its scale saw it.
type LaneEvidence struct {
	Lane            int     `json:"lane"`
	ProductID       int64   `json:"productId,omitempty"`
	BeforeGrams     int64   `json:"beforeGrams"`
	AfterGrams      int64   `json:"afterGrams"`
	UnitWeightGrams int64   `json:"unitWeightGrams,omitempty"`
	ToleranceGrams  float64 `json:"toleranceGrams,omitempty"` // of Count units, to a tenth
	Count           int64   `json:"count"`                    // units of the lane's own product, the way of the door
}

// Counts are what each witness says of one product, where more than one of them speaks.
type Counts struct {
	ProductID  int64   `json:"productId"`
	Physical   int64   `json:"physical"` // by scales and tags together
	Tags       int64   `json:"tags"`
	Items      int64   `json:"items"`
	Confidence float64 `json:"itemsConfidence,omitempty"`
}

// Moved is something that changed its lane and stayed in the cabinet.
type Moved struct {
	FromLane int   `json:"fromLane"`
	ToLane   int   `json:"toLane"`
	Grams    int64 `json:"grams"`
}

// TagMove is a new place for a tag.
type TagMove struct {
	EPC       string   `json:"epc"`
	ProductID int64    `json:"productId"`
	Place     TagPlace `json:"place"` // TagHere, TagSold or TagLost
}

// Source names the witnesses of a line.
type Source string

// The sources, section 9 of the design.
const (
	SourceItems      Source = "items"
	SourceWeight     Source = "weight"
	SourceRFID       Source = "rfid"
	SourceRFIDWeight Source = "rfid+weight"
)

// Rule names what decided a line or raised a finding.
type Rule string

// The rules of lines.
const (
	RuleCabinetCount Rule = "cabinet_count"  // the cabinet's own count, sure enough
	RuleUnitWeights  Rule = "unit_weights"   // a lane's change is a whole number of its units
	RuleNetted       Rule = "netted"         // what one lane lost another gained
	RuleStray        Rule = "stray"          // something known to lie in a wrong lane left it
	RuleTagsOnly     Rule = "tags"           // no scale could see the product
	RuleAgreed       Rule = "tags_and_scale" // both name the same number
	RuleScaleCounts  Rule = "scale_counts"   // more units than tags were read of it
)

// The rules of findings.
const (
	RuleMalformed        Rule = "malformed_entry"
	RuleNotAUnit         Rule = "no_whole_units"       // a loss that isn't a whole number of units
	RuleGain             Rule = "gain_without_loss"    // a gain that nothing explains
	RuleSeveral          Rule = "several_explanations" // which charge differently and fit alike
	RuleNoLane           Rule = "lane_without_product"
	RuleNoUnitWeight     Rule = "product_without_unit_weight"
	RuleTagWithoutWeight Rule = "tag_gone_weight_unchanged"
	RuleWeightWithoutTag Rule = "weight_gone_tags_read"
	RuleTagUnreadable    Rule = "tag_without_product"
	RuleTagPlace         Rule = "tag_not_expected_here"
	RuleTagReturned      Rule = "sold_tag_is_back"
	RuleTagSeenLater     Rule = "later_door_saw_the_tag" // that a door which came late saw leave
	RuleAgainstTheDoor   Rule = "units_left_at_a_restock"
	RuleWitnesses        Rule = "witnesses_disagree"
	RuleBelowThreshold   Rule = "count_below_threshold"
	RuleUnknownProduct   Rule = "product_not_in_catalogue"
)

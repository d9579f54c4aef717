package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"doortab/cabinet"
)

// report is a door-close event as a cabinet writes it.
type report struct {
	CloseEventID string       `json:"closeEventId"`
	DeviceID     int64        `json:"deviceId"`
	Kind         cabinet.Kind `json:"kind"`
	SessionID    string       `json:"sessionId,omitempty"`
	UserID       int64        `json:"userId,omitempty"`
	Seq          int64        `json:"seq"`
	BootID       string       `json:"bootId"`
	OpenedAt     time.Time    `json:"openedAt"`
	ClosedAt     time.Time    `json:"closedAt"`
	Items        []item       `json:"items,omitzero"`
	Weights      []laneWeight `json:"weights,omitzero"`
	RFID         *tags        `json:"rfid,omitempty"`
}

type laneWeight struct {
	Lane        int   `json:"lane"`
	BeforeGrams int64 `json:"beforeGrams"`
	AfterGrams  int64 `json:"afterGrams"`
}

type tags struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
}

type item struct {
	quantity
	Confidence float64 `json:"confidence"`
}

const (
	// threshold is the confidence from which Doortab takes a cabinet's own count, section 9 of the design.
	threshold     = 0.8
	doubtfulCount = 0.35
)

// see writes what the sensors saw.
func (r *report) see(seen *cabinet.Event) {
	if seen.HasItems {
		r.Items = make([]item, 0, len(seen.Items)+1)
	}
	for _, i := range seen.Items {
		r.Items = append(r.Items, item{quantity{i.ProductID, i.Quantity}, i.Confidence})
	}
	for _, w := range seen.Weights {
		r.Weights = append(r.Weights, laneWeight{w.Lane, w.BeforeGrams, w.AfterGrams})
	}
	if seen.HasRFID {
		r.RFID = &tags{Before: orEmpty(seen.RFID.Before), After: orEmpty(seen.RFID.After)}
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// imagine adds a unit that the camera thought it saw leave, with little confidence. It was wrong: the unit stayed.
func (r *report) imagine(productID int64) {
	if !slices.ContainsFunc(r.Items, func(i item) bool { return i.ProductID == productID }) {
		r.Items = append(r.Items, item{quantity{productID, 1}, doubtfulCount})
	}
}

// sure is what the cabinet's own count charges.
func (r *report) sure() (list []quantity) {
	for _, i := range r.Items {
		if i.Confidence >= threshold {
			list = append(list, i.quantity)
		}
	}
	return byProduct(list)
}

// expected is the outcome that an event must have whose only witness is the cabinet's own count.
func (r *report) expected() cabinet.Outcome {
	switch {
	case r.Kind == cabinet.KindRestock:
		return cabinet.Restocked
	case len(r.Items) == 0:
		return cabinet.Empty
	case r.UserID == 0 && r.SessionID == "" || len(r.sure()) < len(r.Items):
		return cabinet.Review
	default:
		return cabinet.Settled
	}
}

// setClock lets the door have opened and closed at another time.
func (r *report) setClock(closedAt time.Time) {
	r.OpenedAt, r.ClosedAt = closedAt.Add(r.OpenedAt.Sub(r.ClosedAt)), closedAt
}

// changed is another content under the same id: a unit more was taken, a lane lost more, or a tag more was gone. It
// reports whether there was anything to change.
func (r report) changed() (other report, ok bool) {
	switch {
	case len(r.Items) > 0:
		r.Items = slices.Clone(r.Items)
		r.Items[0].Quantity++
	case len(r.Weights) > 0:
		r.Weights = slices.Clone(r.Weights)
		r.Weights[0].AfterGrams -= 100
	case r.RFID != nil && len(r.RFID.After) > 0:
		r.RFID = &tags{Before: r.RFID.Before, After: r.RFID.After[1:]}
	default:
		return r, false
	}
	return r, true
}

func (r *report) payload() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("write a door-close event: %v", err)) // plain values, years of four digits
	}
	return text
}

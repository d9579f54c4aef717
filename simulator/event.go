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
	Items        []item       `json:"items"`
}

type item struct {
	quantity
	Confidence float64 `json:"confidence"`
}

const (
	sureCount     = 0.97
	doubtfulCount = 0.35 // below every threshold that makes sense
)

// fill writes what the cabinet saw of a visit.
func (r *report) fill(taken, doubtful []quantity) {
	r.Items = make([]item, 0, len(taken)+len(doubtful))
	for _, q := range taken {
		r.Items = append(r.Items, item{q, sureCount})
	}
	for _, q := range doubtful {
		r.Items = append(r.Items, item{q, doubtfulCount})
	}
}

// expected is the outcome that the event must have.
func (r *report) expected() cabinet.Outcome {
	doubtful := func(i item) bool { return i.Confidence < sureCount }
	switch {
	case r.Kind == cabinet.KindRestock:
		return cabinet.Restocked
	case len(r.Items) == 0:
		return cabinet.Empty
	case r.UserID == 0 && r.SessionID == "" || slices.ContainsFunc(r.Items, doubtful):
		return cabinet.Review
	default:
		return cabinet.Settled
	}
}

// setClock lets the door have opened and closed at another time.
func (r *report) setClock(closedAt time.Time) {
	r.OpenedAt, r.ClosedAt = closedAt.Add(r.OpenedAt.Sub(r.ClosedAt)), closedAt
}

// changed is another content under the same id: one unit more than was taken.
func (r report) changed() report {
	r.Items = slices.Clone(r.Items)
	r.Items[0].Quantity++
	return r
}

func (r *report) payload() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("write a door-close event: %v", err)) // plain values, years of four digits
	}
	return text
}

package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"doortab/cabinet"
)

// mostDecisions is how many reviews an operator decides in a second, however many doors close.
const mostDecisions = 20

// operator decides reviews by what truly happened, as somebody does who looks at the film.
type operator struct {
	api    *client
	books  *books
	runID  string
	seed   uint64
	gap    time.Duration // mean time between two events that are looked at
	logger *slog.Logger

	decided atomic.Int64
}

// decision is what became of one review.
type decision struct {
	reviewID string
	amend    bool
	// lines are all that the event comes to where amend, and what joins it where not.
	lines []quantity
	// unsure: no answer came, so that Doortab may know of it or not.
	unsure bool
}

// changes is by how many units of each product it changes what the event has come to before.
func (d decision) changes(standing map[int64]int64) map[int64]int64 {
	changes := toMap(d.lines)
	if d.amend {
		for productID, units := range standing {
			changes[productID] -= units
		}
	}
	return changes
}

// reviewRow is a review as REST shows it.
type reviewRow struct {
	ReviewID string           `json:"reviewId"`
	Reasons  []cabinet.Reason `json:"reasons"`
	Proposed []quantity       `json:"proposed"`
	Status   string           `json:"status"`
}

// work decides reviews until open ends, the oldest first. What was begun goes on until finish ends.
func (o *operator) work(open, finish context.Context) {
	rng := rand.New(rand.NewPCG(o.seed, streamOperator)) //nolint:gosec // not a secret
	for pause(open, time.Duration(rng.ExpFloat64()*float64(o.gap))) {
		if e, ok := o.books.nextDoubt(); ok {
			o.look(finish, &e)
		}
	}
}

// look decides every open review of an event.
func (o *operator) look(ctx context.Context, e *entry) {
	var settled settlementRow
	path := fmt.Sprintf("/v1/settlements/%d/%s", e.key.deviceID, url.PathEscape(e.key.id))
	if err := o.api.do(ctx, call{method: http.MethodGet, path: path, into: &settled}); err != nil {
		o.logger.Warn("An operator can't look at an event", "event", e.key, "error", err)
		return
	}
	standing := byProduct(settled.Lines)
	for _, review := range settled.Reviews {
		if review.Status != "open" {
			continue
		}
		said, d := review.decide(e, standing)
		if !o.resolve(ctx, e.key, said, d) {
			return
		}
		standing = fromMap(merged(toMap(standing), d.changes(toMap(standing))))
	}
}

// decide compares the truth with what is sure and with what is proposed. A conflict leaves the first outcome as it is.
func (r reviewRow) decide(e *entry, standing []quantity) (said string, d decision) {
	d.reviewID = r.ReviewID
	switch {
	case slices.Contains(r.Reasons, cabinet.ReasonConflict):
		return "accept", d
	case e.restock: // it doesn't show what it has come to
	case slices.Equal(standing, e.truth):
		return "waive", d
	case slices.Equal(byProduct(slices.Concat(standing, r.Proposed)), e.truth):
		d.lines = r.Proposed
		return "accept", d
	}
	d.amend, d.lines = true, e.truth
	return "amend", d
}

// resolve reports whether Doortab took the decision.
func (o *operator) resolve(ctx context.Context, key eventKey, said string, d decision) bool {
	body := map[string]any{"decision": said, "note": "The film shows it."}
	if d.amend {
		body["lines"] = slices.Concat([]quantity{}, d.lines)
	}
	err := o.api.do(ctx, call{
		method: http.MethodPost, path: "/v1/reviews/" + d.reviewID + "/resolution", body: body,
		key: o.runID + "-review-" + d.reviewID,
	})
	switch _, refused := errors.AsType[*refusal](err); {
	case err == nil:
		o.decided.Add(1)
	case refused && ctx.Err() == nil:
		o.logger.Warn("A decision was refused", "event", key, "review", d.reviewID, "error", err)
		return false
	default:
		d.unsure = true
	}
	o.books.decide(key, d)
	return err == nil
}

func merged(a, b map[int64]int64) map[int64]int64 {
	for id, n := range b {
		a[id] += n
	}
	return a
}

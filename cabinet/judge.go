package cabinet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Judge says what the evidence of an event means, section 9 of the design. It is pure: the same event and shelf give the
// same verdict, whatever the order of lanes, tags and items. It doesn't judge who opened the door, when, or at what price.
//
// Tags name what left (or came, at a restock), and whatever a scale saw beyond that is laid to whole units of its lane's
// product, to things that changed their lane, and to things known to lie wrong. Where two such explanations fit alike and
// charge differently, neither is charged.
func Judge(e *Event, s Shelf) Verdict {
	j := newJudging(e, &s)
	j.malformed()
	j.readTags()
	j.readScales()
	j.decide()
	j.compareItems()
	return j.finish()
}

// judging is one event on its way to a verdict.
type judging struct {
	event *Event
	shelf *Shelf
	// way is 1 where units leave and -1 where they come, so that the goods of a door count positive at both kinds.
	way     int64
	rfid    bool // both lists of tags are there
	tallies map[int64]*tally
	spare   []tally    // room for those of the event's items
	lanes   []*weighed // ascending by lane
	// trembles is the standard deviation of a still lane's change; 0 where too few lanes were still to tell.
	trembles float64
	verdict  Verdict
	seen     map[int64]int64 // tags by product that were read while the goods were in the cabinet; nil before the first use
}

// tally is what the witnesses say of one product.
type tally struct {
	tags      []string // went the way of the door and may
	doubtful  int64    // tags that went the way of the door but for their place in the books
	back      int64    // tags that went against it
	quantity  int64    // sure
	proposed  int64
	decidedBy Evidence
}

// net is how many units of weight the tags account for.
func (t *tally) net() int64 { return int64(len(t.tags)) + t.doubtful - t.back }

func newJudging(e *Event, s *Shelf) *judging {
	j := &judging{
		event: inOrder(e), shelf: s, way: 1, rfid: e.readsTags(), tallies: make(map[int64]*tally, len(e.Items)), spare: make([]tally, len(e.Items)),
	}
	s.Strays = slices.Clone(s.Strays)
	slices.SortFunc(s.Strays, compareStrays)
	if e.Kind == KindRestock {
		j.way = -1
	}
	return j
}

// inOrder is the event with its tags and lanes in the order in which Decode leaves them.
func inOrder(e *Event) *Event {
	if len(e.RFID.Before) == 0 && len(e.RFID.After) == 0 && len(e.Weights) == 0 {
		return e
	}
	sorted := *e
	sorted.RFID.Before, sorted.RFID.After = set(slices.Clone(e.RFID.Before)), set(slices.Clone(e.RFID.After))
	sorted.Weights = slices.Clone(e.Weights)
	slices.SortStableFunc(sorted.Weights, func(a, b Weight) int { return cmp.Compare(a.Lane, b.Lane) })
	return &sorted
}

func (j *judging) of(productID int64) *tally {
	t := j.tallies[productID]
	switch {
	case t != nil:
		return t
	case len(j.spare) > 0:
		t, j.spare = &j.spare[0], j.spare[1:]
	default:
		t = &tally{}
	}
	j.tallies[productID] = t
	return t
}

func (j *judging) product(productID int64) Product { return j.shelf.Products[productID] }

func (j *judging) find(f Finding) { j.verdict.Findings = append(j.verdict.Findings, f) }

// malformed hands the entries on that Decode couldn't read.
func (j *judging) malformed() {
	for _, m := range j.event.Malformed {
		j.find(Finding{Reason: m.Reason, Where: m.Where, Evidence: Evidence{Rule: RuleMalformed}, Entry: Raw(m.Raw)})
	}
}

func (j *judging) malformedIn(list string) bool {
	return slices.ContainsFunc(j.event.Malformed, func(m MalformedEntry) bool { return strings.HasPrefix(m.Where, list) })
}

// products in ascending order, so that a verdict has one form.
func (j *judging) products() []int64 {
	ids := make([]int64, 0, len(j.tallies))
	for id := range j.tallies {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (j *judging) finish() Verdict {
	v := &j.verdict
	products := j.products()
	v.Lines = slices.Grow(v.Lines, len(products))
	for _, id := range products {
		t := j.tallies[id]
		if t.quantity > 0 {
			t.decidedBy.Quantity = t.quantity
			v.Lines = append(v.Lines, EvidenceLine{ProductID: id, Quantity: t.quantity, Evidence: t.decidedBy})
		}
		if t.proposed > 0 {
			v.Proposed = append(v.Proposed, Proposed{ProductID: id, Quantity: t.proposed})
		}
		j.placeTags(id, t)
	}
	slices.SortFunc(v.Tags, func(a, b TagMove) int { return cmp.Compare(a.EPC, b.EPC) })
	return *v
}

// placeTags notes the tags of a product as sold only where it is sure which ones were: as many as units on the line.
func (j *judging) placeTags(productID int64, t *tally) {
	place := TagSold
	switch {
	case j.way < 0:
		place = TagHere
	case t.quantity < int64(len(t.tags)):
		return
	}
	for _, epc := range t.tags {
		j.moveTag(epc, productID, place)
	}
}

// both is the confidence of two witnesses that agree: wrong only where both are.
func both(a, b float64) float64 { return hundredths(1 - (1-a)*(1-b)) }

func hundredths(x float64) float64 { return math.Round(x*10000) / 10000 }

func laneName(lane int) string { return fmt.Sprintf("weights lane %d", lane) }

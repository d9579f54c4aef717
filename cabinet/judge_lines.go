package cabinet

import (
	"math"
	"slices"
)

// The confidence of a scale alone, and of an explanation in which things changed their lane.
const (
	scaleConfidence = 0.99
	edgeOfTolerance = 0.90 // where the remainder just passes
	movedConfidence = 0.95 // times that of the scale
	unreadShare     = 0.95 // times that of the scale: tags should have been read
)

// untagged: no tag of the product was read in the cabinet, so that tags say nothing of it.
func (j *judging) untagged(productID int64) bool {
	return !j.rfid || j.tallies[productID].silent() && j.read(productID) == 0
}

func (t *tally) silent() bool { return t == nil || len(t.tags) == 0 && t.doubtful == 0 && t.back == 0 }

// unread is how many more units of a product the scales weighed, while the goods were in, than tags of it were read.
func (j *judging) unread(productID int64) int64 {
	units := int64(0)
	for _, w := range j.lanes {
		if w.product.ProductID == productID && !w.blind() {
			grams := w.BeforeGrams
			if j.way < 0 {
				grams = w.AfterGrams
			}
			units += max(w.nearest(grams), 0)
		}
	}
	return units - j.read(productID)
}

// decide turns the explanations of the scales into quantities and findings.
func (j *judging) decide() {
	found := j.explain()
	found = append(found, j.hidden(found)...)
	if len(found) > 1 {
		found = j.preferCounted(found)
	}
	best := found[0]
	ids := j.concerned(found)
	differ := differing(found, ids)
	for _, id := range ids {
		j.count(id, found, best, slices.Contains(differ, id))
	}
	for i, c := range best.choices {
		if c.unexplained {
			j.unexplained(j.lanes[i])
		}
		if j.way > 0 && j.strayOf(0, c.strays) {
			j.unknownLeft(j.lanes[i], c)
		}
	}
	if len(differ) > 0 {
		j.several(found, differ)
	}
	j.place(found, len(differ) > 0)
}

// concerned are the products that tags or scales saw go or come.
func (j *judging) concerned(found []explanation) []int64 {
	for _, e := range found {
		for id, units := range e.beyond {
			if units != 0 {
				j.of(id)
			}
		}
	}
	return j.products()
}

// differing are the products of which the explanations count differently.
func differing(found []explanation, ids []int64) []int64 {
	var differ []int64
	for _, id := range ids {
		if slices.ContainsFunc(found, func(e explanation) bool { return e.beyond[id] != found[0].beyond[id] }) {
			differ = append(differ, id)
		}
	}
	return differ
}

// preferCounted lets the cabinet's own count choose between explanations that fit alike.
func (j *judging) preferCounted(found []explanation) []explanation {
	if !j.event.HasItems {
		return found
	}
	differ := differing(found, j.concerned(found))
	agrees := func(e explanation) bool {
		return !slices.ContainsFunc(differ, func(id int64) bool {
			item := j.item(id)
			return item.Confidence < j.shelf.Threshold || int64(len(j.of(id).tags))+e.beyond[id] != item.Quantity
		})
	}
	var kept []explanation
	for _, e := range found {
		if agrees(e) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return found
	}
	return kept
}

// count decides how many units of a product went for sure: the fewest of all explanations that fit alike, and of what tags
// and scales both say where they disagree.
func (j *judging) count(id int64, found []explanation, best explanation, open bool) {
	t := j.of(id)
	named := int64(len(t.tags))
	least, beyond := named+t.doubtful+best.beyond[id], best.beyond[id]
	for _, e := range found {
		least = min(least, named+t.doubtful+e.beyond[id])
	}
	disagree := beyond != 0 && !open && j.rfid && !j.untagged(id) && (beyond < 0 || beyond > j.unread(id))
	limit := named + max(beyond, 0)
	if disagree {
		limit = named
		j.disagree(id, beyond)
	}
	doubted := j.doubted(id, best)
	t.quantity = max(min(least, limit)-doubted, 0)
	t.proposed += doubted
	if open || disagree {
		t.proposed += max(named+max(beyond, 0)-t.quantity-doubted, 0)
	}
	t.decidedBy = j.decidedBy(id, best)
}

// doubted are the units that tags name and whose lane's change is a riddle.
func (j *judging) doubted(id int64, best explanation) int64 {
	units := int64(0)
	for i, c := range best.choices {
		if w := j.lanes[i]; c.unexplained && w.product.ProductID == id && w.tags > 0 {
			units += w.tags
		}
	}
	return min(units, int64(len(j.of(id).tags)))
}

// decidedBy collects the lanes and tags of a line and names its rule.
func (j *judging) decidedBy(id int64, best explanation) Evidence {
	t, lanes, scale, rule := j.of(id), []LaneEvidence(nil), scaleConfidence, RuleUnitWeights
	for i, c := range best.choices {
		w := j.lanes[i]
		mine := w.product.ProductID == id && !w.blind() && !c.unexplained
		if isStray := j.strayOf(id, c.strays); isStray {
			rule, mine = RuleStray, true
		}
		if !mine {
			continue
		}
		lanes = append(lanes, w.evidence(c.own))
		if c.own+w.tags != 0 {
			scale = min(scale, scaleConfidence-(scaleConfidence-edgeOfTolerance)*min(math.Sqrt(c.score), 1))
		}
		if slices.ContainsFunc(best.moves, func(m move) bool { return m.from == i || m.to == i }) {
			rule, scale = RuleNetted, scale*movedConfidence
		}
	}
	e := Evidence{Source: SourceWeight, Rule: rule, Confidence: hundredths(scale), Lanes: lanes}
	switch {
	case len(t.tags) == 0:
		return e
	case len(lanes) == 0:
		return t.tagsOnly()
	}
	e.Source, e.Rule, e.EPCs, e.Confidence = SourceRFIDWeight, RuleAgreed, slices.Clone(t.tags), both(scale, tagConfidence)
	if best.beyond[id] > 0 {
		e.Rule, e.Confidence = RuleScaleCounts, hundredths(scale*unreadShare)
	}
	return e
}

func (j *judging) strayOf(id int64, strays []int) bool {
	return slices.ContainsFunc(strays, func(i int) bool { return j.shelf.Strays[i].ProductID == id })
}

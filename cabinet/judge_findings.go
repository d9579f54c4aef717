package cabinet

import "slices"

// disagree: the tags of a product and its scale count differently, and nothing explains it.
func (j *judging) disagree(id, beyond int64) {
	e := Evidence{Source: SourceRFIDWeight, Rule: RuleWeightWithoutTag, Quantity: abs(beyond), EPCs: slices.Clone(j.of(id).tags)}
	if beyond < 0 {
		e.Rule = RuleTagWithoutWeight
	}
	where := "rfid"
	for _, w := range j.lanes {
		if w.product.ProductID == id {
			e.Lanes = append(e.Lanes, w.evidence(w.nearest(w.rest())))
			where = laneName(w.Lane)
		}
	}
	j.find(Finding{Reason: ReasonEvidenceDisagrees, Where: where, Evidence: e})
}

// unexplained: a lane changed by what nothing accounts for.
func (j *judging) unexplained(w *weighed) {
	rest := w.rest()
	e := Evidence{Source: SourceWeight, Rule: RuleNotAUnit, Lanes: []LaneEvidence{w.evidence(w.nearest(rest))}}
	reason := ReasonUnexplainedWeight
	switch {
	case !w.known:
		reason, e.Rule = ReasonUnknownLane, RuleNoLane
	case w.blind():
		if e.Rule = RuleNoUnitWeight; j.namedByTags(w) {
			return
		}
	case w.loss < 0 && j.way > 0:
		reason, e.Rule = ReasonForeignObject, RuleGain
	case w.loss < 0:
		e.Rule = RuleAgainstTheDoor
	default:
		id, units := j.guess(w)
		e.Quantity = units
		j.of(id).proposed += units
	}
	if w.tags != 0 && w.known {
		e.EPCs = slices.Clone(j.of(w.product.ProductID).tags)
	}
	j.find(Finding{Reason: reason, Where: laneName(w.Lane), Evidence: e})
}

// guess is what a person is asked about a loss that isn't a whole number of units: one unit of the only other product that
// weighs as much, or the nearest number of the lane's own, or one that somebody drank from.
func (j *judging) guess(w *weighed) (productID, units int64) {
	for _, other := range j.lanes {
		id := other.product.ProductID
		if _, _, ok := other.product.whole(w.rest(), 1); !ok || id == productID {
			continue
		}
		if productID != 0 {
			productID = 0
			break
		}
		productID = id
	}
	units = max(w.nearest(w.rest()), 1)
	switch {
	case productID != 0:
		return productID, 1
	case 4*w.rest() < w.product.UnitWeightGrams || units > MaxQuantity:
		return w.product.ProductID, 0
	}
	return w.product.ProductID, units
}

// unknownLeft: a thing that nobody knows lay in the lane and was taken. It may be a shopper's own, or a unit.
func (j *judging) unknownLeft(w *weighed, c choice) {
	e := Evidence{Source: SourceWeight, Rule: RuleStray, Lanes: []LaneEvidence{w.evidence(c.own)}}
	j.find(Finding{Reason: ReasonUnexplainedWeight, Where: laneName(w.Lane), Evidence: e})
}

// namedByTags: the product can't be counted by weight, but its lane changed the way that its tags did.
func (j *judging) namedByTags(w *weighed) bool {
	t := j.tallies[w.product.ProductID]
	return t != nil && t.net() != 0 && (t.net() > 0) == (w.loss > 0)
}

// several: explanations that charge differently fit alike, which is a person's choice.
func (j *judging) several(found []explanation, differ []int64) {
	e := Evidence{Source: SourceWeight, Rule: RuleSeveral}
	involved := map[int]bool{}
	for _, x := range found {
		for i, c := range x.choices {
			first := found[0].choices[i]
			if c.own != first.own || !slices.Equal(c.strays, first.strays) || c.unexplained != first.unexplained {
				involved[i] = true
			}
		}
		for _, m := range x.moves {
			involved[m.from], involved[m.to] = true, true
		}
	}
	for i, w := range j.lanes {
		if involved[i] {
			e.Lanes = append(e.Lanes, w.evidence(found[0].choices[i].own))
		}
	}
	where := "weights"
	if len(e.Lanes) > 0 {
		where = laneName(e.Lanes[0].Lane)
	}
	for _, id := range differ {
		e.Quantity += j.of(id).proposed
	}
	j.find(Finding{Reason: ReasonUnexplainedWeight, Where: where, Evidence: e})
}

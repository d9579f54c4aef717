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

// unexplained: a lane changed by what nothing accounts for. A loss near whole units is proposed as such, and one of a part
// of a unit as one: somebody drank from it.
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
	case 4*rest >= w.product.UnitWeightGrams:
		e.Quantity = min(max(w.nearest(rest), 1), MaxQuantity)
		j.of(w.product.ProductID).proposed += e.Quantity
	}
	if w.tags != 0 && w.known {
		e.EPCs = slices.Clone(j.of(w.product.ProductID).tags)
	}
	j.find(Finding{Reason: reason, Where: laneName(w.Lane), Evidence: e})
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

package cabinet

import "slices"

// tagConfidence is that of an antenna alone: a tag may be covered for a moment.
const tagConfidence = 0.98

// readTags tells the tags that went the way of the door from those that went against it, and both from those whose place
// in the books says otherwise. Tags that stayed matter only where they are sold.
func (j *judging) readTags() {
	if !j.rfid {
		return
	}
	gone, came, stayed := split(j.event.RFID)
	for _, epc := range gone {
		j.tag(epc, j.way)
	}
	for _, epc := range came {
		j.tag(epc, -j.way)
	}
	for _, epc := range stayed {
		if j.shelf.Tags[epc] == TagSold && !j.shelf.Later[epc] {
			j.returned(epc)
		}
	}
}

// TagsMoved lists the tags of an event from Decode that were seen at one end of the door only, each list ascending. Where a
// whole list of tags is missing or can't be read, the other alone says nothing and there are none.
func (e *Event) TagsMoved() (gone, came []string) {
	if !e.readsTags() {
		return nil, nil
	}
	gone, came, _ = split(e.RFID)
	return gone, came
}

func (e *Event) readsTags() bool {
	return e.HasRFID && !slices.ContainsFunc(e.Malformed, func(m MalformedEntry) bool {
		return m.Where == "rfid.before" || m.Where == "rfid.after"
	})
}

// split walks through the two sorted sets.
func split(seen RFID) (gone, came, stayed []string) {
	before, after, b, a := seen.Before, seen.After, 0, 0
	for b < len(before) || a < len(after) {
		switch {
		case a == len(after) || b < len(before) && before[b] < after[a]:
			gone = append(gone, before[b])
			b++
		case b == len(before) || after[a] < before[b]:
			came = append(came, after[a])
			a++
		default:
			stayed = append(stayed, before[b])
			a, b = a+1, b+1
		}
	}
	return gone, came, stayed
}

// tag judges one tag that was seen at one end of the door only; way is 1 where it went as the goods of the door do.
func (j *judging) tag(epc string, way int64) {
	id, decoded := j.shelf.ProductOf(epc)
	switch {
	case !decoded:
		j.findTag(ReasonUnknownEPC, RuleTagUnreadable, epc, 0)
	case id == 0:
		j.findTag(ReasonUnknownProduct, RuleUnknownProduct, epc, 0)
	case way < 0:
		j.tagBack(id, epc)
	case j.expected(epc):
		t := j.of(id)
		t.tags = append(t.tags, epc)
	case j.way < 0 && j.shelf.Tags[epc] == TagHere:
		j.moveTag(epc, id, TagHere) // booked before: only the reading at the beginning missed it
	default:
		j.of(id).doubtful++
		j.of(id).proposed++
		j.misplaced(id, epc)
	}
}

// expected: a sale takes what the books have here, a restock brings what they don't have anywhere, or what was not yet sold
// when its door closed.
func (j *judging) expected(epc string) bool {
	place, later := j.shelf.Tags[epc], j.shelf.Later[epc]
	if j.way > 0 {
		return place == TagHere && !later
	}
	return place == TagUnknown || place == TagLost || place == TagSold && later
}

// tagBack judges a tag that came at a sale or left at a restock. One that the books have here and that comes was only
// missed before; that it was seen again is noted. So was one that a later door sold or lost. One that left with staff is no
// longer here, whatever a person then makes of the stock: its next restock books it in again.
func (j *judging) tagBack(id int64, epc string) {
	switch {
	case j.way < 0:
		j.of(id).back++
		j.findTag(ReasonEvidenceDisagrees, RuleAgainstTheDoor, epc, id)
		if j.shelf.Tags[epc] == TagHere {
			j.moveTag(epc, id, TagLost)
		}
	case j.shelf.Tags[epc] == TagHere:
		j.moveTag(epc, id, TagHere)
	case j.shelf.Later[epc]:
	case j.shelf.Tags[epc] == TagSold:
		j.of(id).back++
		j.returned(epc)
	default:
		j.of(id).back++
		j.misplaced(id, epc)
	}
}

// returned: a tag that the books have as sold lies in the cabinet, so that the sale was wrong or the unit was brought
// back. From now on its place is here, so that one return makes one finding.
func (j *judging) returned(epc string) {
	id, _ := j.shelf.ProductOf(epc)
	j.findTag(ReasonEPCAlreadySold, RuleTagReturned, epc, id)
	if id != 0 {
		j.moveTag(epc, id, TagHere)
	}
}

// moveTag leaves a tag where a later door put it.
func (j *judging) moveTag(epc string, id int64, place TagPlace) {
	if j.shelf.Later[epc] {
		return
	}
	j.verdict.Tags = append(j.verdict.Tags, TagMove{EPC: epc, ProductID: id, Place: place})
}

func (j *judging) misplaced(id int64, epc string) {
	switch j.shelf.Tags[epc] {
	case TagSold:
		j.findTag(ReasonEPCAlreadySold, RuleTagPlace, epc, id)
	case TagElsewhere:
		j.findTag(ReasonEPCElsewhere, RuleTagPlace, epc, id)
	case TagHere:
		j.findTag(ReasonEvidenceDisagrees, RuleTagSeenLater, epc, id)
	default:
		j.findTag(ReasonEPCNotInCabinet, RuleTagPlace, epc, id)
	}
}

// findTag adds the tag to the finding of the same kind, if there is one.
func (j *judging) findTag(reason Reason, rule Rule, epc string, productID int64) {
	refund := int64(0)
	if rule == RuleTagReturned {
		refund = productID
	}
	for i := range j.verdict.Findings {
		f := &j.verdict.Findings[i]
		if f.Reason == reason && f.Evidence.Rule == rule && f.Refund == refund {
			f.Evidence.EPCs = append(f.Evidence.EPCs, epc)
			f.Evidence.Quantity++
			return
		}
	}
	evidence := Evidence{Source: SourceRFID, Rule: rule, Quantity: 1, Confidence: tagConfidence, EPCs: []string{epc}}
	j.find(Finding{Reason: reason, Where: "rfid", Evidence: evidence, Refund: refund})
}

// read counts the tags of a product that were read while the goods were in the cabinet: before a sale, after a restock.
func (j *judging) read(productID int64) int64 {
	if j.seen == nil {
		j.seen = map[int64]int64{}
		epcs := j.event.RFID.Before
		if j.way < 0 {
			epcs = j.event.RFID.After
		}
		if !j.rfid {
			epcs = nil
		}
		for _, epc := range epcs {
			if id, _ := j.shelf.ProductOf(epc); id != 0 {
				j.seen[id]++
			}
		}
	}
	return j.seen[productID]
}

// tagsOnly is the evidence of units that antennas alone saw.
func (t *tally) tagsOnly() Evidence {
	return Evidence{Source: SourceRFID, Rule: RuleTagsOnly, Confidence: tagConfidence, EPCs: slices.Clone(t.tags)}
}

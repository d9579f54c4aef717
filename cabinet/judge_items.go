package cabinet

import (
	"fmt"
	"slices"
)

// item is the cabinet's own count of a product. A product that isn't in its list was counted as 0, as surely as the list
// says of the others, and not at all where an entry of the list is malformed.
func (j *judging) item(productID int64) Item {
	for _, item := range j.event.Items {
		if item.ProductID == productID {
			return item
		}
	}
	none := Item{ProductID: productID, Confidence: 1}
	if j.malformedIn("items[") {
		none.Confidence = 0
	}
	return none
}

// compareItems takes the cabinet's own count alone for what neither scales nor tags can see, and as one more witness for the rest.
func (j *judging) compareItems() {
	if !j.event.HasItems {
		return
	}
	for _, item := range j.event.Items {
		if j.shelf.known(item.ProductID) == 0 {
			j.find(Finding{
				Reason: ReasonUnknownProduct, Where: itemName(item.ProductID),
				Evidence: Evidence{Source: SourceItems, Rule: RuleUnknownProduct, Quantity: item.Quantity, Confidence: item.Confidence},
			})
			continue
		}
		j.of(item.ProductID)
	}
	for _, id := range j.products() {
		if j.visible(id) {
			j.witness(id, j.item(id))
		} else if item := j.item(id); item.Quantity > 0 {
			j.countAlone(id, item)
		}
	}
}

// visible: a scale or an antenna would have seen units of the product go.
func (j *judging) visible(productID int64) bool {
	t := j.of(productID)
	if t.quantity > 0 || t.proposed > 0 || !t.silent() {
		return true
	}
	onScale := slices.ContainsFunc(j.lanes, func(w *weighed) bool { return w.product.ProductID == productID && !w.blind() })
	return onScale || j.rfid && j.read(productID) > 0
}

func (j *judging) countAlone(id int64, item Item) {
	t := j.of(id)
	e := Evidence{Source: SourceItems, Rule: RuleCabinetCount, Confidence: item.Confidence}
	if item.Confidence >= j.shelf.Threshold {
		t.quantity, t.decidedBy = item.Quantity, e
		return
	}
	t.proposed += item.Quantity
	e.Rule, e.Quantity = RuleBelowThreshold, item.Quantity
	j.find(Finding{Reason: ReasonLowConfidence, Where: itemName(id), Evidence: e})
}

// witness compares a count with what scales and tags say. One below the threshold neither confirms nor denies. Where they
// disagree, the fewest units are sure and the rest is proposed.
func (j *judging) witness(id int64, item Item) {
	t := j.of(id)
	switch {
	case item.Confidence < j.shelf.Threshold:
		return
	case item.Quantity == t.quantity:
		if t.quantity > 0 {
			t.decidedBy.Source = "items+" + t.decidedBy.Source
			t.decidedBy.Confidence = both(t.decidedBy.Confidence, item.Confidence)
		}
		return
	case t.quantity+t.proposed == item.Quantity && t.proposed > 0:
		return // it backs the proposal, which a person decides anyway
	}
	counts := &Counts{ProductID: id, Physical: t.quantity, Tags: int64(len(t.tags)), Items: item.Quantity, Confidence: item.Confidence}
	e := t.decidedBy
	e.Rule, e.Counts = RuleWitnesses, counts
	j.find(Finding{Reason: ReasonEvidenceDisagrees, Where: itemName(id), Evidence: e})
	most := max(t.quantity+t.proposed, item.Quantity)
	t.quantity = min(t.quantity, item.Quantity)
	t.proposed = most - t.quantity
}

func itemName(productID int64) string { return fmt.Sprintf("items product %d", productID) }

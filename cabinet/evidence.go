package cabinet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// reading is one sound entry of weights that still has to agree with the others of its lane.
type reading struct {
	Weight
	index int
	raw   []byte
}

// evidence reads a list of evidence of at most limit entries.
func (d *decoder) evidence(field string, limit int, entry func(index int) error) error {
	if err := d.want(jsontext.KindBeginArray, field, "a list"); err != nil {
		return err
	}
	return d.list(func(index int) error {
		if index == limit {
			return wrong(field, fmt.Sprintf("has more than %d entries", limit))
		}
		return entry(index)
	})
}

// want refuses a value of another kind. What isn't JSON at all is left for the next read to name.
func (d *decoder) want(kind jsontext.Kind, field, article string) error {
	if got := d.next(); got != kind && got != jsontext.KindInvalid {
		return wrong(field, "is not "+article)
	}
	return nil
}

// entry reads one entry of items or weights: member sees each member that isn't null. An entry that is no object has no
// members, and so goes the way of an empty one.
func (d *decoder) entry(member func(name, raw []byte)) (raw []byte, err error) {
	if d.next() != jsontext.KindBeginObject {
		return d.value()
	}
	return d.object(func(name []byte) error {
		raw, err := d.value()
		if err == nil && raw[0] != 'n' {
			member(name, raw)
		}
		return err
	})
}

func (d *decoder) items() error {
	d.event.HasItems = true
	return d.evidence("items", MaxItems, d.item)
}

func (d *decoder) item(index int) error {
	item := Item{Confidence: 1}
	var product, quantity bool
	raw, err := d.entry(func(name, raw []byte) {
		switch string(name) {
		case "productId":
			item.ProductID, product = integer(raw, 1, MaxID)
		case "quantity":
			item.Quantity, quantity = integer(raw, 1, MaxQuantity)
		case "confidence":
			item.Confidence = confidence(raw)
		}
	})
	switch {
	case err != nil:
		return err
	case !product:
		d.malformed(at("items", index), ReasonUnknownProduct, raw)
	case !quantity:
		d.malformed(at("items", index), ReasonInvalidQuantity, raw)
	default:
		d.event.Items = append(d.event.Items, item)
	}
	return nil
}

func (d *decoder) weights() error {
	d.event.HasWeights = true
	return d.evidence("weights", MaxLanes, d.weight)
}

func (d *decoder) weight(index int) error {
	var weight Weight
	var lane int64
	var known, before, after bool
	raw, err := d.entry(func(name, raw []byte) {
		switch string(name) {
		case "lane":
			lane, known = integer(raw, 1, MaxLane)
		case "beforeGrams":
			weight.BeforeGrams, before = integer(raw, -MaxGrams, MaxGrams)
		case "afterGrams":
			weight.AfterGrams, after = integer(raw, -MaxGrams, MaxGrams)
		}
	})
	switch {
	case err != nil:
		return err
	case !known:
		d.malformed(at("weights", index), ReasonUnknownLane, raw)
	case !before || !after:
		d.malformed(at("weights", index), ReasonUnexplainedWeight, raw)
	default:
		weight.Lane = int(lane)
		d.readings = append(d.readings, reading{Weight: weight, index: index, raw: raw})
	}
	return nil
}

func (d *decoder) rfid() error {
	if err := d.want(jsontext.KindBeginObject, "rfid", "an object"); err != nil {
		return err
	}
	d.event.HasRFID = true
	tags := &d.event.RFID
	var before, after bool
	_, err := d.object(func(name []byte) error {
		switch null := d.next() == jsontext.KindNull; {
		case !null && string(name) == "before":
			before = true
			return d.tags("rfid.before", &tags.Before)
		case !null && string(name) == "after":
			after = true
			return d.tags("rfid.after", &tags.After)
		}
		_, err := d.value()
		return err
	})
	// Both lists missing are as good as both empty; one alone would make every tag of the other look taken or brought.
	if before && !after {
		d.malformed("rfid.after", ReasonUnknownEPC, []byte("null"))
	}
	if after && !before {
		d.malformed("rfid.before", ReasonUnknownEPC, []byte("null"))
	}
	return err
}

func (d *decoder) tags(field string, tags *[]string) error {
	return d.evidence(field, MaxEPCs, func(index int) error {
		raw, err := d.value()
		if err != nil {
			return err
		}
		if tag, ok := epc(raw); ok {
			*tags = append(*tags, tag)
		} else {
			d.malformed(at(field, index), ReasonUnknownEPC, raw)
		}
		return nil
	})
}

func at(list string, index int) string {
	return list + "[" + strconv.Itoa(index) + "]"
}

// finish checks that nothing required is missing and brings the evidence into its one order.
func (d *decoder) finish() (*Event, error) {
	e := &d.event
	switch {
	case e.CloseEventID == "":
		return nil, wrong("closeEventId", "is missing")
	case e.DeviceID == 0:
		return nil, wrong("deviceId", "is missing")
	case !d.closed:
		return nil, wrong("closedAt", "is missing")
	case !e.HasItems && !e.HasWeights && !e.HasRFID:
		return nil, wrong("", "has neither items nor weights nor rfid, want at least one, if only empty")
	}
	e.Items = merged(e.Items)
	d.agreeOnLanes()
	e.RFID.Before, e.RFID.After = set(e.RFID.Before), set(e.RFID.After)
	if union(e.RFID.Before, e.RFID.After) > MaxEPCs {
		return nil, wrong("rfid", fmt.Sprintf("has more than %d different tags", MaxEPCs))
	}
	return e, nil
}

// merged adds the items up per product. Quantities can't overflow: MaxItems and MaxQuantity bound the sum.
func merged(items []Item) []Item {
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.ProductID, b.ProductID) })
	out := items[:0]
	for _, item := range items {
		if n := len(out); n > 0 && out[n-1].ProductID == item.ProductID {
			out[n-1].Quantity += item.Quantity
			out[n-1].Confidence = min(out[n-1].Confidence, item.Confidence)
			continue
		}
		out = append(out, item)
	}
	return out
}

// agreeOnLanes keeps one weight per lane. Where two readings of a lane differ nobody can tell the right one, so that
// all of them go to review.
func (d *decoder) agreeOnLanes() {
	slices.SortStableFunc(d.readings, func(a, b reading) int { return cmp.Compare(a.Lane, b.Lane) })
	for rest := d.readings; len(rest) > 0; {
		n := 1
		agree := true
		for ; n < len(rest) && rest[n].Lane == rest[0].Lane; n++ {
			agree = agree && rest[n].Weight == rest[0].Weight
		}
		d.keepLane(rest[:n], agree)
		rest = rest[n:]
	}
}

func (d *decoder) keepLane(readings []reading, agree bool) {
	if agree {
		d.event.Weights = append(d.event.Weights, readings[0].Weight)
		return
	}
	for _, r := range readings {
		d.malformed(at("weights", r.index), ReasonEvidenceDisagrees, r.raw)
	}
}

func set(tags []string) []string {
	slices.Sort(tags)
	return slices.Compact(tags)
}

// union counts the different tags of two sorted sets.
func union(a, b []string) int {
	return len(set(slices.Concat(a, b)))
}

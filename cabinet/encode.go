package cabinet

import "strings"

// MarshalJSON writes the event as a cabinet reports it: evidence where the Has… fields say so, malformed entries in the
// places that they came from. Decode reads from it an event of the same digest.
func (e Event) MarshalJSON() ([]byte, error) {
	w := writer{buf: make([]byte, 0, 512)}
	w.open('{')
	w.member("closeEventId").text(e.CloseEventID)
	w.member("deviceId").number(e.DeviceID)
	w.member("kind").text(string(e.Kind))
	w.optional(&e)
	w.member("closedAt").instant(e.ClosedAt)
	w.evidence(&e)
	w.close('}')
	return w.buf, nil
}

func (w *writer) optional(e *Event) {
	if e.SessionID != "" {
		w.member("sessionId").text(e.SessionID)
	}
	if e.UserID != 0 {
		w.member("userId").number(e.UserID)
	}
	if e.HasSeq {
		w.member("seq").number(e.Seq)
	}
	if e.BootID != "" {
		w.member("bootId").text(e.BootID)
	}
	if !e.OpenedAt.IsZero() {
		w.member("openedAt").instant(e.OpenedAt)
	}
	for _, m := range e.Malformed {
		if !strings.ContainsAny(m.Where, ".[") {
			w.member(m.Where).raw(m.Raw)
		}
	}
}

func (w *writer) evidence(e *Event) {
	if e.HasItems {
		w.member("items").open('[')
		for _, item := range e.Items {
			w.item(item)
		}
		w.malformed(e, "items[")
		w.close(']')
	}
	if e.HasWeights {
		w.member("weights").open('[')
		for _, weight := range e.Weights {
			w.weight(weight)
		}
		w.malformed(e, "weights[")
		w.close(']')
	}
	if e.HasRFID {
		w.member("rfid").open('{')
		w.tags(e, "before", e.RFID.Before)
		w.tags(e, "after", e.RFID.After)
		w.close('}')
	}
}

// item writes a sum that is too large for one entry as the several that it was.
func (w *writer) item(item Item) {
	for item.Quantity > MaxQuantity && item.Quantity <= MaxItems*MaxQuantity {
		part := item
		part.Quantity = MaxQuantity
		item.Quantity -= MaxQuantity
		w.item(part)
	}
	w.element().open('{')
	w.member("productId").number(item.ProductID)
	w.member("quantity").number(item.Quantity)
	if item.Confidence != 1 {
		w.member("confidence").float(item.Confidence)
	}
	w.close('}')
}

func (w *writer) weight(weight Weight) {
	w.element().open('{')
	w.member("lane").number(int64(weight.Lane))
	w.member("beforeGrams").number(weight.BeforeGrams)
	w.member("afterGrams").number(weight.AfterGrams)
	w.close('}')
}

func (w *writer) tags(e *Event, list string, tags []string) {
	for _, m := range e.Malformed {
		if m.Where == "rfid."+list {
			return
		}
	}
	w.member(list).open('[')
	for _, tag := range tags {
		w.element().text(tag)
	}
	w.malformed(e, "rfid."+list+"[")
	w.close(']')
}

func (w *writer) malformed(e *Event, prefix string) {
	for _, m := range e.Malformed {
		if strings.HasPrefix(m.Where, prefix) {
			w.element().raw(m.Raw)
		}
	}
}

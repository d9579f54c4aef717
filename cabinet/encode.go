package cabinet

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const timeLayout = `"2006-01-02T15:04:05.000Z"`

// MarshalJSON writes the event as a cabinet reports it: evidence where the Has… fields say so, malformed entries in the
// places that they came from. Decode reads from it an event of the same digest.
func (e *Event) MarshalJSON() ([]byte, error) {
	w := writer{buf: make([]byte, 0, 512)}
	w.open('{')
	w.member("closeEventId").text(e.CloseEventID)
	w.member("deviceId").number(e.DeviceID)
	w.member("kind").text(string(e.Kind))
	w.optional(e)
	w.member("closedAt").instant(e.ClosedAt)
	w.evidence(e)
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
	w.member("confidence").float(item.Confidence)
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

// MarshalJSON writes the receipt with every member, also where there is nothing to say: no order is null, no lines and
// no reasons are empty lists.
func (r Receipt) MarshalJSON() ([]byte, error) {
	w := writer{buf: make([]byte, 0, 512)}
	w.open('{')
	w.member("closeEventId").text(r.CloseEventID)
	w.member("deviceId").number(r.DeviceID)
	w.member("outcome").text(string(r.Outcome))
	w.member("duplicate").raw(strconv.AppendBool(nil, r.Duplicate))
	w.member("orderId")
	if r.OrderID == "" {
		w.raw([]byte("null"))
	} else {
		w.text(r.OrderID)
	}
	w.member("currency").text(r.Currency)
	w.member("totalMinor").number(r.TotalMinor)
	w.lines(r.Lines)
	w.member("reasons").open('[')
	for _, reason := range r.Reasons {
		w.element().text(string(reason))
	}
	w.close(']')
	w.member("settledAt")
	if r.SettledAt.IsZero() {
		w.raw([]byte("null"))
	} else {
		w.instant(r.SettledAt)
	}
	w.close('}')
	return w.buf, nil
}

func (w *writer) lines(lines []Line) {
	w.member("lines").open('[')
	for _, line := range lines {
		w.element().open('{')
		w.member("productId").number(line.ProductID)
		w.member("quantity").number(line.Quantity)
		w.member("unitPriceMinor").number(line.UnitPriceMinor)
		w.member("amountMinor").number(line.AmountMinor)
		w.close('}')
	}
	w.close(']')
}

// writer appends JSON. It knows where a comma is due by the byte before.
type writer struct{ buf []byte }

func (w *writer) open(delim byte)  { w.buf = append(w.buf, delim) }
func (w *writer) close(delim byte) { w.buf = append(w.buf, delim) }
func (w *writer) raw(value []byte) { w.buf = append(w.buf, value...) }

func (w *writer) element() *writer {
	if last := w.buf[len(w.buf)-1]; last != '{' && last != '[' {
		w.buf = append(w.buf, ',')
	}
	return w
}

func (w *writer) member(name string) *writer {
	w.element().text(name)
	w.buf = append(w.buf, ':')
	return w
}

// text replaces invalid UTF-8, the only thing that quoting could fail for.
func (w *writer) text(s string) {
	w.buf, _ = jsontext.AppendQuote(w.buf, strings.ToValidUTF8(s, "\uFFFD"))
}

func (w *writer) number(n int64) { w.buf = strconv.AppendInt(w.buf, n, 10) }

func (w *writer) float(f float64) { w.buf = strconv.AppendFloat(w.buf, f, 'g', -1, 64) }

func (w *writer) instant(at time.Time) { w.buf = at.UTC().AppendFormat(w.buf, timeLayout) }

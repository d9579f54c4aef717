package cabinet

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const timeLayout = `"2006-01-02T15:04:05.000Z"`

// writer appends JSON. It knows where a comma is due by the byte before.
type writer struct{ buf []byte }

func (w *writer) null()            { w.buf = append(w.buf, "null"...) }
func (w *writer) open(delim byte)  { w.buf = append(w.buf, delim) }
func (w *writer) close(delim byte) { w.buf = append(w.buf, delim) }
func (w *writer) raw(value []byte) { w.buf = append(w.buf, value...) }

func (w *writer) element() *writer {
	if last := w.buf[len(w.buf)-1]; last != '{' && last != '[' {
		w.buf = append(w.buf, ',')
	}
	return w
}

// member begins one of a name that needs no quoting, as all of ours.
func (w *writer) member(name string) *writer {
	w.element().code(name)
	w.buf = append(w.buf, ':')
	return w
}

// code is a text that needs no quoting.
func (w *writer) code(s string) {
	w.buf = append(append(append(w.buf, '"'), s...), '"')
}

// text replaces invalid UTF-8, the only thing that quoting could fail for.
func (w *writer) text(s string) {
	w.buf, _ = jsontext.AppendQuote(w.buf, strings.ToValidUTF8(s, "\uFFFD"))
}

func (w *writer) textOrNull(s string) {
	if s == "" {
		w.null()
		return
	}
	w.text(s)
}

func (w *writer) number(n int64) { w.buf = strconv.AppendInt(w.buf, n, 10) }

func (w *writer) flag(b bool) { w.buf = strconv.AppendBool(w.buf, b) }

func (w *writer) float(f float64) { w.buf = strconv.AppendFloat(w.buf, f, 'f', -1, 64) }

func (w *writer) instant(at time.Time) { w.buf = at.UTC().AppendFormat(w.buf, timeLayout) }

func (w *writer) instantOrNull(at time.Time) {
	if at.IsZero() {
		w.null()
		return
	}
	w.instant(at)
}

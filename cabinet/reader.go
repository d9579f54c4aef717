package cabinet

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// reader walks one JSON payload once, and hands out slices of it.
type reader struct {
	dec     jsontext.Decoder
	source  bytes.Buffer
	payload []byte
}

// readers are kept for what their decoders have grown: the names of members are told apart in tables.
var readers = sync.Pool{New: func() any { return new(reader) }}

// newReader returns a reader that may go back to readers once nothing is read from it any more.
func newReader(payload []byte, opts ...jsontext.Options) *reader {
	r := readers.Get().(*reader)
	r.payload, r.source = payload, *bytes.NewBuffer(payload)
	r.dec.Reset(&r.source, opts...) // which reads a bytes.Buffer in place, so that its offsets are those of the payload
	return r
}

func (r *reader) next() jsontext.Kind { return r.dec.PeekKind() }

// ended reports whether nothing but white space follows.
func (r *reader) ended() bool {
	_, err := r.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// value reads the next value whole, and returns it as written.
func (r *reader) value() ([]byte, error) {
	value, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(r.dec.InputOffset())
	return r.payload[end-len(value) : end : end], nil
}

// object reads the next value, which must be an object, and returns it as written. member must read one value each time.
func (r *reader) object(member func(name []byte) error) ([]byte, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	start := int(r.dec.InputOffset()) - 1
	for r.next() != jsontext.KindEndObject {
		quoted, err := r.value()
		if err != nil {
			return nil, err
		}
		if err := member(unquote(quoted)); err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	end := int(r.dec.InputOffset())
	return r.payload[start:end:end], nil
}

// list reads the next value, which must be an array. entry must read one value each time.
func (r *reader) list(entry func(index int) error) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for index := 0; r.next() != jsontext.KindEndArray; index++ {
		if err := entry(index); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// unquote returns what a JSON string says; it copies only where there is something to unescape.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	// The decoder has checked the string already.
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

// tooDeep reports whether arrays and objects are nested more than limit deep. It trusts the text to be JSON, and says
// something of no use about any other text.
func tooDeep(payload []byte, limit int) bool {
	depth, inString := 0, false
	for i := 0; i < len(payload); i++ {
		switch c := payload[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

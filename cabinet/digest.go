package cabinet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// digestVersion opens what is hashed. Stored digests are compared with new ones for as long as settlements are kept:
// whoever changes the encoding must still be able to compute this one.
const digestVersion = "doortab door-close 1"

// Digest is what tells a repeat from other content under the same id (R3): SHA-256 of the meaning of an event that
// Decode returned. It covers the kind, the user, the session, seq, both times, which evidence is there, items per
// product, weights per lane, the sets of tags, and the malformed entries as they came. It doesn't cover the bootId,
// confidences, unknown members, nor the order or the case of anything. The two ids aren't in it either: they are the key.
func (e *Event) Digest() [sha256.Size]byte {
	d := digester{buf: make([]byte, 0, 256)}
	d.text(digestVersion)
	d.text(string(e.Kind))
	d.number(e.UserID)
	d.text(fold(e.SessionID))
	d.flag(e.HasSeq)
	d.number(e.Seq)
	d.instant(e.OpenedAt)
	d.instant(e.ClosedAt)
	d.evidence(e)
	d.malformed(e.Malformed)
	return sha256.Sum256(d.buf)
}

// digester builds an encoding that no two meanings share: numbers say where they end, texts and lists start with their length.
type digester struct{ buf []byte }

func (d *digester) number(n int64) { d.buf = binary.AppendVarint(d.buf, n) }

func (d *digester) text(s string) {
	d.number(int64(len(s)))
	d.buf = append(d.buf, s...)
}

func (d *digester) flag(set bool) {
	if set {
		d.buf = append(d.buf, 1)
	} else {
		d.buf = append(d.buf, 0)
	}
}

func (d *digester) instant(at time.Time) { d.number(at.UnixMilli()) }

func (d *digester) evidence(e *Event) {
	d.flag(e.HasItems)
	d.number(int64(len(e.Items)))
	for _, item := range e.Items {
		d.number(item.ProductID)
		d.number(item.Quantity)
	}
	d.flag(e.HasWeights)
	d.number(int64(len(e.Weights)))
	for _, weight := range e.Weights {
		d.number(int64(weight.Lane))
		d.number(weight.BeforeGrams)
		d.number(weight.AfterGrams)
	}
	d.flag(e.HasRFID)
	d.tags(e.RFID.Before)
	d.tags(e.RFID.After)
}

func (d *digester) tags(tags []string) {
	d.number(int64(len(tags)))
	for _, tag := range tags {
		d.text(tag)
	}
}

// malformed writes the entries in an order of their own, without their index in a list.
func (d *digester) malformed(entries []MalformedEntry) {
	type entry struct{ place, raw string } // "items[", "userId"
	sorted := make([]entry, 0, len(entries))
	for _, m := range entries {
		place := strings.TrimRight(m.Where, "0123456789]")
		sorted = append(sorted, entry{place: place, raw: fold(canonical(m.Raw))})
	}
	slices.SortFunc(sorted, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.raw, b.raw))
	})
	d.number(int64(len(sorted)))
	for _, m := range sorted {
		d.text(m.place)
		d.text(m.raw)
	}
}

// canonical is RFC 8785 but for numbers, which stay as written: 2.0 and 2 are malformed and sound.
func canonical(raw []byte) string {
	value := jsontext.Value(bytes.Clone(raw))
	err := value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return string(raw) // not from Decode: whoever built the event put something else than JSON into Raw
	}
	return string(value)
}

// fold drops the difference between ASCII letters' cases.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

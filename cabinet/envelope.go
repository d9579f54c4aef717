package cabinet

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// identify finds out which event of which cabinet a payload speaks of that isn't an event. An id counts only in valid
// JSON, only if it is well formed, and only if it is there once; other names may be there twice. JSON that is nested
// deeper than the JSON library follows (10,000) isn't valid here, as RFC 8259 section 9 allows.
func identify(payload []byte) (closeEventID string, deviceID int64) {
	r := newReader(payload, jsontext.AllowDuplicateNames(true))
	if r.next() != jsontext.KindBeginObject {
		return "", 0
	}
	var ids, devices int
	_, err := r.object(func(name []byte) error {
		raw, err := r.value()
		if err != nil {
			return err
		}
		switch string(name) {
		case "closeEventId":
			closeEventID, _ = identifier(raw)
			ids++
		case "deviceId":
			deviceID, _ = integer(raw, 1, MaxID)
			devices++
		}
		return nil
	})
	if err != nil || !r.ended() {
		return "", 0
	}
	if ids != 1 {
		closeEventID = ""
	}
	if devices != 1 {
		deviceID = 0
	}
	return closeEventID, deviceID
}

// syntaxProblem says why a payload can't be read, in at most a line: the JSON library quotes names, however long.
func syntaxProblem(err error) string {
	const longest = 200
	if errors.Is(err, io.EOF) {
		return "is empty"
	}
	problem := strings.ToValidUTF8(strings.TrimPrefix(err.Error(), "jsontext: "), "?")
	if len(problem) > longest {
		problem = strings.ToValidUTF8(problem[:longest], "") + "…"
	}
	return "is not the JSON that it must be: " + problem
}

package cabinet

import (
	"strconv"
	"strings"
	"time"
)

// integer reads a JSON integer within the range: no fraction, no exponent and no string, also where they would say the same.
func integer(raw []byte, low, high int64) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < low || n > high {
		return 0, false
	}
	return n, true
}

// identifier reads a JSON string of 1 to MaxIDLength characters of A-Z a-z 0-9 . _ : -
func identifier(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return "", false
	}
	id := string(unquote(raw))
	if !ValidID(id) {
		return "", false
	}
	return id, true
}

// ValidID tells whether a text can be a closeEventId: 1 to MaxIDLength characters of A-Z a-z 0-9 . _ : -
func ValidID(id string) bool {
	if len(id) < 1 || len(id) > MaxIDLength {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// instant reads an RFC 3339 time with an offset, in the years 1 to 9999 of UTC, and keeps it to the millisecond.
func instant(raw []byte) (time.Time, bool) {
	if raw[0] != '"' {
		return time.Time{}, false
	}
	text := strings.ToUpper(string(unquote(raw))) // RFC 3339 section 5.6 allows t and z
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || lax(text) {
		return time.Time{}, false
	}
	at = at.UTC().Truncate(time.Millisecond)
	if at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, false
	}
	return at, true
}

// lax finds what time.Parse takes and RFC 3339 doesn't know: one digit of hours, a comma, an offset of a day or with
// more than 59 minutes (https://go.dev/issue/54580).
func lax(text string) bool {
	const hourEnd, secondEnd = len("2006-01-02T15"), len("2006-01-02T15:04:05")
	if text[hourEnd] != ':' || text[secondEnd] == ',' {
		return true
	}
	offset := text[len(text)-len("07:00"):]
	return text[len(text)-1] != 'Z' && (offset[:2] > "23" || offset[3:] > "59")
}

// confidence reads a number from 0 to 1. Anything else is no confidence at all: the count then is weighed as a doubtful one.
func confidence(raw []byte) float64 {
	c, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || c < 0 || c > 1 {
		return 0
	}
	return c
}

// epc reads an EPC as [ParseEPC] does.
func epc(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return "", false
	}
	return ParseEPC(string(unquote(raw)))
}

// ParseEPC reads an EPC in hex of either case, of one to 31 words of 16 bits, and returns it in upper case.
func ParseEPC(hex string) (string, bool) {
	if len(hex) == 0 || len(hex) > MaxEPCHex || len(hex)%4 != 0 {
		return "", false
	}
	for _, c := range []byte(hex) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') && (c < 'a' || c > 'f') {
			return "", false
		}
	}
	return strings.ToUpper(hex), true
}

package cabinet_test

import (
	"errors"
	"strings"
	"testing"

	"doortab/cabinet"
)

func TestWrongEnvelopes(t *testing.T) {
	t.Parallel()
	sound := with(`"items":[]`)
	change := func(old, new string) string { return strings.Replace(sound, old, new, 1) }
	padded := func(size int) string { return sound + strings.Repeat(" ", size-len(sound)) }
	deep := func(n int) string {
		return with(`"items":[]`, `"x":`+strings.Repeat(`[`, n-1)+strings.Repeat(`]`, n-1))
	}
	entries := func(list, entry string, n int) string {
		return with(`"` + list + `":[` + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + `]`)
	}
	cases := map[string]struct {
		payload string
		field   string
		id      string // what a receipt can name
		device  int64
	}{
		"empty":                        {"", "", "", 0},
		"white space":                  {" \n", "", "", 0},
		"not JSON":                     {"door closed", "", "", 0},
		"cut off":                      {sound[:len(sound)-1], "", "", 0},
		"two values":                   {sound + sound, "", "", 0},
		"a byte after the end":         {sound + "\x00", "", "", 0},
		"a byte order mark":            {"\ufeff" + sound, "", "", 0},
		"not UTF-8":                    {with(`"items":[]`, "\"x\":\"\xff\""), "", "", 0},
		"half a surrogate":             {with(`"items":[]`, `"x":"\ud800"`), "", "", 0},
		"a comment":                    {with(`"items":[] /* none */`), "", "", 0},
		"null":                         {"null", "", "", 0},
		"a list":                       {"[" + sound + "]", "", "", 0},
		"a text":                       {`"closeEventId"`, "", "", 0},
		"a name twice":                 {with(`"items":[]`, `"items":[]`), "", "e1", 1001},
		"a name twice, once escaped":   {with(`"items":[]`, `"\u0069tems":[]`), "", "e1", 1001},
		"an unknown name twice":        {with(`"items":[]`, `"x":{"y":1,"y":2}`), "", "e1", 1001},
		"a name twice in an item":      {with(`"items":[{"productId":7,"quantity":1,"quantity":2}]`), "", "e1", 1001},
		"closeEventId twice":           {with(`"items":[]`, `"closeEventId":"e1"`), "", "", 1001},
		"deviceId twice":               {with(`"items":[]`, `"deviceId":1001`), "", "e1", 0},
		"33 deep":                      {deep(33), "", "e1", 1001},
		"9,999 deep":                   {deep(9999), "", "e1", 1001},
		"32,000 deep":                  {deep(32000), "", "", 0},
		"a byte over 64 KiB":           {padded(cabinet.MaxPayload + 1), "", "e1", 1001},
		"1 MiB":                        {padded(1 << 20), "", "e1", 1001},
		"1 MiB of nothing":             {strings.Repeat("\x00", 1<<20), "", "", 0},
		"no evidence":                  {with(`"items":null`), "", "e1", 1001},
		"no closeEventId":              {change(`"closeEventId":"e1",`, ``), "closeEventId", "", 1001},
		"closeEventId null":            {change(`"e1"`, `null`), "closeEventId", "", 1001},
		"closeEventId empty":           {change(`"e1"`, `""`), "closeEventId", "", 1001},
		"closeEventId a number":        {change(`"e1"`, `1`), "closeEventId", "", 1001},
		"closeEventId of 65":           {change(`"e1"`, `"`+strings.Repeat("a", 65)+`"`), "closeEventId", "", 1001},
		"closeEventId with a slash":    {change(`"e1"`, `"e/1"`), "closeEventId", "", 1001},
		"closeEventId beyond ASCII":    {change(`"e1"`, `"é1"`), "closeEventId", "", 1001},
		"closeEventId with a NUL":      {change(`"e1"`, `"e\u0000"`), "closeEventId", "", 1001},
		"closeEventId in another case": {change(`"closeEventId"`, `"closeeventid"`), "closeEventId", "", 1001},
		"no deviceId":                  {change(`"deviceId":1001,`, ``), "deviceId", "e1", 0},
		"deviceId 0":                   {change(`1001`, `0`), "deviceId", "e1", 0},
		"deviceId -1":                  {change(`1001`, `-1`), "deviceId", "e1", 0},
		"deviceId 2^53":                {change(`1001`, `9007199254740992`), "deviceId", "e1", 0},
		"deviceId 1001.0":              {change(`1001`, `1001.0`), "deviceId", "e1", 0},
		"deviceId 1e3":                 {change(`1001`, `1e3`), "deviceId", "e1", 0},
		"deviceId as text":             {change(`1001`, `"1001"`), "deviceId", "e1", 0},
		"kind of another sort":         {with(`"items":[]`, `"kind":"refund"`), "kind", "e1", 1001},
		"kind in another case":         {with(`"items":[]`, `"kind":"Sale"`), "kind", "e1", 1001},
		"kind a number":                {with(`"items":[]`, `"kind":1`), "kind", "e1", 1001},
		"no closedAt":                  {`{"closeEventId":"e1","deviceId":1001,"items":[]}`, "closedAt", "e1", 1001},
		"closedAt without an offset":   {change(`480Z`, `480`), "closedAt", "e1", 1001},
		"closedAt a number":            {change(`"2026-11-30T10:00:21.480Z"`, `1764496821`), "closedAt", "e1", 1001},
		"items an object":              {with(`"items":{"productId":7,"quantity":1}`), "items", "e1", 1001},
		"items a number":               {with(`"items":2`), "items", "e1", 1001},
		"weights a text":               {with(`"weights":"none"`), "weights", "e1", 1001},
		"rfid a list":                  {with(`"rfid":[]`), "rfid", "e1", 1001},
		"rfid.after an object":         {with(`"rfid":{"before":[],"after":{}}`), "rfid.after", "e1", 1001},
		"201 items":                    {entries("items", `{"productId":7,"quantity":1}`, 201), "items", "e1", 1001},
		"300 items":                    {entries("items", `{"productId":7,"quantity":1}`, 300), "items", "e1", 1001},
		"201 wrong items":              {entries("items", `0`, 201), "items", "e1", 1001},
		"201 lanes":                    {entries("weights", `{"lane":1,"beforeGrams":1,"afterGrams":1}`, 201), "weights", "e1", 1001},
		"2,001 tags":                   {with(`"rfid":{"before":[` + tags(2001) + `],"after":[]}`), "rfid.before", "e1", 1001},
		"2,001 times one tag":          {with(`"rfid":{"before":[],"after":[` + strings.Repeat(`"AAAA",`, 2000) + `"AAAA"]}`), "rfid.after", "e1", 1001},
		"2,001 tags in both lists":     {with(`"rfid":{"before":[` + tags(2000) + `],"after":["AAAA"]}`), "rfid", "e1", 1001},
		"id after the fault":           {`{"deviceId":"x","closedAt":1,"closeEventId":"late"}`, "deviceId", "late", 0},
		"id only inside":               {`{"deviceId":1001,"event":{"closeEventId":"e1"}}`, "closeEventId", "", 1001},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := cabinet.Decode([]byte(c.payload))
			var wrong *cabinet.EnvelopeError
			if !errors.As(err, &wrong) {
				t.Fatalf("taken: %+v, error %v", event, err)
			}
			if wrong.Field != c.field || wrong.CloseEventID != c.id || wrong.DeviceID != c.device {
				t.Errorf("got %+v, want field %q id %q device %d", wrong, c.field, c.id, c.device)
			}
			if wrong.Problem == "" || len(wrong.Error()) > 300 {
				t.Errorf("the text is no line for a person: %q", wrong.Error())
			}
		})
	}
}

func TestLongNamesDoNotFillTheErrorText(t *testing.T) {
	t.Parallel()
	name := `"` + strings.Repeat("é", 20000) + `":1`
	_, err := cabinet.Decode([]byte(with(`"items":[]`, name, name)))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
}

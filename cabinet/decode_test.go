package cabinet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"doortab/cabinet"
)

func TestDecodeReadsTheDesignsExample(t *testing.T) {
	t.Parallel()
	want := &cabinet.Event{
		CloseEventID: "0198f0c2-6a52-7e0b-9c53-0b8f2f6d9a11", DeviceID: 1001, Kind: cabinet.KindSale,
		SessionID: "0198f0c2-aaaa", UserID: 42, Seq: 918, HasSeq: true, BootID: "7f3a",
		OpenedAt: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
		ClosedAt: time.Date(2026, 11, 30, 10, 0, 21, 480e6, time.UTC),
		HasItems: true, HasWeights: true, HasRFID: true,
		Items:   []cabinet.Item{{ProductID: 7, Quantity: 2, Confidence: 0.98}},
		Weights: []cabinet.Weight{{Lane: 3, BeforeGrams: 5230, AfterGrams: 4540}},
		RFID:    cabinet.RFID{Before: []string{"3036142C8C008F8000053244", "3036142C8C008F8000053245"}},
	}
	if diff := cmp.Diff(want, decode(t, example), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestEvidenceComesInOneOrder(t *testing.T) {
	t.Parallel()
	event := decode(t, with(
		`"items":[{"productId":9,"quantity":1},{"productId":7,"quantity":1000,"confidence":0.9},`+
			`{"quantity":600,"productId":7,"confidence":0.5}]`,
		`"weights":[{"lane":4,"beforeGrams":-3,"afterGrams":0},{"lane":2,"beforeGrams":9,"afterGrams":8},`+
			`{"lane":4,"beforeGrams":-3,"afterGrams":0}]`,
		`"rfid":{"after":["bbbb"],"before":["bbbb","AAAA","BBBB"]}`,
	))
	want := &cabinet.Event{
		Items:   []cabinet.Item{{ProductID: 7, Quantity: 1600, Confidence: 0.5}, {ProductID: 9, Quantity: 1, Confidence: 1}},
		Weights: []cabinet.Weight{{Lane: 2, BeforeGrams: 9, AfterGrams: 8}, {Lane: 4, BeforeGrams: -3}},
		RFID:    cabinet.RFID{Before: []string{"AAAA", "BBBB"}, After: []string{"BBBB"}},
	}
	got := &cabinet.Event{Items: event.Items, Weights: event.Weights, RFID: event.RFID, Malformed: event.Malformed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyAndMissingEvidenceDiffer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		member               string
		items, weights, rfid bool
	}{
		"empty items":            {member: `"items":[]`, items: true},
		"empty weights":          {member: `"weights":[]`, weights: true},
		"empty rfid lists":       {member: `"rfid":{"before":[],"after":[]}`, rfid: true},
		"rfid without lists":     {member: `"rfid":{}`, rfid: true},
		"rfid with null lists":   {member: `"rfid":{"before":null,"after":null}`, rfid: true},
		"null beside empty":      {member: `"items":[],"weights":null,"rfid":null`, items: true},
		"unknown names are none": {member: `"items":[],"Weights":[],"RFID":{}`, items: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := decode(t, with(c.member))
			if e.HasItems != c.items || e.HasWeights != c.weights || e.HasRFID != c.rfid || len(e.Malformed) > 0 {
				t.Errorf("items %v weights %v rfid %v malformed %v", e.HasItems, e.HasWeights, e.HasRFID, e.Malformed)
			}
		})
	}
}

func TestOneWrongEntryLeavesTheSoundOnes(t *testing.T) {
	t.Parallel()
	item := func(s string) string { return `"items":[{"productId":8,"quantity":1},` + s + `]` }
	quantity := func(s string) string { return item(`{"productId":7,"quantity":` + s + `}`) }
	product := func(s string) string { return item(`{"productId":` + s + `,"quantity":1}`) }
	weight := func(s string) string { return `"items":[{"productId":8,"quantity":1}],"weights":[` + s + `]` }
	tag := func(s string) string {
		return `"items":[{"productId":8,"quantity":1}],"rfid":{"before":[],"after":[` + s + `]}`
	}
	optional := func(s string) string { return `"items":[{"productId":8,"quantity":1}],` + s }
	huge := "1" + strings.Repeat("0", 400)

	cases := map[string]struct {
		members string
		where   string
		reason  cabinet.Reason
	}{
		"quantity 0":                 {quantity(`0`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity -0":                {quantity(`-0`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity -3":                {quantity(`-3`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity 1.5":               {quantity(`1.5`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity 2.0":               {quantity(`2.0`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity 1e2":               {quantity(`1e2`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity as text":           {quantity(`"2"`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity 1001":              {quantity(`1001`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity 10^9":              {quantity(`1000000000`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity beyond int64":      {quantity(`9223372036854775808`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity 10^400":            {quantity(huge), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity null":              {quantity(`null`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity true":              {quantity(`true`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity as object":         {quantity(`{"n":2}`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity missing":           {item(`{"productId":7}`), "items[1]", cabinet.ReasonInvalidQuantity},
		"quantity under other case":  {item(`{"productId":7,"Quantity":2}`), "items[1]", cabinet.ReasonInvalidQuantity},
		"product 0":                  {product(`0`), "items[1]", cabinet.ReasonUnknownProduct},
		"product -7":                 {product(`-7`), "items[1]", cabinet.ReasonUnknownProduct},
		"product as text":            {product(`"7"`), "items[1]", cabinet.ReasonUnknownProduct},
		"product 7.0":                {product(`7.0`), "items[1]", cabinet.ReasonUnknownProduct},
		"product 2^53":               {product(`9007199254740992`), "items[1]", cabinet.ReasonUnknownProduct},
		"product and quantity wrong": {item(`{}`), "items[1]", cabinet.ReasonUnknownProduct},
		"item is a number":           {item(`7`), "items[1]", cabinet.ReasonUnknownProduct},
		"item is null":               {item(`null`), "items[1]", cabinet.ReasonUnknownProduct},
		"item is a list":             {item(`[7,2]`), "items[1]", cabinet.ReasonUnknownProduct},
		"lane 0":                     {weight(`{"lane":0,"beforeGrams":1,"afterGrams":1}`), "weights[0]", cabinet.ReasonUnknownLane},
		"lane as text":               {weight(`{"lane":"3","beforeGrams":1,"afterGrams":1}`), "weights[0]", cabinet.ReasonUnknownLane},
		"lane 2^31":                  {weight(`{"lane":2147483648,"beforeGrams":1,"afterGrams":1}`), "weights[0]", cabinet.ReasonUnknownLane},
		"weight is a list":           {weight(`[3,1,1]`), "weights[0]", cabinet.ReasonUnknownLane},
		"grams missing":              {weight(`{"lane":3,"beforeGrams":1}`), "weights[0]", cabinet.ReasonUnexplainedWeight},
		"grams with a fraction":      {weight(`{"lane":3,"beforeGrams":1,"afterGrams":0.5}`), "weights[0]", cabinet.ReasonUnexplainedWeight},
		"grams absurd":               {weight(`{"lane":3,"beforeGrams":1,"afterGrams":1000000001}`), "weights[0]", cabinet.ReasonUnexplainedWeight},
		"tag empty":                  {tag(`""`), "rfid.after[0]", cabinet.ReasonUnknownEPC},
		"tag not hex":                {tag(`"3036142C8C008F800005324G"`), "rfid.after[0]", cabinet.ReasonUnknownEPC},
		"tag with an odd digit":      {tag(`"3036142C8C008F800005324"`), "rfid.after[0]", cabinet.ReasonUnknownEPC},
		"tag too long":               {tag(`"` + strings.Repeat("A", 128) + `"`), "rfid.after[0]", cabinet.ReasonUnknownEPC},
		"tag is a number":            {tag(`3036`), "rfid.after[0]", cabinet.ReasonUnknownEPC},
		"tag is null":                {tag(`null`), "rfid.after[0]", cabinet.ReasonUnknownEPC},
		"tags after missing":         {optional(`"rfid":{"before":["AAAA"]}`), "rfid.after", cabinet.ReasonUnknownEPC},
		"tags before null":           {optional(`"rfid":{"before":null,"after":[]}`), "rfid.before", cabinet.ReasonUnknownEPC},
		"user 0":                     {optional(`"userId":0`), "userId", cabinet.ReasonUnattributed},
		"user as text":               {optional(`"userId":"42"`), "userId", cabinet.ReasonUnattributed},
		"user 2^53":                  {optional(`"userId":9007199254740992`), "userId", cabinet.ReasonUnattributed},
		"session a number":           {optional(`"sessionId":42`), "sessionId", cabinet.ReasonSessionMismatch},
		"session empty":              {optional(`"sessionId":""`), "sessionId", cabinet.ReasonSessionMismatch},
		"session too long":           {optional(`"sessionId":"` + strings.Repeat("a", 65) + `"`), "sessionId", cabinet.ReasonSessionMismatch},
		"seq -1":                     {optional(`"seq":-1`), "seq", cabinet.ReasonEvidenceDisagrees},
		"seq as text":                {optional(`"seq":"918"`), "seq", cabinet.ReasonEvidenceDisagrees},
		"opened without an offset":   {optional(`"openedAt":"2026-11-30T10:00:00"`), "openedAt", cabinet.ReasonClockSkew},
		"opened at the zero time":    {optional(`"openedAt":"0001-01-01T00:00:00Z"`), "openedAt", cabinet.ReasonClockSkew},
		"opened as a number":         {optional(`"openedAt":1764496800`), "openedAt", cabinet.ReasonClockSkew},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := decode(t, with(c.members))
			if len(e.Malformed) != 1 || e.Malformed[0].Where != c.where || e.Malformed[0].Reason != c.reason {
				t.Errorf("malformed %+v, want %s at %s", e.Malformed, c.reason, c.where)
			}
			if diff := cmp.Diff([]cabinet.Item{{ProductID: 8, Quantity: 1, Confidence: 1}}, e.Items); diff != "" {
				t.Errorf("the sound item is lost: %s", diff)
			}
			if e.UserID != 0 || e.SessionID != "" || e.HasSeq || !e.OpenedAt.IsZero() {
				t.Errorf("a wrong member left a value: %+v", e)
			}
		})
	}
}

func TestReadingsOfOneLaneThatDifferGoToReview(t *testing.T) {
	t.Parallel()
	e := decode(t, with(`"weights":[{"lane":3,"beforeGrams":9,"afterGrams":8},{"lane":1,"beforeGrams":5,"afterGrams":5},`+
		`{"lane":3,"beforeGrams":9,"afterGrams":7}]`))
	want := []cabinet.MalformedEntry{
		{Where: "weights[0]", Reason: cabinet.ReasonEvidenceDisagrees, Raw: []byte(`{"lane":3,"beforeGrams":9,"afterGrams":8}`)},
		{Where: "weights[2]", Reason: cabinet.ReasonEvidenceDisagrees, Raw: []byte(`{"lane":3,"beforeGrams":9,"afterGrams":7}`)},
	}
	if diff := cmp.Diff(want, e.Malformed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]cabinet.Weight{{Lane: 1, BeforeGrams: 5, AfterGrams: 5}}, e.Weights); diff != "" {
		t.Error(diff)
	}
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	cases := map[string]float64{
		`0.98`: 0.98, `0`: 0, `1`: 1, `1.0`: 1, `5e-1`: 0.5, `null`: 1,
		`1.01`: 0, `-0.1`: 0, `"0.9"`: 0, `1e400`: 0, `true`: 0, `[]`: 0,
	}
	for raw, want := range cases {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			e := decode(t, with(`"items":[{"productId":7,"quantity":1,"confidence":`+raw+`}]`))
			if len(e.Items) != 1 || e.Items[0].Confidence != want || len(e.Malformed) > 0 {
				t.Errorf("items %+v malformed %+v, want confidence %v", e.Items, e.Malformed, want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		closedAt string
		want     string // "" for wrong
	}{
		"UTC":                     {"2026-11-30T10:00:21.480Z", "2026-11-30T10:00:21.48Z"},
		"offset east":             {"2026-11-30T18:00:21+08:00", "2026-11-30T10:00:21Z"},
		"offset west":             {"2026-11-30T04:30:21.5-05:30", "2026-11-30T10:00:21.5Z"},
		"lower case":              {"2026-11-30t10:00:21z", "2026-11-30T10:00:21Z"},
		"nanoseconds are cut":     {"2026-11-30T10:00:21.480999999Z", "2026-11-30T10:00:21.48Z"},
		"cut before 1970 as well": {"1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"},
		"1970":                    {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		"2099":                    {"2099-12-31T23:59:59Z", "2099-12-31T23:59:59Z"},
		"year 1":                  {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
		"year 9999":               {"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
		"year 0":                  {"0000-12-31T23:59:59Z", ""},
		"year 0 in UTC":           {"0001-01-01T00:00:00+01:00", ""},
		"year 10000 in UTC":       {"9999-12-31T23:59:59-01:00", ""},
		"no offset":               {"2026-11-30T10:00:21", ""},
		"a space for the T":       {"2026-11-30 10:00:21Z", ""},
		"one digit of hours":      {"2026-11-30T1:00:21Z", ""},
		"a comma":                 {"2026-11-30T10:00:21,5Z", ""},
		"no such day":             {"2026-02-29T10:00:21Z", ""},
		"no such offset":          {"2026-11-30T10:00:21+25:00", ""},
		"an offset of a day":      {"2026-11-30T10:00:21+24:00", ""},
		"an offset of 60 minutes": {"2026-11-30T10:00:21+01:60", ""},
		"a leading space":         {" 2026-11-30T10:00:21Z", ""},
		"hour 24":                 {"2026-11-30T24:00:00Z", ""},
		"a date":                  {"2026-11-30", ""},
		"nothing":                 {"", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := cabinet.Decode(fmt.Appendf(nil, `{"closeEventId":"e1","deviceId":1,"items":[],"closedAt":%q}`, c.closedAt))
			switch {
			case c.want == "" && err == nil:
				t.Errorf("%s was taken for %v", c.closedAt, e.ClosedAt)
			case c.want != "" && err != nil:
				t.Error(err)
			case c.want != "" && e.ClosedAt.Format(time.RFC3339Nano) != c.want:
				t.Errorf("got %v, want %s", e.ClosedAt, c.want)
			}
		})
	}
}

func TestWhatIsUnknownIsIgnored(t *testing.T) {
	t.Parallel()
	e := decode(t, with(
		`"firmware":{"v":[1,{"x":null}]}`, `"DeviceId":7`, `"price":1.5`, `"bootId":12`, `"kind":null`, `"userId":null`, `"openedAt":null`,
		`"items":[{"productId":7,"quantity":2,"unit":"can","shelf":{"a":[]}}]`, `"rfid":{"before":[],"after":[],"antennas":[1,2]}`,
	))
	if len(e.Malformed) > 0 || e.DeviceID != 1001 || e.BootID != "" || e.Kind != cabinet.KindSale || len(e.Items) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestLimitsThemselvesAreTaken(t *testing.T) {
	t.Parallel()
	many := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	cases := map[string]string{
		"200 items":        with(`"items":[` + many(200, `{"productId":9007199254740991,"quantity":1000}`) + `]`),
		"200 lanes":        with(`"weights":[` + many(200, `{"lane":2147483647,"beforeGrams":1000000000,"afterGrams":-1000000000}`) + `]`),
		"2,000 tags":       with(`"rfid":{"before":[` + tags(2000) + `],"after":[]}`),
		"32 deep":          with(`"items":[]`, `"x":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)),
		"brackets in text": with(`"items":[]`, `"x":"`+strings.Repeat(`[{\"`, 50)+`"`),
		"64 KiB":           with(`"items":[]`) + strings.Repeat(" ", cabinet.MaxPayload-len(with(`"items":[]`))),
		"id of 64":         strings.Replace(with(`"items":[]`), "e1", "AZaz09._:-"+strings.Repeat("x", 54), 1),
		"id with escapes":  strings.Replace(with(`"items":[]`), `"closeEventId":"e1"`, `"close\u0045ventId":"\u0065\u0031"`, 1),
		"largest device":   strings.Replace(with(`"items":[]`), "1001", "9007199254740991", 1),
	}
	for name, payload := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e := decode(t, payload); len(e.Malformed) > 0 {
				t.Errorf("malformed: %+v", e.Malformed)
			}
		})
	}
}

// tags is n different tags as JSON.
func tags(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"%024X"`, i)
	}
	return strings.Join(list, ",")
}

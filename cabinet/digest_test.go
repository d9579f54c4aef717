package cabinet_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"doortab/cabinet"
)

// A stored digest is compared with new ones for years: this one changes only together with a migration of them all.
func TestTheDigestOfTheExampleStays(t *testing.T) {
	t.Parallel()
	digest := decode(t, example).Digest()
	const want = "4e26e9f5b50f2a53ce14506d6daa3144c9e54fd3699158f750025bda8df09460"
	if got := hex.EncodeToString(digest[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheSameMeaningHasTheSameDigest(t *testing.T) {
	t.Parallel()
	cases := map[string][2]string{
		"bootId":           {with(`"items":[]`), with(`"items":[]`, `"bootId":"b2"`)},
		"unknown members":  {with(`"items":[]`), with(`"items":[]`, `"price":12.5`, `"x":{"y":[1]}`)},
		"kind by default":  {with(`"items":[]`), with(`"items":[]`, `"kind":"sale"`)},
		"null for nothing": {with(`"items":[]`), with(`"items":[]`, `"userId":null`, `"rfid":null`)},
		"confidence":       {with(`"items":[{"productId":7,"quantity":2}]`), with(`"items":[{"productId":7,"quantity":2,"confidence":0.4}]`)},
		"items added up": {
			with(`"items":[{"productId":7,"quantity":2}]`),
			with(`"items":[{"productId":7,"quantity":1},{"productId":7,"quantity":1}]`),
		},
		"the same instant": {
			with(`"items":[]`, `"openedAt":"2026-11-30T10:00:00Z"`),
			with(`"items":[]`, `"openedAt":"2026-11-30T18:00:00.0004+08:00"`),
		},
		"session's case": {with(`"items":[]`, `"sessionId":"ab-12"`), with(`"items":[]`, `"sessionId":"AB-12"`)},
		"tags' case":     {with(`"rfid":{"before":["aaaa"],"after":[]}`), with(`"rfid":{"before":["AAAA"],"after":[]}`)},
		"tags twice":     {with(`"rfid":{"before":["AAAA"],"after":[]}`), with(`"rfid":{"before":["AAAA","AAAA"],"after":[]}`)},
		"a lane twice": {
			with(`"weights":[{"lane":1,"beforeGrams":2,"afterGrams":1}]`),
			with(`"weights":[{"lane":1,"beforeGrams":2,"afterGrams":1},{"afterGrams":1,"lane":1,"beforeGrams":2}]`),
		},
		"escapes": {with(`"items":[]`, `"sessionId":"s1"`), with(`"items":[]`, `"sess\u0069onId":"\u0073\u0031"`)},
		"malformed reordered": {
			with(`"items":[{"productId":7,"quantity":0},{"a":1}]`),
			with(`"items":[ {"a":1} , {"quantity":0, "productId":7} ]`),
		},
		"malformed elsewhere": {
			with(`"items":[{"a":1},{"productId":7,"quantity":1}]`),
			with(`"items":[{"productId":7,"quantity":1},{"a":1}]`),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if decode(t, c[0]).Digest() != decode(t, c[1]).Digest() {
				t.Errorf("differ:\n%s\n%s", c[0], c[1])
			}
		})
	}
}

func TestEveryOtherMeaningHasAnotherDigest(t *testing.T) {
	t.Parallel()
	payloads := []string{
		example,
		with(`"items":[]`),
		with(`"weights":[]`),
		with(`"rfid":{}`),
		with(`"items":[]`, `"weights":[]`),
		with(`"items":[]`, `"rfid":{}`),
		with(`"items":[]`, `"kind":"restock"`),
		with(`"items":[]`, `"userId":42`),
		with(`"items":[]`, `"userId":43`),
		with(`"items":[]`, `"userId":"42"`),
		with(`"items":[]`, `"sessionId":"42"`),
		with(`"items":[]`, `"sessionId":42`),
		with(`"items":[]`, `"seq":0`),
		with(`"items":[]`, `"seq":1`),
		with(`"items":[]`, `"seq":1.0`),
		with(`"items":[]`, `"seq":-1`),
		with(`"items":[]`, `"openedAt":"2026-11-30T10:00:21.480Z"`),
		with(`"items":[]`, `"openedAt":"2026-11-30T10:00:21.481Z"`),
		with(`"items":[]`, `"openedAt":"0001-01-01T00:00:00Z"`),
		with(`"items":[]`, `"openedAt":""`),
		strings.Replace(with(`"items":[]`), "480Z", "481Z", 1),
		with(`"items":[{"productId":7,"quantity":1}]`),
		with(`"items":[{"productId":7,"quantity":2}]`),
		with(`"items":[{"productId":1,"quantity":7}]`),
		with(`"items":[{"productId":7,"quantity":1},{"productId":8,"quantity":1}]`),
		with(`"items":[{"productId":7,"quantity":0}]`),
		with(`"items":[{"productId":7,"quantity":2.0}]`),
		with(`"items":[{"productId":7,"quantity":2.00}]`),
		with(`"items":[{"productId":7,"quantity":1e400}]`),
		with(`"items":[{"productId":7,"quantity":1e401}]`),
		with(`"items":[{"productId":7,"quantity":"2"}]`),
		with(`"items":[{"productId":7,"quantity":0},{"productId":7,"quantity":0}]`),
		with(`"items":[null]`),
		with(`"items":[]`, `"weights":[null]`),
		with(`"items":[]`, `"weights":[{"lane":1,"beforeGrams":2,"afterGrams":1}]`),
		with(`"items":[]`, `"weights":[{"lane":1,"beforeGrams":1,"afterGrams":2}]`),
		with(`"items":[]`, `"weights":[{"lane":2,"beforeGrams":2,"afterGrams":1}]`),
		with(`"rfid":{"before":["AAAA"],"after":[]}`),
		with(`"rfid":{"before":[],"after":["AAAA"]}`),
		with(`"rfid":{"before":["AAAA"]}`),
		with(`"rfid":{"before":["AAAA"],"after":[null]}`),
		with(`"rfid":{"before":["AAAA",null],"after":[]}`),
		with(`"rfid":{"before":["AAAAAAAA"],"after":[]}`),
		with(`"rfid":{"before":["AAAA","AAAB"],"after":[]}`),
		with(`"rfid":{"before":["AAAA"],"after":["AAAB"]}`),
	}
	seen := map[[32]byte]string{}
	for _, payload := range payloads {
		digest := decode(t, payload).Digest()
		if other, ok := seen[digest]; ok {
			t.Errorf("the same digest:\n%s\n%s", other, payload)
		}
		seen[digest] = payload
	}
}

// Random events, shuffled and respelled in every way that doesn't matter, and then changed in one way that does.
func TestDigestFollowsMeaningAndNothingElse(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		sketch := randomSketch(random)
		first, second := sketch.write(random), sketch.write(random)
		digest := decode(t, first).Digest()
		if decode(t, second).Digest() != digest {
			t.Fatalf("the same meaning, other digests:\n%s\n%s", first, second)
		}
		sketch.change(random)
		if third := sketch.write(random); decode(t, third).Digest() == digest {
			t.Fatalf("other meanings, the same digest:\n%s\n%s", first, third)
		}
	}
}

// sketch is an event as lists of JSON entries, of which each has one meaning whatever the order.
type sketch struct {
	user, seq      int
	items, weights []string
	before, after  []string
}

func randomSketch(random *rand.Rand) *sketch {
	s := &sketch{user: random.IntN(9), seq: random.IntN(99)}
	for product := range random.IntN(6) {
		s.items = append(s.items, `{"productId":`+strconv.Itoa(product+1)+`,"quantity":`+strconv.Itoa(1+random.IntN(3))+`}`)
	}
	for lane := range random.IntN(5) {
		s.weights = append(s.weights, `{"lane":`+strconv.Itoa(lane+1)+`,"beforeGrams":`+strconv.Itoa(random.IntN(900))+`,"afterGrams":9}`)
	}
	for range random.IntN(5) {
		s.before = append(s.before, `"`+hex.EncodeToString([]byte{byte(random.IntN(256)), 0xAB})+`"`)
	}
	return s
}

func (s *sketch) change(random *rand.Rand) {
	switch random.IntN(7) {
	case 0:
		s.user++
	case 1:
		s.seq++
	case 2:
		s.items = append(s.items, `{"productId":7,"quantity":1}`)
	case 3:
		s.items = append(s.items, `{"productId":7,"quantity":-1}`)
	case 4:
		s.weights = append(s.weights, `{"lane":9,"beforeGrams":5,"afterGrams":5}`)
	case 5:
		s.before = append(s.before, `"FFFF"`)
	case 6:
		s.after = append(s.after, `"no tag"`)
	}
}

func (s *sketch) write(random *rand.Rand) string {
	list := func(entries []string) string {
		shuffled := append([]string(nil), entries...)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return "[" + strings.Join(shuffled, ", ") + "]"
	}
	letterCase := []func(string) string{strings.ToUpper, strings.ToLower}[random.IntN(2)]
	members := []string{
		`"closeEventId":"e1"`, `"deviceId":1001`, `"closedAt":"2026-11-30T10:00:21.480Z"`,
		`"userId":` + strconv.Itoa(s.user+1), `"seq":` + strconv.Itoa(s.seq), `"bootId":"b` + strconv.Itoa(random.IntN(99)) + `"`,
		`"sessionId":"` + letterCase("abc-DEF") + `"`, `"extra":` + strconv.Itoa(random.IntN(99)),
		`"items":` + list(s.items), `"weights":` + list(s.weights),
		`"rfid":{"before":` + letterCase(list(s.before)) + `,"after":` + letterCase(list(s.after)) + `}`,
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

func TestAnEventWrittenAgainMeansTheSame(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"the example":     example,
		"restock":         with(`"items":[]`, `"kind":"restock"`),
		"a large sum":     with(`"items":[{"productId":7,"quantity":1000},{"productId":7,"quantity":1000},{"productId":7,"quantity":1}]`),
		"wrong entries":   with(`"items":[{"productId":7,"quantity":-3},7,null]`, `"weights":[{"lane":0}]`, `"rfid":{"before":["x"],"after":["AAAA",1]}`),
		"wrong optionals": with(`"items":[]`, `"userId":"42"`, `"sessionId":[]`, `"seq":1.5`, `"openedAt":{}`),
		"one list":        with(`"rfid":{"after":["AAAA"]}`),
		"lanes disagree":  with(`"weights":[{"lane":1,"beforeGrams":2,"afterGrams":1},{"lane":1,"beforeGrams":2,"afterGrams":2}]`),
	}
	for name, payload := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := decode(t, payload)
			written, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			if decode(t, string(written)).Digest() != event.Digest() {
				t.Errorf("another meaning:\n%s\n%s", payload, written)
			}
		})
	}
}

func TestAnEventKeepsNothingOfThePayload(t *testing.T) {
	t.Parallel()
	payload := []byte(with(`"items":[{"productId":7,"quantity":-3}]`, `"sessionId":"s1"`, `"rfid":{"before":["AAAA"],"after":[]}`))
	event, err := cabinet.Decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	digest := event.Digest()
	copy(payload, bytes.Repeat([]byte("x"), len(payload)))
	if event.Digest() != digest {
		t.Error("the event changed with the buffer that its payload was in")
	}
}

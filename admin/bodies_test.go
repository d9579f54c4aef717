package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// bodiesEach is how many bodies each route gets.
const bodiesEach = 250

// Whatever a body says, the answer is one that its sender can act on, and never that something went wrong inside.
func TestNoBodyGivesAnInternalError(t *testing.T) {
	t.Parallel()
	h, _ := newDoor(t)
	h.settle(event("e", `,"userId":42,"seq":1,"items":[{"productId":7,"quantity":1},{"productId":99,"quantity":1}]`), time.Now())
	reviews, _ := h.walk("/v1/reviews?")
	promotion := h.live(3, 1, "")
	path := strings.NewReplacer("{productId}", "7", "{deviceId}", "7", "{epc}", "3036142C8C008F8000053244",
		"{reviewId}", reviews[0]["reviewId"].(string), "{orderId}", reviews[0]["orderId"].(string), "{promotionId}", promotion)
	var document openAPI
	if err := json.Unmarshal(h.send("", "GET", "/openapi.json", "").body, &document); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := &bodies{
		Rand: rand.New(rand.NewPCG(seed, 0)), schemas: document.Components.Schemas, soon: time.Now().UTC().Add(time.Hour).Format(time.RFC3339),
		promotion: promotion,
	}
	routes, taken := 0, map[string]bool{}
	for pattern, methods := range document.Paths {
		for method, op := range methods {
			schema := op.RequestBody.Content["application/json"].Schema
			if schema == nil {
				continue
			}
			routes++
			name := strings.ToUpper(method) + " " + pattern
			for range bodiesEach {
				body := g.body(schema)
				key := header{keyHeader: fmt.Sprint(g.IntN(500))}
				r := h.send(Admin, strings.ToUpper(method), path.Replace(pattern), body, key)
				if r.status >= 500 {
					t.Errorf("%s %.500s: %d %s", name, body, r.status, r.body)
				}
				if r.status >= 400 {
					h.problem(r, "")
				}
				taken[name] = taken[name] || r.status < 300 || r.status == 409 // a cabinet is locked, a review decided by now
			}
			if !taken[name] {
				t.Errorf("%s took none of %d bodies: it is not tried in depth", name, bodiesEach)
			}
		}
	}
	if routes < 8 {
		t.Errorf("%d routes with a body", routes)
	}
	for _, path := range []string{"/mqtt/auth", "/mqtt/acl"} {
		for range bodiesEach {
			if body := g.text(map[string]any{"username": "7", "password": "x", "clientid": "7", "topic": "a", "action": "publish"}); body != "" {
				h.expect(200, h.ask(path, hookSecret, body))
			}
		}
	}
}

// openAPI is what the test reads of the document.
type openAPI struct {
	Paths map[string]map[string]struct {
		RequestBody struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // a name or a list of names
	Enum       []any
	Properties map[string]*schema
	Required   []string
	Items      *schema
	Minimum    *int64
	Maximum    *int64
	MinItems   *int
	MinLength  *int
}

// bodies makes request bodies: values that fit a schema, many of them changed in one place or more.
type bodies struct {
	*rand.Rand
	schemas map[string]*schema
	soon    string // a time ahead

	promotion string // the id of one that is live
}

func (g *bodies) body(s *schema) string { return g.text(g.value(s)) }

// text writes a value as JSON, three times out of four with changes.
func (g *bodies) text(value any) string {
	for range g.IntN(4) {
		value = g.changed(value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	if g.IntN(8) == 0 {
		text = g.broken(text)
	}
	return string(text)
}

func (g *bodies) value(s *schema) any {
	if s.Ref != "" {
		return g.value(g.schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]])
	}
	if len(s.Enum) > 0 {
		return s.Enum[g.IntN(len(s.Enum))]
	}
	kind, plain := s.Type.(string)
	if list, several := s.Type.([]any); !plain && several {
		kind = list[g.IntN(len(list))].(string)
	}
	switch kind {
	case "object":
		return g.object(s)
	case "array":
		list := []any{}
		for range orZero(s.MinItems) + max(0, g.IntN(4)-1) {
			list = append(list, g.value(s.Items))
		}
		return list
	case "integer":
		return g.number(s)
	case "string":
		return pick(g, []string{strings.Repeat("a", max(1, orZero(s.MinLength))), "40170725", "水 \"x\"", "2026-11-30T10:00:00Z", "a\x00b", g.soon})
	case "boolean":
		return g.IntN(2) == 0
	default:
		return nil
	}
}

func (g *bodies) object(s *schema) any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) || g.IntN(2) == 0 {
			object[name] = g.value(s.Properties[name])
		}
		switch {
		case name == "promotionId" && g.IntN(2) == 0:
			object[name] = g.promotion
		case name == "startsAt" && g.IntN(2) == 0:
			object[name] = "2026-11-30T10:00:00Z"
		case (name == "endsAt" || name == "until") && g.IntN(4) > 0:
			object[name] = g.soon
		case name == "deviceId" && g.IntN(4) > 0:
			object[name] = 7
		}
	}
	return object
}

func (g *bodies) number(s *schema) any {
	if g.IntN(2) == 0 {
		return int64(7) // a cabinet and a product that are there
	}
	candidates := []int64{7, 1, 2}
	for _, bound := range []*int64{s.Minimum, s.Maximum} {
		if bound != nil {
			candidates = append(candidates, *bound, *bound-1, *bound+1)
		}
	}
	return candidates[g.IntN(len(candidates))]
}

// changed puts something else somewhere into a value.
func (g *bodies) changed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || g.IntN(6) == 0 {
			v[pick(g, []string{"x", "", "productId", "Lines", "$ref"})] = g.nasty()
			return v
		}
		name := names[g.IntN(len(names))]
		if g.IntN(5) == 0 {
			delete(v, name)
		} else {
			v[name] = g.changed(v[name])
		}
		return v
	case []any:
		if len(v) == 0 || g.IntN(4) == 0 {
			return append(v, g.nasty())
		}
		i := g.IntN(len(v))
		if g.IntN(3) == 0 {
			return append(v, v[i])
		}
		v[i] = g.changed(v[i])
		return v
	default:
		return g.nasty()
	}
}

func (g *bodies) nasty() any {
	return json.RawMessage(pick(g, []string{
		"null", "true", "-1", "0", "-0", "1.5", "2.0", "1e2", "1e400", "9007199254740992", "9223372036854775807", "-9223372036854775808",
		"99999999999999999999999", `""`, `"7"`, `"\u0000"`, `"\ud800"`, `"水"`, `"` + strings.Repeat("a", 2000) + `"`, "{}", "[]", "[[[[]]]]",
		strings.Repeat("[", 200) + strings.Repeat("]", 200), `{"productId":7}`, `"2026-13-01T00:00:00Z"`, `"%00"`, `"'; DROP TABLE products; --"`,
	}))
}

// broken makes a text that may be no JSON any more.
func (g *bodies) broken(text []byte) []byte {
	at := g.IntN(len(text))
	switch g.IntN(4) {
	case 0:
		return text[:at]
	case 1:
		text[at] = byte(g.IntN(256))
		return text
	case 2:
		return bytes.Replace(text, []byte(`{"`), []byte(`{"name":1,"name":2,"`), 1)
	default:
		return slices.Insert(text, at, 0xff, 0xfe)
	}
}

func pick[T any](g *bodies, list []T) T { return list[g.IntN(len(list))] }

func orZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

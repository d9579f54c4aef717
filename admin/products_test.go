package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const cola = `{"productId":7,"sku":"COLA330","name":"Cola 330 ml","gtin":"08719139005740","priceMinor":500,` +
	`"unitWeightGrams":345,"weightToleranceGrams":6}`

func TestAProductIsAnsweredAsItWasGiven(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	want := map[string]any{
		"productId": 7.0, "sku": "COLA330", "name": "Cola 330 ml", "gtin": "08719139005740", "priceMinor": 500.0,
		"unitWeightGrams": 345.0, "weightToleranceGrams": 6.0,
	}
	created := h.product(cola)
	read := h.expect(http.StatusOK, h.send(Viewer, "GET", "/v1/products/7", "")).json(t)
	for name, got := range map[string]map[string]any{"created": created, "read": read} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s product (-want +got):\n%s", name, diff)
		}
	}
	bare := h.product(`{"sku":" \u0000","name":"` + strings.Repeat("水", 200) + `","priceMinor":0}`)
	if bare["gtin"] != nil || bare["unitWeightGrams"] != nil || bare["productId"] != 8.0 {
		t.Errorf("bare product: %v", bare)
	}
	if bare["name"] != strings.Repeat("水", 200) || bare["sku"] != " \x00" {
		t.Errorf("name or sku was not kept as given: %v", bare)
	}
}

func TestAProductOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.product(cola)
	for name, c := range map[string]struct {
		body   string
		status int
		kind   string
	}{
		"not JSON":               {`{`, 400, "bad-request"},
		"no body":                {` `, 400, "bad-request"},
		"trailing data":          {`{"sku":"a","name":"a","priceMinor":1} {}`, 400, "bad-request"},
		"a name twice":           {`{"sku":"a","sku":"b","name":"a","priceMinor":1}`, 400, "bad-request"},
		"invalid UTF-8":          {"{\"sku\":\"\xff\",\"name\":\"a\",\"priceMinor\":1}", 400, "bad-request"},
		"a list":                 {`[]`, 422, "invalid"},
		"null":                   {`null`, 422, "invalid"},
		"unknown field":          {`{"sku":"a","name":"a","priceMinor":1,"colour":"red"}`, 422, "invalid"},
		"other case":             {`{"SKU":"a","name":"a","priceMinor":1}`, 422, "invalid"},
		"no sku":                 {`{"name":"a","priceMinor":1}`, 422, "invalid"},
		"empty sku":              {`{"sku":"","name":"a","priceMinor":1}`, 422, "invalid"},
		"long sku":               {`{"sku":"` + strings.Repeat("a", 65) + `","name":"a","priceMinor":1}`, 422, "invalid"},
		"empty name":             {`{"sku":"a","name":"","priceMinor":1}`, 422, "invalid"},
		"long name":              {`{"sku":"a","name":"` + strings.Repeat("水", 201) + `","priceMinor":1}`, 422, "invalid"},
		"null name":              {`{"sku":"a","name":null,"priceMinor":1}`, 422, "invalid"},
		"price as text":          {`{"sku":"a","name":"a","priceMinor":"1"}`, 422, "invalid"},
		"price with a fraction":  {`{"sku":"a","name":"a","priceMinor":1.5}`, 422, "invalid"},
		"price as a float":       {`{"sku":"a","name":"a","priceMinor":1.0}`, 422, "invalid"},
		"negative price":         {`{"sku":"a","name":"a","priceMinor":-1}`, 422, "invalid"},
		"price above 10^12":      {`{"sku":"a","name":"a","priceMinor":1000000000001}`, 422, "invalid"},
		"price beyond int64":     {`{"sku":"a","name":"a","priceMinor":1e300}`, 422, "invalid"},
		"id 0":                   {`{"productId":0,"sku":"a","name":"a","priceMinor":1}`, 422, "invalid"},
		"id above 2^53-1":        {`{"productId":9007199254740992,"sku":"a","name":"a","priceMinor":1}`, 422, "invalid"},
		"gtin of 9 digits":       {`{"sku":"a","name":"a","priceMinor":1,"gtin":"123456789"}`, 422, "invalid"},
		"gtin with a wrong sum":  {`{"sku":"a","name":"a","priceMinor":1,"gtin":"08719139005741"}`, 422, "invalid"},
		"gtin with a letter":     {`{"sku":"a","name":"a","priceMinor":1,"gtin":"0871913900574O"}`, 422, "invalid"},
		"empty gtin":             {`{"sku":"a","name":"a","priceMinor":1,"gtin":""}`, 422, "invalid"},
		"no weight":              {`{"sku":"a","name":"a","priceMinor":1,"unitWeightGrams":0}`, 422, "invalid"},
		"negative tolerance":     {`{"sku":"a","name":"a","priceMinor":1,"weightToleranceGrams":-1}`, 422, "invalid"},
		"sku taken":              {`{"sku":"COLA330","name":"a","priceMinor":1}`, 409, "duplicate"},
		"id taken":               {`{"productId":7,"sku":"a","name":"a","priceMinor":1}`, 409, "duplicate"},
		"gtin taken":             {`{"sku":"a","name":"a","priceMinor":1,"gtin":"08719139005740"}`, 409, "duplicate"},
		"gtin taken, as GTIN-13": {`{"sku":"a","name":"a","priceMinor":1,"gtin":"8719139005740"}`, 409, "duplicate"},
	} {
		r := h.send(Operator, "POST", "/v1/products", c.body)
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	if items, _ := h.walk("/v1/products?"); len(items) != 1 {
		t.Errorf("refused products were kept: %v", items)
	}
}

func TestAPatchChangesWhatItNames(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.product(cola)
	h.product(`{"productId":8,"sku":"OTHER","name":"Other","priceMinor":1}`)
	patched := h.expect(200, h.send(Operator, "PATCH", "/v1/products/7", `{"priceMinor":600,"gtin":null,"unitWeightGrams":null}`)).json(t)
	want := map[string]any{
		"productId": 7.0, "sku": "COLA330", "name": "Cola 330 ml", "gtin": nil, "priceMinor": 600.0,
		"unitWeightGrams": nil, "weightToleranceGrams": 6.0,
	}
	if diff := cmp.Diff(want, patched); diff != "" {
		t.Errorf("patched (-want +got):\n%s", diff)
	}
	again := h.expect(200, h.send(Operator, "PATCH", "/v1/products/7", `{"gtin":"40170725","unitWeightGrams":10}`)).json(t)
	if again["gtin"] != "40170725" || again["unitWeightGrams"] != 10.0 {
		t.Errorf("patched again: %v", again)
	}
	for body, status := range map[string]int{
		`{"productId":9}`: 422, `{"sku":"OTHER"}`: 409, `{"sku":null}`: 422, `{"gtin":"40170726"}`: 422, `{"priceMinor":-1}`: 422,
		`{"unitWeightGrams":1.5}`: 422, `{"unitWeightGrams":"1"}`: 422, `{}`: 200,
	} {
		if r := h.send(Operator, "PATCH", "/v1/products/7", body); r.status != status {
			t.Errorf("PATCH %s: %d, want %d: %s", body, r.status, status, r.body)
		}
	}
	h.problem(h.expect(404, h.send(Operator, "PATCH", "/v1/products/99", `{}`)), "not-found")
	h.expect(422, h.send(Operator, "PATCH", "/v1/products/abc", `{}`))
}

func TestProductsMadeAtTheSameMomentGetNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ids := make([]float64, 24)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() {
			r := h.send(Operator, "POST", "/v1/products", fmt.Sprintf(`{"sku":"S%d","name":"a","priceMinor":1}`, i))
			if r.status == http.StatusCreated {
				ids[i], _ = r.json(t)["productId"].(float64)
			} else {
				t.Errorf("status %d: %s", r.status, r.body)
			}
		})
	}
	wait.Wait()
	slices.Sort(ids)
	for i, id := range ids {
		if id != float64(i+1) {
			t.Fatalf("ids %v", ids)
		}
	}
}

// walk reads a list to its end in pages of two, and returns its items and how many pages they took.
func (h *harness) walk(path string) (items []map[string]any, pages int) {
	h.t.Helper()
	cursor := ""
	for {
		answer := h.expect(200, h.send(Admin, "GET", path+"&limit=2"+cursor, "")).json(h.t)
		list, ok := answer["items"].([]any)
		if !ok || len(list) > 2 {
			h.t.Fatalf("items of %s: %v", path, answer["items"])
		}
		for _, item := range list {
			items = append(items, item.(map[string]any))
		}
		pages++
		next, more := answer["nextCursor"].(string)
		if !more {
			if answer["nextCursor"] != nil {
				h.t.Fatalf("nextCursor %v", answer["nextCursor"])
			}
			return items, pages
		}
		cursor = "&cursor=" + next
	}
}

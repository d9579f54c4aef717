package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const planogramOf7 = "/v1/cabinets/7/planogram"

func (h *harness) planogram(body string) reply { return h.send(Operator, "PUT", planogramOf7, body) }

func TestAPlanogramIsReplacedWhole(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.product(`{"productId":3,"sku":"TEA","name":"Tea","priceMinor":1}`)
	if got := string(h.expect(200, h.send(Viewer, "GET", planogramOf7, "")).body); strings.TrimSpace(got) != `{"lanes":[]}` {
		t.Errorf("a new cabinet's planogram: %s", got)
	}
	h.expect(200, h.planogram(`{"lanes":[{"lane":1,"productId":7,"capacity":12,"parLevel":4}]}`))
	body := `{"lanes":[{"lane":2147483647,"productId":3,"capacity":0,"parLevel":0},{"lane":2,"productId":7,"capacity":12,"parLevel":12},` +
		`{"lane":3,"productId":7,"capacity":6,"parLevel":2}]}`
	want := []any{
		map[string]any{"lane": 2.0, "productId": 7.0, "capacity": 12.0, "parLevel": 12.0},
		map[string]any{"lane": 3.0, "productId": 7.0, "capacity": 6.0, "parLevel": 2.0},
		map[string]any{"lane": 2147483647.0, "productId": 3.0, "capacity": 0.0, "parLevel": 0.0},
	}
	for range 2 { // the same again changes nothing
		if diff := cmp.Diff(want, h.expect(200, h.planogram(body)).json(t)["lanes"]); diff != "" {
			t.Errorf("answer %s", diff)
		}
	}
	if diff := cmp.Diff(want, h.expect(200, h.send(Viewer, "GET", planogramOf7, "")).json(t)["lanes"]); diff != "" {
		t.Errorf("read %s", diff)
	}
	var history []struct {
		Lanes string
		Actor string
	}
	err := h.db.Read(t.Context()).Raw("SELECT lanes, actor FROM planogram_history WHERE device_id = 7 ORDER BY changed_at").Scan(&history).Error
	if err != nil {
		t.Fatal(err)
	}
	if len(history) != 2 || !strings.HasPrefix(history[1].Actor, "token:") || strings.Count(history[1].Lanes, `"lane":`) != 3 {
		t.Errorf("history %v", history)
	}
	h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":1}]}`))
	if items, _ := h.walk("/v1/cabinets/7/stock?"); items[0]["parLevel"] != 14.0 {
		t.Errorf("stock %v", items)
	}
	if got := h.expect(200, h.planogram(`{"lanes":[]}`)).json(t)["lanes"]; len(got.([]any)) != 0 {
		t.Errorf("cleared: %v", got)
	}
}

func TestAPlanogramOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	one := func(lane, product, capacity, par string) string {
		return fmt.Sprintf(`{"lanes":[{"lane":%s,"productId":%s,"capacity":%s,"parLevel":%s}]}`, lane, product, capacity, par)
	}
	lanes := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"lane":1,"productId":7,"capacity":1,"parLevel":1},`, n), ",")
	}
	h.expect(200, h.planogram(one("1", "7", "5", "2")))
	for name, c := range map[string]struct{ body, kind string }{
		"lane 0":          {one("0", "7", "5", "2"), "invalid"},
		"lane 2^31":       {one("2147483648", "7", "5", "2"), "invalid"},
		"lane 1.5":        {one("1.5", "7", "5", "2"), "invalid"},
		"capacity -1":     {one("1", "7", "-1", "-1"), "invalid"},
		"capacity 100001": {one("1", "7", "100001", "1"), "invalid"},
		"par -1":          {one("1", "7", "5", "-1"), "invalid"},
		"par above":       {one("1", "7", "5", "6"), "invalid"},
		"unknown product": {one("1", "9", "5", "2"), "unknown-product"},
		"product as text": {one("1", `"7"`, "5", "2"), "invalid"},
		"a lane twice":    {`{"lanes":[` + lanes(2) + `]}`, "invalid"},
		"no lanes":        {`{}`, "invalid"},
		"null lanes":      {`{"lanes":null}`, "invalid"},
		"unknown member":  {`{"lanes":[],"x":1}`, "invalid"},
		"no capacity":     {`{"lanes":[{"lane":1,"productId":7,"parLevel":1}]}`, "invalid"},
		"1,001 lanes":     {`{"lanes":[` + lanes(1001) + `]}`, "invalid"},
		"a null lane":     {`{"lanes":[null]}`, "invalid"},
	} {
		r := h.planogram(c.body)
		if r.status != 422 {
			t.Errorf("%s: %d %.200s", name, r.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	h.expect(404, h.send(Operator, "PUT", "/v1/cabinets/8/planogram", `{"lanes":[]}`))
	h.expect(404, h.send(Viewer, "GET", "/v1/cabinets/8/planogram", ""))
	if lanes := h.expect(200, h.send(Viewer, "GET", planogramOf7, "")).json(t)["lanes"].([]any); len(lanes) != 1 {
		t.Errorf("a refused planogram was kept: %v", lanes)
	}
}

func TestAnOverrideOfATag(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.product(`{"productId":3,"sku":"TEA","name":"Tea","priceMinor":1}`)
	const epc = "3036142C8C008F8000053244"
	want := map[string]any{"epc": epc, "productId": 7.0}
	for _, given := range []string{epc, strings.ToLower(epc)} {
		if diff := cmp.Diff(want, h.expect(200, h.send(Operator, "PUT", "/v1/epcs/"+given, `{"productId":7}`)).json(t)); diff != "" {
			t.Error(diff)
		}
	}
	h.expect(200, h.send(Operator, "PUT", "/v1/epcs/"+epc, `{"productId":3}`))
	var stored []struct {
		EPC       string
		ProductID int64
	}
	if err := h.db.Read(t.Context()).Raw("SELECT epc, product_id FROM epc_overrides").Scan(&stored).Error; err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 || stored[0].EPC != epc || stored[0].ProductID != 3 {
		t.Errorf("stored %v", stored)
	}
	h.problem(h.expect(422, h.send(Operator, "PUT", "/v1/epcs/"+epc, `{"productId":9}`)), "unknown-product")
	for _, bad := range []string{"303", "3036142C8C008F800005324G", strings.Repeat("0", 128), "%E6%B0%B4%20", "3036142C 8C008F80000532"} {
		for _, method := range []string{"PUT", "DELETE"} {
			r := h.send(Operator, method, "/v1/epcs/"+strings.ReplaceAll(bad, " ", "%20"), `{"productId":7}`)
			h.problem(h.expect(422, r), "invalid")
		}
	}
	h.expect(200, h.send(Operator, "PUT", "/v1/epcs/"+strings.Repeat("0", 124), `{"productId":3}`))
	h.expect(204, h.send(Operator, "DELETE", "/v1/epcs/"+strings.ToLower(epc), ""))
	h.problem(h.expect(404, h.send(Operator, "DELETE", "/v1/epcs/"+epc, "")), "not-found")
}

func TestTheRestockListSaysWhatToBringWhere(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	for id, name := range map[int]string{3: "TEA", 5: "SALAD"} {
		h.product(fmt.Sprintf(`{"productId":%d,"sku":%q,"name":"x","priceMinor":1}`, id, name))
	}
	for device, site := range map[int]string{8: "=HQ,1", 9: "Airport", 10: "Airport", 11: "Full"} {
		h.expect(http.StatusCreated, h.send(Operator, "POST", "/v1/cabinets", fmt.Sprintf(`{"deviceId":%d,"name":"c","site":%q}`, device, site)))
	}
	plan := func(device int, lanes string) {
		h.expect(200, h.send(Operator, "PUT", fmt.Sprintf("/v1/cabinets/%d/planogram", device), `{"lanes":[`+lanes+`]}`))
	}
	lane := func(lane, product, capacity, par int) string {
		return fmt.Sprintf(`{"lane":%d,"productId":%d,"capacity":%d,"parLevel":%d}`, lane, product, capacity, par)
	}
	plan(7, lane(1, 7, 12, 4)+","+lane(2, 7, 8, 3)+","+lane(3, 3, 10, 2)) // 6 of product 7 are below 7, 2 of product 3 are not below 2
	plan(8, lane(1, 7, 5, 1)+","+lane(2, 5, 5, 0))                        // nothing is there: product 7 is below 1, product 5 not below 0
	plan(9, lane(1, 5, 6, 6)+","+lane(2, 3, 6, 6))
	plan(10, lane(1, 5, 6, 6))
	plan(11, lane(1, 7, 6, 1))
	h.expect(201, h.restock("a", `{"lines":[{"productId":7,"quantity":6},{"productId":3,"quantity":2}]}`))
	h.expect(201, h.send(Restocker, "POST", "/v1/cabinets/11/restocks", `{"lines":[{"productId":7,"quantity":1}]}`, header{keyHeader: "b"}))
	row := func(device int, site string, product, stock, par, bring float64) map[string]any {
		return map[string]any{"deviceId": float64(device), "site": site, "productId": product, "stock": stock, "parLevel": par, "toBring": bring}
	}
	want := []map[string]any{
		row(7, "", 7, 6, 7, 14), row(8, "=HQ,1", 7, 0, 1, 5), row(9, "Airport", 3, 0, 6, 6), row(9, "Airport", 5, 0, 6, 6),
		row(10, "Airport", 5, 0, 6, 6),
	}
	items, pages := h.walk("/v1/restock-list?")
	if diff := cmp.Diff(want, items); diff != "" || pages != 3 {
		t.Errorf("%d pages: %s", pages, diff)
	}
	items, _ = h.walk("/v1/restock-list?site=Airport")
	if diff := cmp.Diff(want[2:], items); diff != "" {
		t.Errorf("one site: %s", diff)
	}
	const header1 = "deviceId,site,productId,stock,parLevel,toBring\r\n"
	const all = header1 + "7,,7,6,7,14\r\n8,\"'=HQ,1\",7,0,1,5\r\n9,Airport,3,0,6,6\r\n9,Airport,5,0,6,6\r\n10,Airport,5,0,6,6\r\n"
	for name, r := range map[string]reply{
		"format":     h.send(Restocker, "GET", "/v1/restock-list?format=csv&limit=1", ""),
		"Accept":     h.send(Restocker, "GET", "/v1/restock-list", "", header{"Accept": "text/csv"}),
		"preference": h.send(Restocker, "GET", "/v1/restock-list", "", header{"Accept": "application/json;q=0.5, text/csv"}),
	} {
		if r.status != 200 || string(r.body) != all || !strings.HasPrefix(r.header.Get("Content-Type"), "text/csv") || r.header.Get("Vary") != "Accept" {
			t.Errorf("%s: %d %s %q", name, r.status, r.header.Get("Content-Type"), r.body)
		}
	}
	if got := string(h.send(Restocker, "GET", "/v1/restock-list?format=csv&site=Full", "").body); got != header1 {
		t.Errorf("a full site: %q", got)
	}
	for name, accept := range map[string]string{"JSON asked": "text/csv;q=0.5,application/json", "anything": "*/*", "a browser": "text/html,*/*;q=0.8"} {
		r := h.send(Restocker, "GET", "/v1/restock-list", "", header{"Accept": accept})
		if r.status != 200 || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", name, r.status, r.header.Get("Content-Type"))
		}
	}
	h.expect(200, h.send(Restocker, "GET", "/v1/restock-list?format=json", "", header{"Accept": "text/csv"}))
	for _, bad := range []string{"format=xml", "site=", "cursor=x", "limit=0"} {
		h.problem(h.expect(422, h.send(Restocker, "GET", "/v1/restock-list?"+bad, "")), "invalid")
	}
}

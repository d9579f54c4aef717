package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestACabinetIsRegisteredAndGetsCredentials(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	made := h.expect(http.StatusCreated, h.send(Operator, "POST", "/v1/cabinets", `{"deviceId":1001,"name":"Lobby","site":"HQ"}`)).json(t)
	if made["deviceId"] != 1001.0 || made["site"] != "HQ" || made["online"] != false || made["lastSeenAt"] != nil ||
		made["locked"] != false || made["temperatureC"] != nil {
		t.Errorf("made %v", made)
	}
	h.problem(h.expect(409, h.send(Operator, "POST", "/v1/cabinets", `{"deviceId":1001,"name":"Lobby"}`)), "duplicate")
	patched := h.expect(200, h.send(Operator, "PATCH", "/v1/cabinets/1001", `{"site":""}`)).json(t)
	if patched["name"] != "Lobby" || patched["site"] != "" {
		t.Errorf("patched %v", patched)
	}
	for _, locked := range []bool{true, false} {
		patched := h.expect(200, h.send(Operator, "PATCH", "/v1/cabinets/1001", fmt.Sprintf(`{"locked":%t}`, locked))).json(t)
		if patched["locked"] != locked || patched["name"] != "Lobby" {
			t.Errorf("patched %v", patched)
		}
	}
	for _, body := range []string{
		`{"deviceId":0,"name":"a"}`, `{"deviceId":9007199254740992,"name":"a"}`, `{"deviceId":1,"name":""}`, `{"name":"a"}`,
		`{"deviceId":"1","name":"a"}`, `{"deviceId":1,"name":"a","online":true}`,
	} {
		h.expect(422, h.send(Operator, "POST", "/v1/cabinets", body))
	}
	for _, body := range []string{
		`{"name":null}`, `{"name":""}`, `{"deviceId":2}`, `{"locked":null}`, `{"locked":1}`, `{"site":"` + strings.Repeat("a", 201) + `"}`,
	} {
		h.expect(422, h.send(Operator, "PATCH", "/v1/cabinets/1001", body))
	}
	r := h.expect(http.StatusCreated, h.send(Admin, "POST", "/v1/cabinets/1001/credentials", ""))
	secret, _ := r.json(t)["secret"].(string)
	if r.json(t)["username"] != "1001" || len(secret) != 64 || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("credentials %s", r.body)
	}
	items, _ := h.walk("/v1/cabinets?")
	if len(items) != 1 || items[0]["secret"] != nil {
		t.Errorf("cabinets %v", items)
	}
}

package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// leastRoles is the table of section 5 of the design, as far as it is built. "" is open to all.
var leastRoles = map[string]Role{
	"GET /v1/products":                              Viewer,
	"POST /v1/products":                             Operator,
	"GET /v1/products/{productId}":                  Viewer,
	"PATCH /v1/products/{productId}":                Operator,
	"GET /v1/cabinets":                              Viewer,
	"POST /v1/cabinets":                             Operator,
	"GET /v1/cabinets/{deviceId}":                   Viewer,
	"PATCH /v1/cabinets/{deviceId}":                 Operator,
	"POST /v1/cabinets/{deviceId}/credentials":      Admin,
	"GET /v1/cabinets/{deviceId}/stock":             Viewer,
	"GET /v1/cabinets/{deviceId}/movements":         Viewer,
	"POST /v1/cabinets/{deviceId}/restocks":         Restocker,
	"POST /v1/door-sessions":                        Restocker,
	"GET /v1/door-sessions/{sessionId}":             Restocker,
	"POST /v1/reservations":                         Operator,
	"GET /v1/reservations":                          Operator,
	"GET /v1/reservations/{reservationId}":          Operator,
	"DELETE /v1/reservations/{reservationId}":       Operator,
	"GET /v1/settlements":                           Viewer,
	"GET /v1/settlements/{deviceId}/{closeEventId}": Viewer,
	"GET /v1/orders":                                Viewer,
	"GET /v1/orders/{orderId}":                      Viewer,
	"POST /v1/orders/{orderId}/reviews":             Operator,
	"GET /v1/reviews":                               Viewer,
	"GET /v1/reviews/{reviewId}":                    Viewer,
	"POST /v1/reviews/{reviewId}/resolution":        Operator,
	"GET /v1/discrepancies":                         Viewer,
	"GET /v1/dead-letters":                          Operator,
	"POST /v1/dead-letters/{id}/retry":              Operator,
	"DELETE /v1/dead-letters/{id}":                  Operator,
	"GET /v1/failed-tasks":                          Operator,
	"POST /v1/failed-tasks/{id}/retry":              Operator,
	"DELETE /v1/failed-tasks/{id}":                  Operator,
	"GET /v1/reconciliations":                       Viewer,
	"POST /v1/reconciliations":                      Operator,
	"GET /v1/reconciliations/{reconciliationId}":    Viewer,
	"GET /v1/tokens":                                Admin,
	"POST /v1/tokens":                               Admin,
	"DELETE /v1/tokens/{id}":                        Admin,
	"GET /v1/cabinets/{deviceId}/planogram":         Viewer,
	"PUT /v1/cabinets/{deviceId}/planogram":         Operator,
	"PUT /v1/epcs/{epc}":                            Operator,
	"DELETE /v1/epcs/{epc}":                         Operator,
	"GET /v1/restock-list":                          Restocker,
	"POST /v1/promotions":                           Operator,
	"GET /v1/promotions":                            Viewer,
	"GET /v1/promotions/{promotionId}":              Viewer,
	"POST /v1/promotions/{promotionId}/transitions": Operator,
	"POST /v1/order-tokens":                         Operator,
	"POST /v1/promotions/{promotionId}/claims":      Operator,
	"GET /v1/claims/{claimId}":                      Operator,
	"DELETE /v1/claims/{claimId}":                   Operator,
	"GET /metrics":                                  Viewer,
	"POST /mqtt/auth":                               brokerSecret,
	"POST /mqtt/acl":                                brokerSecret,
	"GET /healthz":                                  "",
	"GET /readyz":                                   "",
	"GET /openapi.json":                             "",
	"GET /docs":                                     "",
	"GET /docs/page.js":                             "",
	"GET /docs/page.css":                            "",

	"POST /v1/cabinets/{deviceId}/stocktakes":              Restocker,
	"POST /v1/cabinets/{deviceId}/writeoffs":               Restocker,
	"POST /v1/cabinets/{deviceId}/controller-replacements": Operator,
}

// appsMayCall are what role app, which is outside the ladder, may call.
var appsMayCall = map[string]bool{
	"POST /v1/door-sessions": true, "GET /v1/door-sessions/{sessionId}": true,
	"GET /v1/orders": true, "GET /v1/orders/{orderId}": true,
	"POST /v1/order-tokens": true, "POST /v1/promotions/{promotionId}/claims": true,
	"GET /v1/claims/{claimId}": true, "DELETE /v1/claims/{claimId}": true,
	"POST /v1/reservations": true, "GET /v1/reservations": true,
	"GET /v1/reservations/{reservationId}": true, "DELETE /v1/reservations/{reservationId}": true,
}

func TestEveryRouteHasTheRoleOfTheDesign(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	registered := map[string]bool{}
	for _, r := range h.server.routes {
		name := r.method + " " + r.path
		registered[r.method+" "+toEcho.Replace(r.path)] = true
		least, known := leastRoles[name]
		if !known || r.access != (access{least, appsMayCall[name]}) {
			t.Errorf("%s is registered for %+v, the design says %q, apps %t", name, r.access, least, appsMayCall[name])
		}
	}
	if len(h.server.routes) != len(leastRoles) {
		t.Errorf("%d routes are registered, the design has %d", len(h.server.routes), len(leastRoles))
	}
	for _, r := range h.server.echo.Routes() {
		if !registered[r.Method+" "+r.Path] {
			t.Errorf("%s %s got past the registration with roles", r.Method, r.Path)
		}
	}
}

func TestEachRouteAdmitsItsRolesAlone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := strings.NewReplacer("{productId}", "7", "{deviceId}", "7", "{closeEventId}", "x", "{id}", "7", "{orderId}", "7",
		"{reviewId}", "7", "{sessionId}", "7", "{epc}", "3036142C8C008F8000053244")
	for name, least := range leastRoles {
		method, pattern, _ := strings.Cut(name, " ")
		for _, role := range []Role{"", Viewer, Restocker, Operator, Admin, App} {
			r := h.send(role, method, path.Replace(pattern), "")
			want, reaches := "admitted", role.covers(least)
			if role == App {
				reaches = appsMayCall[name]
			}
			switch {
			case least == "":
			case least == brokerSecret: // no token admits to it
				want = "401"
			case role == "":
				want = "401"
			case !reaches:
				want = "403"
			}
			got := "admitted"
			switch r.status {
			case http.StatusUnauthorized:
				got = "401"
				h.problem(r, "unauthorized")
				if r.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: 401 without WWW-Authenticate", name)
				}
			case http.StatusForbidden:
				got = "403"
				h.problem(r, "forbidden")
			case http.StatusInternalServerError, http.StatusMethodNotAllowed:
				t.Errorf("%s as %q: %d %s", name, role, r.status, r.body)
			}
			if got != want {
				t.Errorf("%s as %q: %s (%d), want %s", name, role, got, r.status, want)
			}
		}
	}
}

func TestARouteWithoutARoleDoesNotStart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, role := range []Role{"", App, "owner"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a route for role %q was registered", role)
				}
			}()
			route(h.server, role, huma.Operation{OperationID: "x", Method: "GET", Path: "/x"}, h.server.listProducts)
		}()
	}
}

func TestTheDocumentIsOpenAPI31AndHasEveryRoute(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
			Parameters  []struct{ Name, In string }
			RequestBody *struct{}
			Responses   map[string]struct{ Content map[string]any }
		}
		Components struct{ SecuritySchemes map[string]any }
	}
	r := h.expect(http.StatusOK, h.send("", "GET", "/openapi.json", ""))
	if err := json.Unmarshal(r.body, &document); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(document.OpenAPI, "3.1") || document.Components.SecuritySchemes["bearer"] == nil {
		t.Errorf("openapi %q, security schemes %v", document.OpenAPI, document.Components.SecuritySchemes)
	}
	operations := 0
	for name := range leastRoles {
		method, path, _ := strings.Cut(name, " ")
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		operations++
		op, there := document.Paths[path][strings.ToLower(method)]
		if !there || op.OperationID == "" || len(op.Security) == 0 {
			t.Errorf("%s is missing from the document, or has no id or no security", name)
		}
		for _, segment := range strings.Split(path, "/") {
			param := strings.Trim(segment, "{}")
			if param != segment && !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.Name == param && p.In == "path" }) {
				t.Errorf("%s: path parameter %s is not described", name, param)
			}
		}
		problems := op.Responses["403"].Content["application/problem+json"]
		if problems == nil {
			t.Errorf("%s: 403 is not described as a problem", name)
		}
	}
	described := 0
	for _, operations := range document.Paths {
		described += len(operations)
	}
	if described != operations {
		t.Errorf("%d operations are described, %d are known here", described, operations)
	}
}

func TestTheDocsPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{"/docs", "/docs/page.js", "/docs/page.css"} {
		r := h.expect(http.StatusOK, h.send("", "GET", path, ""))
		if strings.Contains(string(r.body), "//cdn") || strings.Contains(string(r.body), "https://") {
			t.Errorf("%s refers to another host", path)
		}
		if !strings.Contains(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has policy %q", path, r.header.Get("Content-Security-Policy"))
		}
	}
}

package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"doortab/auditlog"
)

const maxBody = 256 << 10 // bytes of a request

// registered is a route as it was registered.
type registered struct {
	method, path string
	access
}

// access says who may call a route: whose role covers least, "" being everybody, and role app where apps is set.
type access struct {
	least Role
	apps  bool
}

func (a access) admits(role Role) bool { return role.covers(a.least) || a.apps && role == App }

const appsToo = "apps" // in an operation's metadata

// forApps opens an operation to role app too, which is outside the ladder. Its handler limits what an app sees.
func forApps(op huma.Operation) huma.Operation { return noted(op, appsToo) }

func noted(op huma.Operation, what string) huma.Operation {
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
	op.Metadata[what] = true
	return op
}

// route registers an operation for those whose role covers least. It panics without a role, as every mistake at
// registration does: the server does not start then.
func route[I, O any](s *Server, least Role, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	if !least.inLadder() {
		panic(fmt.Sprintf("admin: %s %s: role %q is not in the ladder", op.Method, op.Path, least))
	}
	_, apps := op.Metadata[appsToo]
	to := access{least, apps}
	_, opens := any(new(I)).(byShopper)
	op.Middlewares = append(huma.Middlewares{s.admit(to), s.limitCalls(opens), s.checkQuery}, op.Middlewares...)
	op.Security = []map[string][]string{{"bearer": {}}}
	op.Description = fmt.Sprintf("Least role: %s.", least)
	if apps {
		op.Description = fmt.Sprintf("Role app, or at least %s.", least)
	}
	op.MaxBodyBytes = maxBody
	op.BodyReadTimeout = requestFor
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	s.note(registered{op.Method, op.Path, to})
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{} // this map, so that it can be added to
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		if err := s.limitShopper(ctx, in); err != nil {
			return nil, s.problem(ctx, err)
		}
		out, err := handler(auditlog.WithActor(ctx, "token:"+principalOf(ctx).TokenID), in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
	op.Responses[strconv.Itoa(http.StatusTooManyRequests)].Headers = map[string]*huma.Param{
		"Retry-After": {Description: "Seconds to wait, at least 1.", Schema: &huma.Schema{Type: "integer"}},
	}
}

// open registers a plain handler that needs no token.
func (s *Server) open(path string, handler echo.HandlerFunc) {
	s.note(registered{method: http.MethodGet, path: path})
	s.echo.GET(path, handler)
}

func (s *Server) note(r registered) {
	s.routes = append(s.routes, r)
	s.metrics.know(r.method, r.path)
}

// admit lets a request through whose token has access.
func (s *Server) admit(to access) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		by, err := s.tokens.authorize(c.Context(), c.Header("Authorization"), to)
		if err != nil {
			s.fail(err, humaecho.Unwrap(c))
			return
		}
		next(huma.WithValue(c, principalKey{}, by))
	}
}

// unescapeParams: echo matches the path as it was sent, and so gives %3A where a colon was meant.
func unescapeParams(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawPath == "" {
			return next(c)
		}
		values := c.ParamValues()
		for i, value := range values {
			if plain, err := url.PathUnescape(value); err == nil {
				values[i] = plain
			}
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

// describe is the document that routes add themselves to.
func describe(currency string) huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Doortab", Version: "1",
				Description: "Settles what shoppers take from unmanned vending cabinets. Money is in minor units of " + currency + ".",
			},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer"}},
			},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{finish},
	}
}

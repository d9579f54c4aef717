package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
)

const maxBody = 256 << 10 // bytes of a request

// registered is a route as it was registered; least is "" where it is open to all.
type registered struct {
	method, path string
	least        Role
}

// route registers an operation for those whose role covers least. It panics without a role, as every mistake at
// registration does: the server does not start then.
func route[I, O any](s *Server, least Role, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	if !least.inLadder() {
		panic(fmt.Sprintf("admin: %s %s: role %q is not in the ladder", op.Method, op.Path, least))
	}
	op.Middlewares = append(huma.Middlewares{s.admit(least)}, op.Middlewares...)
	op.Security = []map[string][]string{{"bearer": {}}}
	op.Description = fmt.Sprintf("Least role: %s.", least)
	op.MaxBodyBytes = maxBody
	op.BodyReadTimeout = requestFor
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable)
	s.note(op.Method, op.Path, least)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
}

// open registers a plain handler that needs no token.
func (s *Server) open(path string, handler echo.HandlerFunc) {
	s.note(http.MethodGet, path, "")
	s.echo.GET(path, handler)
}

func (s *Server) note(method, path string, least Role) {
	s.routes = append(s.routes, registered{method, path, least})
	s.metrics.know(method, path)
}

// admit lets a request through whose token has a role that covers least.
func (s *Server) admit(least Role) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		by, err := s.tokens.authorize(c.Context(), c.Header("Authorization"), least)
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

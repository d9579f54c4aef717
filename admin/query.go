package admin

import (
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
)

// checkQuery refuses parameters that huma would pass over: a misspelt filter, one that is there twice or one that a caller's
// empty variable leaves blank must not show everything.
func (s *Server) checkQuery(c huma.Context, next func(huma.Context)) {
	url := c.URL()
	query := url.Query()
	var errs []*huma.ErrorDetail
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if wrong := wrongParameter(c.Operation(), name, query[name]); wrong != "" {
			errs = append(errs, &huma.ErrorDetail{Message: wrong, Location: "query." + name})
		}
	}
	if len(errs) > 0 {
		s.fail(&huma.ErrorModel{
			Status: http.StatusUnprocessableEntity, Detail: "validation failed", Errors: errs,
		}, humaecho.Unwrap(c))
		return
	}
	next(c)
}

// wrongParameter says what is wrong with a parameter; "" for nothing. An empty cursor is the beginning.
func wrongParameter(op *huma.Operation, name string, values []string) string {
	known := slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Name == name })
	switch {
	case !known:
		return "is not a parameter of this path"
	case len(values) > 1:
		return "is there twice"
	case values[0] == "" && name != "cursor":
		return "give a value or leave it out"
	default:
		return ""
	}
}

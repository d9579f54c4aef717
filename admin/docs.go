package admin

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed docs
var docs embed.FS

// docsPolicy lets the page load and call nothing but this server.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// docsRoutes come last: the document is written once, with every route that there is.
func (s *Server) docsRoutes() {
	document, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		panic(fmt.Sprintf("admin: OpenAPI document: %v", err))
	}
	s.open("/openapi.json", func(c echo.Context) error { return c.Blob(http.StatusOK, "application/json", document) })
	s.asset("/docs", "docs/index.html", "text/html; charset=utf-8")
	s.asset("/docs/page.js", "docs/page.js", "text/javascript; charset=utf-8")
	s.asset("/docs/page.css", "docs/page.css", "text/css; charset=utf-8")
}

func (s *Server) asset(path, name, contentType string) {
	content, err := docs.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("admin: %v", err))
	}
	s.open(path, func(c echo.Context) error {
		c.Response().Header().Set("Content-Security-Policy", docsPolicy)
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return c.Blob(http.StatusOK, contentType, content)
	})
}

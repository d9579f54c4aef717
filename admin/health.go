package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const readyFor = 2 * time.Second

func (s *Server) healthRoutes(registry *prometheus.Registry) {
	s.open("/healthz", func(c echo.Context) error { return c.JSON(http.StatusOK, map[string]string{"status": "ok"}) })
	s.open("/readyz", s.readyz)

	shown := echo.WrapHandler(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	viewers := access{least: Viewer}
	s.note(registered{http.MethodGet, "/metrics", viewers})
	s.echo.GET("/metrics", func(c echo.Context) error {
		if _, err := s.tokens.authorize(c.Request().Context(), c.Request().Header.Get("Authorization"), viewers); err != nil {
			return err
		}
		return shown(c)
	})
}

func (s *Server) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyFor)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return errors.Join(errNotReady, err)
	}
	return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
}

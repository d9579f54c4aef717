// Package admin is the REST API: products, cabinets, stock, restocks, and what became of every event, for people and
// programs with a bearer token.
//
// Each route is registered with the least role that may call it, answers errors as RFC 9457 problems and describes
// itself in the OpenAPI document. The package is the only one that knows echo and huma.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"doortab/claims"
	"doortab/database"
	"doortab/fleet"
	"doortab/inventory"
	"doortab/ratelimit"
	"doortab/settlement"
	"doortab/tasks"
)

const (
	requestFor  = 20 * time.Second // how long one request may take
	shutdownFor = 5 * time.Second
)

// Config holds what a [Server] needs.
type Config struct {
	DB         *database.DB
	Settlement *settlement.Service
	Claims     *claims.Service
	// Unlock publishes to a cabinet at once, QoS 0; nil: no door can be opened.
	Unlock func(ctx context.Context, topic string, payload []byte) error
	// Ready returns nil where database and broker can be reached; nil: the database is asked.
	Ready func(context.Context) error
	// Metrics is shown at /metrics and gets the server's own; nil: a new one.
	Metrics *prometheus.Registry
	// Currency is the ISO 4217 code of every price.
	Currency string
	// Hooks answers an external broker's questions; without a secret there are none.
	Hooks BrokerHooks
	// Tasks ends door sessions at their second, and keeps the tasks that failed; nil: there are none.
	Tasks *tasks.Queue
	// Limits says who calls too often; nil: nobody does.
	Limits *ratelimit.Limiter
	// Proxies are believed about whom they forward, see X-Forwarded-For.
	Proxies []netip.Prefix
	Logger  *slog.Logger // nil: slog.Default
}

// Server is the REST API.
type Server struct {
	db         *database.DB
	settlement *settlement.Service
	claims     *claims.Service
	products   *inventory.Catalogue
	cabinets   *fleet.Registry
	tokens     *tokenCache
	unlock     func(ctx context.Context, topic string, payload []byte) error
	ready      func(context.Context) error
	tasks      *tasks.Queue
	limits     *ratelimit.Limiter
	proxies    []netip.Prefix
	log        *slog.Logger
	metrics    *metrics

	echo   *echo.Echo
	api    huma.API
	routes []registered
}

// New makes a server with all its routes.
func New(c Config) *Server {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Ready == nil {
		c.Ready = c.DB.Ping
	}
	if c.Unlock == nil {
		c.Unlock = func(context.Context, string, []byte) error { return errors.New("there is no broker") }
	}
	s := &Server{
		db: c.DB, settlement: c.Settlement, claims: c.Claims, unlock: c.Unlock, ready: c.Ready, log: c.Logger,
		products: inventory.NewCatalogue(c.DB), cabinets: fleet.NewRegistry(c.DB),
		tokens: newTokenCache(c.DB), tasks: c.Tasks, limits: c.Limits, proxies: c.Proxies,
		metrics: newMetrics(c.Metrics), echo: echo.New(),
	}
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.observe, unescapeParams)
	s.api = humaecho.New(s.echo, describe(c.Currency))

	s.productRoutes()
	s.cabinetRoutes()
	s.planogramRoutes()
	s.epcRoutes()
	s.stockRoutes()
	s.restockListRoutes()
	s.restockRoutes()
	s.stocktakeRoutes()
	s.writeoffRoutes()
	s.controllerRoutes()
	s.doorRoutes()
	s.reservationRoutes()
	s.settlementRoutes()
	s.orderRoutes()
	s.reviewRoutes()
	s.discrepancyRoutes()
	s.promotionRoutes()
	s.claimRoutes()
	s.deadLetterRoutes()
	s.reconciliationRoutes()
	s.failedTaskRoutes()
	s.tokenRoutes()
	s.brokerRoutes(c.Hooks)
	s.healthRoutes(c.Metrics)
	s.docsRoutes()
	return s
}

// Handler returns the API for a server of the caller's.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.answer) }

// answer takes HEAD for GET, as RFC 9110 wants it; net/http, which knows better, leaves the body out.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.WithContext(r.Context())
		r.Method = http.MethodGet
	}
	s.echo.ServeHTTP(w, r)
}

// Serve answers on l until ctx ends, and returns when the requests that were running then are answered or 5 s have
// passed. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       requestFor + 5*time.Second,
		WriteTimeout:      requestFor + 10*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownFor)
	defer cancel()
	err := server.Shutdown(stop)
	if err != nil {
		err = errors.Join(fmt.Errorf("HTTP requests still running after %s: %w", shutdownFor, err), server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

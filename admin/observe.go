package admin

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

const requestIDHeader = "X-Request-Id"

var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

type requestIDKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// observe goes around every request: its id, its time, a panic, its place in the metrics.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		begun := time.Now()
		id := c.Request().Header.Get(requestIDHeader)
		if !goodRequestID.MatchString(id) {
			id = uuid.NewString()
		}
		c.Response().Header().Set(requestIDHeader, id)
		ctx, cancel := context.WithTimeout(context.WithValue(c.Request().Context(), requestIDKey{}, id), requestFor)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		if err := guarded(next, c); err != nil {
			s.fail(err, c)
		}
		s.metrics.request(c, begun)
		return nil
	}
}

// guarded turns a panic into an error.
func guarded(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			panic(cause)
		default:
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return next(c)
}

// metrics counts requests. Labels come from what is registered, never from what a stranger sends.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	known    map[string]bool // method and path as echo has it
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "doortab_http_requests_total", Help: "Requests answered.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "doortab_http_request_duration_seconds", Help: "Time from a request's header to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"route", "method"}),
		known: map[string]bool{},
	}
	registry.MustRegister(m.requests, m.duration)
	return m
}

var toEcho = strings.NewReplacer("{", ":", "}", "")

func (m *metrics) know(method, path string) { m.known[method+" "+toEcho.Replace(path)] = true }

func (m *metrics) request(c echo.Context, begun time.Time) {
	route, method := c.Path(), c.Request().Method
	if !m.known[method+" "+route] {
		route, method = "other", "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(c.Response().Status)).Inc()
	m.duration.WithLabelValues(route, method).Observe(time.Since(begun).Seconds())
}

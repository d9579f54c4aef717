package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"doortab/claims"
	"doortab/database"
	"doortab/deadletter"
	"doortab/door"
	"doortab/fleet"
	"doortab/inventory"
	"doortab/promotion"
	"doortab/ratelimit"
	"doortab/reconcile"
	"doortab/reservation"
	"doortab/settlement"
	"doortab/tasks"
)

// typePrefix starts the stable URIs by which programs tell problems apart (RFC 9457, section 3.1.1).
const typePrefix = "urn:doortab:problem:"

// typeOf is a problem's type where its status says it all.
var typeOf = map[int]string{
	http.StatusBadRequest:            "bad-request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not-found",
	http.StatusMethodNotAllowed:      "method-not-allowed",
	http.StatusRequestTimeout:        "timeout",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "too-large",
	http.StatusUnsupportedMediaType:  "unsupported-media-type",
	http.StatusUnprocessableEntity:   "invalid",
	http.StatusTooManyRequests:       "too-many-requests",
	http.StatusServiceUnavailable:    "unavailable",
	http.StatusInternalServerError:   "internal",
}

// Errors of the API itself.
var (
	errNoToken        = errors.New("send a valid token as Authorization: Bearer <token>")
	errNoBrokerSecret = errors.New("send the broker's secret as Authorization: Bearer <secret>")
	errForbidden      = errors.New("the token's role does not reach this")
	errTokenGone      = errors.New("no such token")
	errBadCursor      = errors.New("cursor is not one that this list gave out")
	errBadToken       = errors.New("not valid")
	errWholeArchive   = errors.New("archived orders are found by deviceId or userId: give one")
	errRepeated       = errors.New("a product may appear only once")
	errNoKey          = errors.New("send an Idempotency-Key header of 1 to 255 visible characters")
	errKeyReused      = errors.New("this Idempotency-Key was used with another body: take a new one")
	errKeyRunning     = errors.New("the first request with this Idempotency-Key is still running: try again")
	errNotReady       = errors.New("database or broker cannot be reached: the server's log says which")
	errMissingPath    = errors.New("nothing here: see /openapi.json for what there is")
)

// outcomes says what every error that a caller can act on becomes.
var outcomes = []struct {
	err    error
	status int
	kind   string // "": as the status says
}{
	{errNoToken, http.StatusUnauthorized, ""},
	{errNoBrokerSecret, http.StatusUnauthorized, ""},
	{errForbidden, http.StatusForbidden, ""},
	{errMissingPath, http.StatusNotFound, ""},
	{errTokenGone, http.StatusNotFound, ""},
	{inventory.ErrNotFound, http.StatusNotFound, ""},
	{fleet.ErrNotFound, http.StatusNotFound, ""},
	{settlement.ErrNotFound, http.StatusNotFound, ""},
	{door.ErrNotFound, http.StatusNotFound, ""},
	{deadletter.ErrNotFound, http.StatusNotFound, ""},
	{reconcile.ErrNotFound, http.StatusNotFound, ""},
	{tasks.ErrNotFound, http.StatusNotFound, ""},
	{reservation.ErrNotFound, http.StatusNotFound, ""},
	{reservation.ErrTooLittle, http.StatusConflict, "too-little-stock"},
	{reservation.ErrOver, http.StatusConflict, "reservation-over"},
	{reservation.ErrInvalid, http.StatusUnprocessableEntity, ""},
	{inventory.ErrDuplicate, http.StatusConflict, "duplicate"},
	{fleet.ErrDuplicate, http.StatusConflict, "duplicate"},
	{fleet.ErrOffline, http.StatusConflict, "cabinet-offline"},
	{fleet.ErrLocked, http.StatusConflict, "cabinet-locked"},
	{door.ErrCabinetBusy, http.StatusConflict, "cabinet-busy"},
	{door.ErrUserBusy, http.StatusConflict, "user-busy"},
	{settlement.ErrStillDead, http.StatusConflict, "still-dead"},
	{claims.ErrUnreadable, http.StatusConflict, "still-dead"},
	{tasks.ErrStillFails, http.StatusConflict, "still-fails"},
	{settlement.ErrPayloadCut, http.StatusConflict, "payload-cut"},
	{settlement.ErrDecided, http.StatusConflict, "decided"},
	{settlement.ErrUnderReview, http.StatusConflict, "under-review"},
	{settlement.ErrOrderClosed, http.StatusConflict, "order-closed"},
	{settlement.ErrInvalid, http.StatusUnprocessableEntity, ""},
	{inventory.ErrCountedLater, http.StatusConflict, "counted-later"},
	{inventory.ErrTagNotHere, http.StatusConflict, "tag-not-here"},
	{promotion.ErrNotFound, http.StatusNotFound, ""},
	{promotion.ErrNoClaim, http.StatusNotFound, ""},
	{promotion.ErrBadTransition, http.StatusConflict, "bad-transition"},
	{promotion.ErrClaimOver, http.StatusConflict, "claim-over"},
	{promotion.SoldOut, http.StatusConflict, "sold-out"},
	{promotion.LimitReached, http.StatusConflict, "limit-reached"},
	{promotion.TokenUsed, http.StatusConflict, "token-used"},
	{promotion.TokenInvalid, http.StatusConflict, "order-token-invalid"},
	{promotion.TokenExpired, http.StatusConflict, "order-token-invalid"},
	{promotion.NotLive, http.StatusConflict, "not-live"},
	{promotion.NoClaimNeeded, http.StatusConflict, "no-claim-needed"},
	{promotion.ErrInvalid, http.StatusUnprocessableEntity, ""},
	{promotion.ErrUnknownProduct, http.StatusUnprocessableEntity, "unknown-product"},
	{claims.ErrPending, http.StatusConflict, "claim-pending"},
	{claims.ErrBusy, http.StatusServiceUnavailable, ""},
	{claims.ErrClosed, http.StatusServiceUnavailable, ""},
	{errKeyRunning, http.StatusConflict, "in-progress"},
	{errNoKey, http.StatusBadRequest, "idempotency-key"},
	{errKeyReused, http.StatusUnprocessableEntity, "idempotency-key-reused"},
	{inventory.ErrInvalid, http.StatusUnprocessableEntity, ""},
	{inventory.ErrUnknownProduct, http.StatusUnprocessableEntity, "unknown-product"},
	{inventory.ErrBeyondSequence, http.StatusUnprocessableEntity, "beyond-sequence"},
	{fleet.ErrInvalid, http.StatusUnprocessableEntity, ""},
	{errBadCursor, http.StatusUnprocessableEntity, ""},
	{errBadToken, http.StatusUnprocessableEntity, ""},
	{errBadEPC, http.StatusUnprocessableEntity, ""},
	{errWholeArchive, http.StatusUnprocessableEntity, ""},
	{errRepeated, http.StatusUnprocessableEntity, ""},
	{ratelimit.ErrTooMany, http.StatusTooManyRequests, ""},
	{tasks.ErrUnavailable, http.StatusServiceUnavailable, ""},
	{errNotReady, http.StatusServiceUnavailable, ""},
}

// modelOf finds what an error becomes. What the table does not have is ours to mend, and its text is kept inside.
func modelOf(err error) *huma.ErrorModel {
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			detail := err.Error()
			if o.status >= http.StatusInternalServerError { // what lies behind it may name addresses
				detail = o.err.Error()
			}
			return complete(&huma.ErrorModel{Status: o.status, Type: typed(o.kind), Detail: detail})
		}
	}
	var known *huma.ErrorModel
	var echoed *echo.HTTPError
	switch {
	case errors.As(err, &known):
		return complete(known)
	case errors.As(err, &echoed):
		return complete(&huma.ErrorModel{Status: echoed.Code, Detail: fmt.Sprint(echoed.Message)})
	case database.ClassOf(err) != database.Permanent:
		return complete(&huma.ErrorModel{Status: http.StatusServiceUnavailable})
	default:
		return complete(&huma.ErrorModel{Status: http.StatusInternalServerError})
	}
}

func typed(kind string) string {
	if kind == "" {
		return ""
	}
	return typePrefix + kind
}

// complete adds what every problem has and takes out what none may show.
func complete(m *huma.ErrorModel) *huma.ErrorModel {
	if m.Type == "" {
		m.Type = "about:blank"
		if kind := typeOf[m.Status]; kind != "" {
			m.Type = typePrefix + kind
		}
	}
	m.Title = http.StatusText(m.Status)
	switch {
	case m.Status == http.StatusServiceUnavailable:
		m.Detail, m.Errors = cmp.Or(m.Detail, "Try again in a moment."), nil
	case m.Status >= http.StatusInternalServerError:
		m.Detail, m.Errors = "Something went wrong here; the server's log has it under this answer's X-Request-Id.", nil
	}
	for _, detail := range m.Errors {
		detail.Value = nil // may be a secret
	}
	return m
}

// finish is huma's last look at an answer: its own errors become problems of ours.
func finish(_ huma.Context, _ string, v any) (any, error) {
	if m, ok := v.(*huma.ErrorModel); ok {
		return complete(m), nil
	}
	return v, nil
}

// headersOf are the headers that an error comes with once it is a problem.
func headersOf(status int, err error) http.Header {
	var early *ratelimit.Refusal
	switch {
	case status == http.StatusUnauthorized:
		return http.Header{"Www-Authenticate": {`Bearer realm="doortab"`}}
	case errors.As(err, &early):
		return http.Header{"Retry-After": {strconv.Itoa(early.Seconds())}}
	case status == http.StatusServiceUnavailable:
		return http.Header{"Retry-After": {"1"}}
	default:
		return nil
	}
}

// problem turns an error of a handler into what huma answers, and logs those that are ours to mend.
func (s *Server) problem(ctx context.Context, err error) error {
	m := modelOf(err)
	s.logFailure(ctx, m.Status, err)
	var carried huma.HeadersError
	headers := headersOf(m.Status, err)
	if errors.As(err, &carried) {
		return huma.ErrorWithHeaders(err, headers)
	}
	return huma.ErrorWithHeaders(m, headers)
}

// fail answers an error outside huma: echo's own, a panic, a request that was not admitted.
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	if errors.Is(err, echo.ErrNotFound) {
		err = errMissingPath
	}
	m := modelOf(err)
	s.logFailure(c.Request().Context(), m.Status, err)
	body, marshalErr := marshal(m)
	if marshalErr != nil {
		s.log.Error("Problem can't be written as JSON.", "error", marshalErr)
	}
	for name, values := range headersOf(m.Status, err) {
		c.Response().Header()[name] = values
	}
	if allow := c.Response().Header().Get(echo.HeaderAllow); strings.Contains(allow, http.MethodGet) {
		c.Response().Header().Set(echo.HeaderAllow, allow+", "+http.MethodHead)
	}
	if err := c.Blob(m.Status, "application/problem+json", body); err != nil {
		s.log.Debug("Answer can't be sent.", "error", err)
	}
}

func (s *Server) logFailure(ctx context.Context, status int, err error) {
	if status < http.StatusInternalServerError || ctx.Err() != nil {
		return
	}
	s.log.Error("Request failed.", "status", status, "request", requestID(ctx), "error", err)
}

package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/inventory"
	"doortab/reservation"
	"doortab/settlement"
	"doortab/tasks"
)

type reservationView struct {
	ReservationID string                `json:"reservationId"`
	DeviceID      int64                 `json:"deviceId"`
	UserID        int64                 `json:"userId"`
	State         reservation.State     `json:"state" enum:"held,used,returned,expired"`
	Lines         []reservationLineView `json:"lines" nullable:"false"`
	Short         bool                  `json:"short" doc:"Whether a line is short."`
	Until         time.Time             `json:"until"`
	CreatedAt     time.Time             `json:"createdAt"`
}

type reservationLineView struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
	Left      int64 `json:"left" doc:"What the shopper has not taken; once it is over, what was given back."`
	Short     int64 `json:"short" doc:"Of these, units that the books don't have for it: others took them, or they were written off."`
}

func viewReservation(r reservation.Reservation) reservationView {
	lines := make([]reservationLineView, len(r.Lines))
	for i, line := range r.Lines {
		lines[i] = reservationLineView(line)
	}
	return reservationView{
		ReservationID: settlement.FormatID(r.ReservationID), DeviceID: r.DeviceID, UserID: r.UserID, State: r.State,
		Lines: lines, Short: r.Short(), Until: r.Until, CreatedAt: r.CreatedAt,
	}
}

type reserveInput struct {
	Body struct {
		DeviceID int64         `json:"deviceId" minimum:"1" maximum:"9007199254740991"`
		UserID   int64         `json:"userId" minimum:"1" maximum:"9007199254740991"`
		Lines    []reserveLine `json:"lines" minItems:"1" maxItems:"100" nullable:"false"`
		Until    time.Time     `json:"until" doc:"At most 7 days ahead."`
	}
}

func (in *reserveInput) shopper() int64 { return in.Body.UserID }

type reserveLine struct {
	ProductID int64 `json:"productId" minimum:"1" maximum:"9007199254740991"`
	Quantity  int64 `json:"quantity" minimum:"1" maximum:"1000"`
}

type reservationsInput struct {
	PageInput
	DeviceID int64             `query:"deviceId" minimum:"1" maximum:"9007199254740991"`
	UserID   int64             `query:"userId" minimum:"1" maximum:"9007199254740991"`
	State    reservation.State `query:"state" enum:"held,used,returned,expired"`
}

type reservationPath struct {
	ReservationID string `path:"reservationId" maxLength:"64"`
}

func (s *Server) reservationRoutes() {
	changeRoute(s, Operator, withoutKeyToo(forApps(huma.Operation{
		OperationID: "createReservation", Method: http.MethodPost, Path: "/v1/reservations", DefaultStatus: http.StatusCreated,
		Summary: "Keep units of a cabinet for a shopper: all lines or none", Errors: []int{http.StatusNotFound},
	})), s.createReservation)
	route(s, Operator, forApps(huma.Operation{
		OperationID: "listReservations", Method: http.MethodGet, Path: "/v1/reservations",
		Summary: "List reservations, the newest first; an app sees its own",
	}), s.listReservations)
	route(s, Operator, forApps(huma.Operation{
		OperationID: "getReservation", Method: http.MethodGet, Path: "/v1/reservations/{reservationId}",
		Summary: "What is left of a reservation, and whether it is short", Errors: []int{http.StatusNotFound},
	}), s.getReservation)
	route(s, Operator, forApps(huma.Operation{
		OperationID: "returnReservation", Method: http.MethodDelete, Path: "/v1/reservations/{reservationId}",
		Summary: "Give back what is left of a reservation", DefaultStatus: http.StatusOK,
		Errors: []int{http.StatusNotFound, http.StatusConflict},
	}), s.returnReservation)
}

func (s *Server) createReservation(c change, in *reserveInput) (*reservationView, error) {
	if err := checkLines(c, in.Body.DeviceID, in.Body.Lines, func(l reserveLine) int64 { return l.ProductID }); err != nil {
		return nil, err
	}
	lines, ids := make([]reservation.RequestLine, len(in.Body.Lines)), make([]int64, len(in.Body.Lines))
	for i, line := range in.Body.Lines {
		lines[i], ids[i] = reservation.RequestLine(line), line.ProductID
	}
	known, err := inventory.KnownProducts(c.tx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !known[id] {
			return nil, fmt.Errorf("product %d: %w", id, inventory.ErrUnknownProduct)
		}
	}
	made, err := reservation.Create(c.tx, reservation.Request{
		DeviceID: in.Body.DeviceID, UserID: in.Body.UserID, App: c.by.app(), Lines: lines, Until: in.Body.Until,
	}, c.now)
	if err != nil {
		return nil, err
	}
	view := viewReservation(made)
	c.afterCommit(func(context.Context) { s.tasks.Schedule(tasks.Reservation, view.ReservationID, made.Until) })
	return &view, nil
}

func (s *Server) listReservations(ctx context.Context, in *reservationsInput) (*pageOutput[reservationView], error) {
	filter := reservation.Filter{DeviceID: in.DeviceID, UserID: in.UserID, State: in.State, App: principalOf(ctx).app()}
	return readPage(in.PageInput, func(after *idPlace, limit int) ([]reservation.Reservation, error) {
		return reservation.List(ctx, s.db, filter, after.from(), limit)
	}, func(r reservation.Reservation) idPlace { return idPlace{r.ReservationID} }, viewReservation)
}

func (s *Server) getReservation(ctx context.Context, in *reservationPath) (*struct{ Body reservationView }, error) {
	id, err := parseID("reservation", in.ReservationID)
	if err != nil {
		return nil, err
	}
	r, err := reservation.Read(ctx, s.db, id, principalOf(ctx).app())
	return &struct{ Body reservationView }{viewReservation(r)}, err
}

// returnReservation needs no Idempotency-Key: a second time it changes nothing.
func (s *Server) returnReservation(ctx context.Context, in *reservationPath) (*struct{ Body reservationView }, error) {
	id, err := parseID("reservation", in.ReservationID)
	if err != nil {
		return nil, err
	}
	err = s.db.InTx(ctx, func(tx *gorm.DB) error { return reservation.Return(tx, id, principalOf(ctx).app(), database.Now()) })
	if err != nil {
		return nil, err
	}
	return s.getReservation(ctx, in)
}

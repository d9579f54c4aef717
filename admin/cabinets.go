package admin

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/fleet"
)

type cabinetView struct {
	DeviceID     int64      `json:"deviceId"`
	Name         string     `json:"name"`
	Site         string     `json:"site"`
	Locked       bool       `json:"locked" doc:"No door session opens it."`
	Online       bool       `json:"online"`
	LastSeenAt   *time.Time `json:"lastSeenAt" doc:"When it last said that it is there; null: never."`
	TemperatureC *float64   `json:"temperatureC" doc:"As it said last, in degrees Celsius; null: never."`
}

func viewCabinet(c fleet.Cabinet) cabinetView {
	return cabinetView{c.DeviceID, c.Name, c.Site, c.Locked, c.Online, c.LastSeenAt, c.TemperatureC}
}

type cabinetOutput struct{ Body cabinetView }

// CabinetPath names a cabinet.
type CabinetPath struct {
	DeviceID int64 `path:"deviceId" minimum:"1" maximum:"9007199254740991"`
}

type createCabinet struct {
	Body struct {
		DeviceID int64  `json:"deviceId" minimum:"1" maximum:"9007199254740991"`
		Name     string `json:"name" minLength:"1" maxLength:"200"`
		Site     string `json:"site,omitempty" maxLength:"200"`
	}
}

type patchCabinet struct {
	CabinetPath
	Body struct {
		Name changed[string] `json:"name,omitzero" minLength:"1" maxLength:"200"`
		Site changed[string] `json:"site,omitzero" maxLength:"200"`

		Locked changed[bool] `json:"locked,omitzero" doc:"True: no door session opens it. Its close events settle all the same."`
	}
}

type credentialsOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		Username string `json:"username"`
		Secret   string `json:"secret" doc:"Shown this once."`
	}
}

func (s *Server) cabinetRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listCabinets", Method: http.MethodGet, Path: "/v1/cabinets", Summary: "List cabinets",
	}, s.listCabinets)
	route(s, Operator, huma.Operation{
		OperationID: "createCabinet", Method: http.MethodPost, Path: "/v1/cabinets", Summary: "Register a cabinet",
		DefaultStatus: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, s.createCabinet)
	route(s, Viewer, huma.Operation{
		OperationID: "getCabinet", Method: http.MethodGet, Path: "/v1/cabinets/{deviceId}", Summary: "Read a cabinet",
		Errors: []int{http.StatusNotFound},
	}, s.getCabinet)
	route(s, Operator, huma.Operation{
		OperationID: "patchCabinet", Method: http.MethodPatch, Path: "/v1/cabinets/{deviceId}", Summary: "Change a cabinet",
		Errors: []int{http.StatusNotFound},
	}, s.patchCabinet)
	route(s, Admin, huma.Operation{
		OperationID: "createCredentials", Method: http.MethodPost, Path: "/v1/cabinets/{deviceId}/credentials",
		Summary: "Give a cabinet a new secret; the old one stops within a minute", DefaultStatus: http.StatusCreated,
		Errors: []int{http.StatusNotFound},
	}, s.createCredentials)
}

func (s *Server) listCabinets(ctx context.Context, in *PageInput) (*pageOutput[cabinetView], error) {
	return readPage(*in, func(after *idPlace, limit int) ([]fleet.Cabinet, error) {
		return s.cabinets.List(ctx, after.from(), limit)
	}, func(c fleet.Cabinet) idPlace { return idPlace{c.DeviceID} }, viewCabinet)
}

func (s *Server) createCabinet(ctx context.Context, in *createCabinet) (*cabinetOutput, error) {
	c, err := s.cabinets.Register(ctx, fleet.Cabinet{DeviceID: in.Body.DeviceID, Name: in.Body.Name, Site: in.Body.Site})
	return &cabinetOutput{viewCabinet(c)}, err
}

func (s *Server) getCabinet(ctx context.Context, in *CabinetPath) (*cabinetOutput, error) {
	c, err := s.cabinets.Cabinet(ctx, in.DeviceID)
	return &cabinetOutput{viewCabinet(c)}, err
}

func (s *Server) patchCabinet(ctx context.Context, in *patchCabinet) (*cabinetOutput, error) {
	c, err := s.cabinets.Patch(ctx, in.DeviceID, func(c *fleet.Cabinet) {
		setIf(&c.Name, in.Body.Name.value)
		setIf(&c.Site, in.Body.Site.value)
		setIf(&c.Locked, in.Body.Locked.value)
	})
	return &cabinetOutput{viewCabinet(c)}, err
}

func (s *Server) createCredentials(ctx context.Context, in *CabinetPath) (*credentialsOutput, error) {
	secret, err := s.cabinets.RotateSecret(ctx, in.DeviceID)
	out := &credentialsOutput{CacheControl: "no-store"}
	out.Body.Username, out.Body.Secret = strconv.FormatInt(in.DeviceID, 10), secret
	return out, err
}

package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/fleet"
)

type controllerOutput struct {
	Body struct {
		DeviceID int64 `json:"deviceId"`
		Epoch    int   `json:"epoch" doc:"How many controllers were replaced."`
	}
}

func (s *Server) controllerRoutes() {
	route(s, Operator, huma.Operation{
		OperationID: "replaceController", Method: http.MethodPost, Path: "/v1/cabinets/{deviceId}/controller-replacements",
		Summary: "Start a new sequence of events, for a new controller", DefaultStatus: http.StatusCreated,
		Errors: []int{http.StatusNotFound},
	}, s.replaceController)
}

// replaceController needs no Idempotency-Key: a sequence in which nothing has come yet is not replaced.
func (s *Server) replaceController(ctx context.Context, in *CabinetPath) (*controllerOutput, error) {
	out := &controllerOutput{}
	out.Body.DeviceID = in.DeviceID
	err := s.db.InTx(ctx, func(tx *gorm.DB) error {
		before, after, err := fleet.ReplaceController(tx, in.DeviceID)
		out.Body.Epoch = after.Epoch
		if err != nil || before.Epoch == after.Epoch {
			return err
		}
		return auditlog.Write(tx, auditlog.Entry{
			Action: "controller.replace", Target: fmt.Sprintf("cabinet %d", in.DeviceID), Before: before, After: after,
		}, database.Now())
	})
	return out, err
}

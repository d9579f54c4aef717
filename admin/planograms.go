package admin

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/fleet"
	"doortab/inventory"
)

type laneView struct {
	Lane      int64 `json:"lane" minimum:"1" maximum:"2147483647"`
	ProductID int64 `json:"productId" minimum:"1" maximum:"9007199254740991"`
	Capacity  int64 `json:"capacity" minimum:"0" maximum:"100000" doc:"Units that fit."`
	ParLevel  int64 `json:"parLevel" minimum:"0" maximum:"100000" doc:"Units below which it is to be filled; at most capacity."`
}

type planogramView struct {
	Lanes []laneView `json:"lanes" maxItems:"1000" nullable:"false"`
}

type planogramOutput struct{ Body planogramView }

type putPlanogram struct {
	CabinetPath
	Body planogramView
}

func viewPlanogram(lanes []inventory.Lane) *planogramOutput {
	out := &planogramOutput{planogramView{make([]laneView, len(lanes))}}
	for i, l := range lanes {
		out.Body.Lanes[i] = laneView(l)
	}
	return out
}

func (s *Server) planogramRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "getPlanogram", Method: http.MethodGet, Path: "/v1/cabinets/{deviceId}/planogram",
		Summary: "Which product each lane of a cabinet holds", Errors: []int{http.StatusNotFound},
	}, s.getPlanogram)
	route(s, Operator, huma.Operation{
		OperationID: "putPlanogram", Method: http.MethodPut, Path: "/v1/cabinets/{deviceId}/planogram",
		Summary: "Replace a cabinet's whole planogram", Errors: []int{http.StatusNotFound},
	}, s.putPlanogram)
}

func (s *Server) getPlanogram(ctx context.Context, in *CabinetPath) (*planogramOutput, error) {
	if _, err := s.cabinets.Cabinet(ctx, in.DeviceID); err != nil {
		return nil, err
	}
	lanes, err := inventory.ReadLanes(s.db.Read(ctx), in.DeviceID)
	return viewPlanogram(lanes), err
}

func (s *Server) putPlanogram(ctx context.Context, in *putPlanogram) (*planogramOutput, error) {
	wanted := make([]inventory.Lane, len(in.Body.Lanes))
	for i, l := range in.Body.Lanes {
		wanted[i] = inventory.Lane(l)
	}
	var lanes []inventory.Lane
	err := s.db.InTx(ctx, func(tx *gorm.DB) (err error) {
		if err := fleet.Hold(tx, in.DeviceID); err != nil {
			return err
		}
		lanes, _, err = inventory.ReplaceLanes(tx, in.DeviceID, wanted, database.Now())
		return err
	})
	return viewPlanogram(lanes), err
}

package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/settlement"
)

type discrepancyView struct {
	DeviceID  int64     `json:"deviceId"`
	ProductID int64     `json:"productId"`
	Kind      string    `json:"kind" enum:"shortfall,stocktake"`
	Quantity  int64     `json:"quantity" doc:"shortfall: units beyond the books, below 0 taken back by a review; stocktake: counted less booked."`
	Ref       string    `json:"ref"`
	CreatedAt time.Time `json:"createdAt"`
}

type discrepancyPlace struct {
	CreatedAt time.Time `json:"createdAt"`
	DeviceID  int64     `json:"deviceId"`
	ProductID int64     `json:"productId"`
	Version   int64     `json:"version"`
}

func (p discrepancyPlace) sound() bool { return storable(p.CreatedAt) }

func (s *Server) discrepancyRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listDiscrepancies", Method: http.MethodGet, Path: "/v1/discrepancies",
		Summary: "Where books and shelf came apart, the newest first",
	}, s.listDiscrepancies)
}

func (s *Server) listDiscrepancies(ctx context.Context, in *PageInput) (*pageOutput[discrepancyView], error) {
	return readPage(*in, func(after *discrepancyPlace, limit int) ([]settlement.Discrepancy, error) {
		return settlement.ListDiscrepancies(ctx, s.db, (*settlement.DiscrepancyKey)(after), limit)
	}, func(d settlement.Discrepancy) discrepancyPlace {
		return discrepancyPlace{d.CreatedAt, d.DeviceID, d.ProductID, d.Version}
	}, func(d settlement.Discrepancy) discrepancyView {
		return discrepancyView{d.DeviceID, d.ProductID, d.Kind, d.Quantity, d.Ref, d.CreatedAt}
	})
}

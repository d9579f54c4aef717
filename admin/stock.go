package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/inventory"
)

type stockView struct {
	ProductID int64 `json:"productId"`
	Stock     int64 `json:"stock"`
	Version   int64 `json:"version"`
	ParLevel  int64 `json:"parLevel"`
}

type movementView struct {
	ProductID int64     `json:"productId"`
	Version   int64     `json:"version"`
	Kind      string    `json:"kind" enum:"sale,restock,stocktake,writeoff,review,refund"`
	Delta     int64     `json:"delta"`
	Balance   int64     `json:"balance"`
	Ref       string    `json:"ref" doc:"What it came from: a closeEventId, the id of a restock, stock-take, write-off or review."`
	CreatedAt time.Time `json:"createdAt"`
}

func viewMovement(m inventory.Movement) movementView {
	return movementView{m.ProductID, m.Version, string(m.Kind), m.Delta, m.Balance, m.Ref, m.CreatedAt}
}

func viewMovements(movements []inventory.Movement) []movementView {
	views := make([]movementView, len(movements))
	for i, m := range movements {
		views[i] = viewMovement(m)
	}
	return views
}

type stockInput struct {
	CabinetPath
	PageInput
}

type movementsInput struct {
	CabinetPath
	PageInput
	ProductID int64 `query:"productId" minimum:"1" maximum:"9007199254740991"`
}

type movementPlace struct {
	CreatedAt time.Time `json:"createdAt"`
	ProductID int64     `json:"productId"`
	Version   int64     `json:"version"`
}

func (p movementPlace) sound() bool { return storable(p.CreatedAt) }

func (s *Server) stockRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listStock", Method: http.MethodGet, Path: "/v1/cabinets/{deviceId}/stock",
		Summary: "What the books say is in a cabinet, by product", Errors: []int{http.StatusNotFound},
	}, s.listStock)
	route(s, Viewer, huma.Operation{
		OperationID: "listMovements", Method: http.MethodGet, Path: "/v1/cabinets/{deviceId}/movements",
		Summary: "The ledger, the newest first", Errors: []int{http.StatusNotFound},
	}, s.listMovements)
}

func (s *Server) listStock(ctx context.Context, in *stockInput) (*pageOutput[stockView], error) {
	if _, err := s.cabinets.Cabinet(ctx, in.DeviceID); err != nil {
		return nil, err
	}
	return readPage(in.PageInput, func(after *idPlace, limit int) ([]inventory.StockRow, error) {
		return inventory.ListStock(ctx, s.db, in.DeviceID, after.from(), limit)
	}, func(r inventory.StockRow) idPlace { return idPlace{r.ProductID} }, func(r inventory.StockRow) stockView {
		return stockView(r)
	})
}

func (s *Server) listMovements(ctx context.Context, in *movementsInput) (*pageOutput[movementView], error) {
	if _, err := s.cabinets.Cabinet(ctx, in.DeviceID); err != nil {
		return nil, err
	}
	return readPage(in.PageInput, func(after *movementPlace, limit int) ([]inventory.Movement, error) {
		return inventory.ListMovements(ctx, s.db, in.DeviceID, in.ProductID, (*inventory.MovementKey)(after), limit)
	}, func(m inventory.Movement) movementPlace { return movementPlace{m.CreatedAt, m.ProductID, m.Version} }, viewMovement)
}

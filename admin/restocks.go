package admin

import (
	"github.com/google/uuid"

	"doortab/inventory"
)

type restockInput struct {
	CabinetPath
	Body struct {
		Lines []restockLine `json:"lines" minItems:"1" maxItems:"1000" nullable:"false"`
		Note  string        `json:"note,omitempty" maxLength:"500"`
	}
}

type restockLine struct {
	ProductID int64 `json:"productId" minimum:"1" maximum:"9007199254740991"`
	Quantity  int64 `json:"quantity" minimum:"1" maximum:"100000" doc:"Units added."`
}

type restockAnswer struct {
	Movements []movementView `json:"movements" nullable:"false"`
}

func (s *Server) restockRoutes() {
	changeRoute(s, Restocker, stockChange("createRestock", "restocks", "Add units to a cabinet's book stock"), s.createRestock)
}

func (s *Server) createRestock(c change, in *restockInput) (*restockAnswer, error) {
	if err := checkLines(c, in.DeviceID, in.Body.Lines, func(l restockLine) int64 { return l.ProductID }); err != nil {
		return nil, err
	}
	lines := make([]inventory.RestockLine, len(in.Body.Lines))
	for i, line := range in.Body.Lines {
		lines[i] = inventory.RestockLine(line)
	}
	id := uuid.NewString()
	movements, err := inventory.AddRestock(c.tx, c.attempt, inventory.RestockRequest{
		DeviceID: in.DeviceID, RestockID: id, Note: in.Body.Note, Actor: c.by.TokenID, Lines: lines,
	}, c.now)
	if err != nil {
		return nil, err
	}
	return &restockAnswer{viewMovements(movements)}, c.logStockChange("restock", in.DeviceID, id, in.Body)
}

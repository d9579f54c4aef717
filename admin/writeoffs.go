package admin

import (
	"github.com/google/uuid"

	"doortab/inventory"
)

type writeoffInput struct {
	CabinetPath
	Body struct {
		Lines  []writeoffLine `json:"lines" minItems:"1" maxItems:"1000" nullable:"false"`
		Reason string         `json:"reason" minLength:"1" maxLength:"500"`
	}
}

type writeoffLine struct {
	ProductID int64    `json:"productId" minimum:"1" maximum:"9007199254740991"`
	Quantity  int64    `json:"quantity" minimum:"1" maximum:"100000" doc:"Units taken away."`
	EPCs      []string `json:"epcs,omitempty" maxItems:"2000" nullable:"false" doc:"Tags of these units in hex, at most one a unit: they count as lost."`
}

type writeoffAnswer struct {
	Movements []movementView `json:"movements" nullable:"false"`
}

func (s *Server) writeoffRoutes() {
	changeRoute(s, Restocker, stockChange("createWriteoff", "writeoffs",
		"Take units off a cabinet's book stock that were spoiled, damaged or expired"), s.createWriteoff)
}

func (s *Server) createWriteoff(c change, in *writeoffInput) (*writeoffAnswer, error) {
	if err := checkLines(c, in.DeviceID, in.Body.Lines, func(l writeoffLine) int64 { return l.ProductID }); err != nil {
		return nil, err
	}
	request := inventory.WriteoffRequest{
		DeviceID: in.DeviceID, WriteoffID: uuid.NewString(), Reason: in.Body.Reason, Actor: c.by.TokenID,
		Lines: make([]inventory.WriteoffLine, len(in.Body.Lines)),
	}
	for i, line := range in.Body.Lines {
		epcs, err := parseEPCs(line.EPCs)
		if err != nil {
			return nil, err
		}
		request.Lines[i] = inventory.WriteoffLine{ProductID: line.ProductID, Quantity: line.Quantity, EPCs: epcs}
	}
	movements, err := inventory.AddWriteoff(c.tx, c.attempt, request, c.now)
	if err != nil {
		return nil, err
	}
	return &writeoffAnswer{viewMovements(movements)}, c.logStockChange("writeoff", in.DeviceID, request.WriteoffID, in.Body)
}

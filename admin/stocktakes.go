package admin

import (
	"github.com/google/uuid"

	"doortab/inventory"
)

type stocktakeInput struct {
	CabinetPath
	Body struct {
		AsOfSeq *int64        `json:"asOfSeq,omitempty" minimum:"0" maximum:"9007199254740991" doc:"The seq of the last event that the count has seen; left out: the last that Doortab has seen."` //nolint:lll // a struct tag can't be broken
		Lines   []countedLine `json:"lines" minItems:"1" maxItems:"1000" nullable:"false"`
	}
}

type countedLine struct {
	ProductID int64 `json:"productId" minimum:"1" maximum:"9007199254740991"`
	Counted   int64 `json:"counted" minimum:"0" maximum:"100000" doc:"Units on the shelf."`
}

type stocktakeAnswer struct {
	Movements     []movementView    `json:"movements" nullable:"false"`
	Discrepancies []discrepancyView `json:"discrepancies" nullable:"false"`
}

func (s *Server) stocktakeRoutes() {
	changeRoute(s, Restocker, stockChange("createStocktake", "stocktakes",
		"Set book stock to what was counted; products not listed stay as they are"), s.createStocktake)
}

func (s *Server) createStocktake(c change, in *stocktakeInput) (*stocktakeAnswer, error) {
	if err := checkLines(c, in.DeviceID, in.Body.Lines, func(l countedLine) int64 { return l.ProductID }); err != nil {
		return nil, err
	}
	request := inventory.StocktakeRequest{
		DeviceID: in.DeviceID, StocktakeID: uuid.NewString(), AsOfSeq: in.Body.AsOfSeq, Actor: c.by.TokenID,
		Lines: make([]inventory.CountedLine, len(in.Body.Lines)),
	}
	for i, line := range in.Body.Lines {
		request.Lines[i] = inventory.CountedLine(line)
	}
	movements, err := inventory.AddStocktake(c.tx, c.attempt, request, c.now)
	if err != nil {
		return nil, err
	}
	answer := &stocktakeAnswer{Movements: viewMovements(movements), Discrepancies: []discrepancyView{}}
	for _, m := range movements {
		if m.Difference != 0 {
			answer.Discrepancies = append(answer.Discrepancies,
				discrepancyView{m.DeviceID, m.ProductID, string(m.Kind), m.Difference, m.Ref, m.CreatedAt})
		}
	}
	return answer, c.logStockChange("stocktake", in.DeviceID, request.StocktakeID, in.Body)
}

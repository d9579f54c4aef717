package admin

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/cabinet"
	"doortab/settlement"
)

type settlementView struct {
	DeviceID     int64            `json:"deviceId"`
	CloseEventID string           `json:"closeEventId"`
	Outcome      cabinet.Outcome  `json:"outcome"`
	Reasons      []cabinet.Reason `json:"reasons" nullable:"false"`
	ReceivedAt   time.Time        `json:"receivedAt"`
	SettledAt    time.Time        `json:"settledAt"`
	OrderID      *string          `json:"orderId"`
	Lines        []lineView       `json:"lines" nullable:"false"`
	Event        json.RawMessage  `json:"event" doc:"As the cabinet published it."`
	Receipt      json.RawMessage  `json:"receipt" doc:"As it was published first."`
	Conflicts    []conflictView   `json:"conflicts" nullable:"false"`
	Reviews      []reviewView     `json:"reviews" nullable:"false" doc:"What a person was asked about it, and decided."`
}

type conflictView struct {
	Digest     string          `json:"digest" doc:"SHA-256 of its meaning, in hex."`
	Event      json.RawMessage `json:"event" doc:"The other content, as it was published."`
	ReceivedAt time.Time       `json:"receivedAt"`
}

type settlementsInput struct {
	PageInput
	Period
	DeviceID int64  `query:"deviceId" minimum:"1" maximum:"9007199254740991"`
	Outcome  string `query:"outcome" enum:"settled,empty,review,restocked,conflict,rejected"`
}

type settlementPath struct {
	CabinetPath
	CloseEventID string `path:"closeEventId" maxLength:"64"`
}

type settlementPlace struct {
	ReceivedAt   time.Time `json:"receivedAt"`
	DeviceID     int64     `json:"deviceId"`
	CloseEventID string    `json:"closeEventId"`
}

func (p settlementPlace) sound() bool {
	return storable(p.ReceivedAt) && cabinet.ValidID(p.CloseEventID)
}

func (s *Server) settlementRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listSettlements", Method: http.MethodGet, Path: "/v1/settlements",
		Summary: "What became of events, the newest first",
	}, s.listSettlements)
	route(s, Viewer, huma.Operation{
		OperationID: "getSettlement", Method: http.MethodGet, Path: "/v1/settlements/{deviceId}/{closeEventId}",
		Summary: "What became of one event, with its evidence", Errors: []int{http.StatusNotFound},
	}, s.getSettlement)
}

func (s *Server) listSettlements(ctx context.Context, in *settlementsInput) (*pageOutput[settlementView], error) {
	filter := settlement.Filter{DeviceID: in.DeviceID, State: in.Outcome, From: in.From, To: in.To}
	return readPage(in.PageInput, func(after *settlementPlace, limit int) ([]settlement.Settlement, error) {
		return settlement.ListSettlements(ctx, s.db, filter, (*settlement.SettlementKey)(after), limit)
	}, func(x settlement.Settlement) settlementPlace {
		return settlementPlace{x.ReceivedAt, x.DeviceID, x.CloseEventID}
	}, viewSettlement)
}

func (s *Server) getSettlement(ctx context.Context, in *settlementPath) (*struct{ Body settlementView }, error) {
	if !cabinet.ValidID(in.CloseEventID) {
		return nil, fmt.Errorf("settlement: %w", settlement.ErrNotFound)
	}
	x, err := settlement.ReadSettlement(ctx, s.db, in.DeviceID, in.CloseEventID)
	return &struct{ Body settlementView }{viewSettlement(x)}, err
}

func viewSettlement(x settlement.Settlement) settlementView {
	v := settlementView{
		DeviceID: x.DeviceID, CloseEventID: x.CloseEventID, Outcome: x.Outcome, Reasons: x.Receipt.Reasons,
		ReceivedAt: x.ReceivedAt, SettledAt: x.SettledAt, OrderID: idOrNull(x.OrderID), Lines: viewLines(x.Lines),
		Event: embedded(x.Event), Receipt: embedded(x.ReceiptRaw), Conflicts: make([]conflictView, len(x.Conflicts)),
		Reviews: make([]reviewView, len(x.Reviews)),
	}
	for i, c := range x.Conflicts {
		v.Conflicts[i] = conflictView{hex.EncodeToString(c.Digest), embedded(c.Payload), c.ReceivedAt}
	}
	for i, r := range x.Reviews {
		v.Reviews[i] = viewReview(r)
	}
	return v
}

func idOrNull(id *int64) *string {
	if id == nil {
		return nil
	}
	text := settlement.FormatID(*id)
	return &text
}

// embedded is stored JSON inside an answer.
func embedded(text []byte) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	return text
}

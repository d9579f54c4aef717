package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/settlement"
)

type orderView struct {
	OrderID      string     `json:"orderId"`
	DeviceID     int64      `json:"deviceId"`
	CloseEventID string     `json:"closeEventId"`
	UserID       *int64     `json:"userId"`
	Status       string     `json:"status" enum:"open,review,paid,arrears,void,refunded"`
	Currency     string     `json:"currency"`
	TotalMinor   int64      `json:"totalMinor"`
	Lines        []lineView `json:"lines" nullable:"false"`
	CreatedAt    time.Time  `json:"createdAt"`
	Archived     bool       `json:"archived" doc:"It lies in the archive; reopening it brings it back."`
}

type lineView struct {
	ProductID      int64           `json:"productId"`
	Quantity       int64           `json:"quantity"`
	UnitPriceMinor int64           `json:"unitPriceMinor"`
	AmountMinor    int64           `json:"amountMinor"`
	Origin         string          `json:"origin" doc:"settlement, or what corrected it."`
	Evidence       json.RawMessage `json:"evidence" doc:"The numbers that decided the line."`
}

func viewOrder(o settlement.Order) orderView {
	return orderView{
		OrderID: settlement.FormatID(o.OrderID), DeviceID: o.DeviceID, CloseEventID: o.CloseEventID, UserID: o.UserID,
		Status: o.Status, Currency: o.Currency, TotalMinor: o.TotalMinor, Lines: viewLines(o.Lines), CreatedAt: o.CreatedAt,
		Archived: o.Archived,
	}
}

func viewLines(lines []settlement.OrderLine) []lineView {
	list := make([]lineView, len(lines))
	for i, l := range lines {
		list[i] = lineView{l.ProductID, l.Quantity, l.UnitPriceMinor, l.AmountMinor, l.Origin, embedded(l.Evidence)}
	}
	return list
}

type ordersInput struct {
	PageInput
	Period
	DeviceID int64  `query:"deviceId" minimum:"1" maximum:"9007199254740991"`
	UserID   int64  `query:"userId" minimum:"1" maximum:"9007199254740991"`
	Status   string `query:"status" enum:"open,review,paid,arrears,void,refunded"`
	Archived bool   `query:"archived" doc:"true: archived orders instead of live ones, of one cabinet or one shopper."`
}

type orderPath struct {
	OrderID string `path:"orderId"`
}

func (s *Server) orderRoutes() {
	route(s, Viewer, forApps(huma.Operation{
		OperationID: "listOrders", Method: http.MethodGet, Path: "/v1/orders",
		Summary: "List live orders, or archived ones, the newest first; an app sees those of doors that it opened",
	}), s.listOrders)
	route(s, Viewer, forApps(huma.Operation{
		OperationID: "getOrder", Method: http.MethodGet, Path: "/v1/orders/{orderId}", Summary: "Read an order",
		Errors: []int{http.StatusNotFound},
	}), s.getOrder)
}

func (s *Server) listOrders(ctx context.Context, in *ordersInput) (*pageOutput[orderView], error) {
	filter := settlement.Filter{
		DeviceID: in.DeviceID, UserID: in.UserID, App: principalOf(ctx).app(), State: in.Status, From: in.From, To: in.To,
		Archived: in.Archived,
	}
	if in.Archived && in.DeviceID == 0 && in.UserID == 0 {
		return nil, errWholeArchive
	}
	return readPage(in.PageInput, func(after *idPlace, limit int) ([]settlement.Order, error) {
		return settlement.ListOrders(ctx, s.db, filter, after.from(), limit)
	}, func(o settlement.Order) idPlace { return idPlace{o.OrderID} }, viewOrder)
}

func (s *Server) getOrder(ctx context.Context, in *orderPath) (*struct{ Body orderView }, error) {
	id, err := parseID("order", in.OrderID)
	if err != nil {
		return nil, err
	}
	o, err := settlement.ReadOrder(ctx, s.db, id)
	if by := principalOf(ctx); err == nil && by.Role == App && o.App != by.Name {
		return nil, fmt.Errorf("order %d: %w", id, settlement.ErrNotFound)
	}
	return &struct{ Body orderView }{viewOrder(o)}, err
}

// parseID: what is no id names nothing that exists.
func parseID(what, text string) (int64, error) {
	id, ok := settlement.ParseID(text)
	if !ok {
		return 0, fmt.Errorf("%s: %w", what, settlement.ErrNotFound)
	}
	return id, nil
}

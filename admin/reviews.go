package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/cabinet"
	"doortab/settlement"
)

type reviewView struct {
	ReviewID     string               `json:"reviewId"`
	DeviceID     int64                `json:"deviceId"`
	CloseEventID string               `json:"closeEventId"`
	OrderID      *string              `json:"orderId"`
	Reasons      []cabinet.Reason     `json:"reasons" nullable:"false" doc:"Empty where an operator reopened the order."`
	Proposed     []productUnits       `json:"proposed" nullable:"false" doc:"What accept adds."`
	Evidence     json.RawMessage      `json:"evidence" doc:"What could not be decided, and where it is in the event."`
	Status       string               `json:"status" enum:"open,accepted,amended,waived"`
	Decision     *settlement.Decision `json:"decision" enum:"accept,amend,waive"`
	Note         string               `json:"note" doc:"Why it was decided so; before that, why the order was reopened."`
	ResolvedBy   *string              `json:"resolvedBy"`
	ResolvedAt   *time.Time           `json:"resolvedAt"`
	CreatedAt    time.Time            `json:"createdAt"`
}

type productUnits struct {
	ProductID int64 `json:"productId" minimum:"1" maximum:"9007199254740991"`
	Quantity  int64 `json:"quantity" minimum:"1" maximum:"1000"`
}

type reviewPath struct {
	ReviewID string `path:"reviewId"`
}

type resolutionInput struct {
	ReviewID string `path:"reviewId"`
	Body     struct {
		Decision settlement.Decision `json:"decision" enum:"accept,amend,waive"`
		Lines    []productUnits      `json:"lines,omitempty" maxItems:"2000" doc:"With amend: all that the event comes to, [] for nothing."`
		Note     string              `json:"note" minLength:"1" maxLength:"500"`
	}
}

type reopenInput struct {
	OrderID string `path:"orderId"`
	Body    struct {
		Note string `json:"note" minLength:"1" maxLength:"500"`
	}
}

type reviewPlace struct {
	Decided  bool  `json:"decided"`
	ReviewID int64 `json:"reviewId"`
}

func (p reviewPlace) sound() bool { return p.ReviewID > 0 }

func (s *Server) reviewRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listReviews", Method: http.MethodGet, Path: "/v1/reviews",
		Summary: "What a person must decide: open first, the oldest first",
	}, s.listReviews)
	route(s, Viewer, huma.Operation{
		OperationID: "getReview", Method: http.MethodGet, Path: "/v1/reviews/{reviewId}",
		Summary: "Read a review", Errors: []int{http.StatusNotFound},
	}, s.getReview)
	changeRoute(s, Operator, huma.Operation{
		OperationID: "resolveReview", Method: http.MethodPost, Path: "/v1/reviews/{reviewId}/resolution",
		Summary: "Decide a review: the lines and the stock that it changes are booked", DefaultStatus: http.StatusOK,
		Errors: []int{http.StatusNotFound},
	}, s.resolveReview)
	changeRoute(s, Operator, huma.Operation{
		OperationID: "reopenOrder", Method: http.MethodPost, Path: "/v1/orders/{orderId}/reviews",
		Summary: "Reopen a settled order for correction", DefaultStatus: http.StatusCreated,
		Errors: []int{http.StatusNotFound},
	}, s.reopenOrder)
}

func (s *Server) listReviews(ctx context.Context, in *PageInput) (*pageOutput[reviewView], error) {
	return readPage(*in, func(after *reviewPlace, limit int) ([]settlement.Review, error) {
		var key settlement.ReviewKey
		if after != nil {
			key = settlement.ReviewKey(*after)
		}
		return settlement.ListReviews(ctx, s.db, key, limit)
	}, func(r settlement.Review) reviewPlace { return reviewPlace(r.Key()) }, viewReview)
}

func (s *Server) getReview(ctx context.Context, in *reviewPath) (*struct{ Body reviewView }, error) {
	id, err := parseID("review", in.ReviewID)
	if err != nil {
		return nil, err
	}
	r, err := settlement.ReadReview(ctx, s.db, id)
	return &struct{ Body reviewView }{viewReview(r)}, err
}

func (s *Server) resolveReview(c change, in *resolutionInput) (*reviewView, error) {
	id, err := parseID("review", in.ReviewID)
	if err != nil {
		return nil, err
	}
	resolution := settlement.Resolution{ReviewID: id, Decision: in.Body.Decision, Note: in.Body.Note}
	if in.Body.Lines != nil {
		resolution.Lines = []settlement.ProposedLine{}
	}
	for _, l := range in.Body.Lines {
		resolution.Lines = append(resolution.Lines, settlement.ProposedLine(l))
	}
	review, err := settlement.Resolve(c.tx, c.attempt, resolution, c.now)
	if err == nil && len(review.Returns) > 0 {
		c.afterCommit(func(ctx context.Context) { s.claims.TakenBack(ctx, id, review.Returns) })
	}
	return shown(review, err)
}

func (s *Server) reopenOrder(c change, in *reopenInput) (*reviewView, error) {
	id, err := parseID("order", in.OrderID)
	if err != nil {
		return nil, err
	}
	return shown(settlement.Reopen(c.tx, id, in.Body.Note, c.now))
}

func shown(r settlement.Review, err error) (*reviewView, error) {
	v := viewReview(r)
	return &v, err
}

func viewReview(r settlement.Review) reviewView {
	v := reviewView{
		ReviewID: settlement.FormatID(r.ReviewID), DeviceID: r.DeviceID, CloseEventID: r.CloseEventID,
		OrderID: idOrNull(r.OrderID), Reasons: r.Reasons, Proposed: make([]productUnits, len(r.Proposed)),
		Evidence: embedded(r.Evidence), Status: r.Status, Note: r.Note, ResolvedAt: r.ResolvedAt, CreatedAt: r.CreatedAt,
	}
	for i, l := range r.Proposed {
		v.Proposed[i] = productUnits(l)
	}
	if decision := r.Decision(); decision != "" {
		v.Decision, v.ResolvedBy = &decision, &r.ResolvedBy
	}
	return v
}

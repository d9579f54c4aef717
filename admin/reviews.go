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

// ReviewView is a review as lists show it.
type ReviewView struct {
	ReviewID     string                    `json:"reviewId"`
	DeviceID     int64                     `json:"deviceId"`
	CloseEventID string                    `json:"closeEventId"`
	OrderID      *string                   `json:"orderId"`
	Reasons      []cabinet.Reason          `json:"reasons" nullable:"false"`
	Proposed     []settlement.ProposedLine `json:"proposed" nullable:"false"`
	Status       string                    `json:"status" enum:"open,accepted,amended,waived"`
	CreatedAt    time.Time                 `json:"createdAt"`
}

type fullReview struct {
	ReviewView
	Evidence json.RawMessage `json:"evidence" doc:"What could not be decided, and where it is in the event."`
}

type reviewPath struct {
	ReviewID string `path:"reviewId"`
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
		Summary: "Read a review with its evidence", Errors: []int{http.StatusNotFound},
	}, s.getReview)
}

func (s *Server) listReviews(ctx context.Context, in *PageInput) (*pageOutput[ReviewView], error) {
	return readPage(*in, func(after *reviewPlace, limit int) ([]settlement.Review, error) {
		var key settlement.ReviewKey
		if after != nil {
			key = settlement.ReviewKey(*after)
		}
		return settlement.ListReviews(ctx, s.db, key, limit)
	}, func(r settlement.Review) reviewPlace { return reviewPlace(r.Key()) }, viewReview)
}

func (s *Server) getReview(ctx context.Context, in *reviewPath) (*struct{ Body fullReview }, error) {
	id, err := parseID("review", in.ReviewID)
	if err != nil {
		return nil, err
	}
	r, err := settlement.ReadReview(ctx, s.db, id)
	return &struct{ Body fullReview }{fullReview{viewReview(r), embedded(r.Evidence)}}, err
}

func viewReview(r settlement.Review) ReviewView {
	return ReviewView{
		ReviewID: settlement.FormatID(r.ReviewID), DeviceID: r.DeviceID, CloseEventID: r.CloseEventID,
		OrderID: idOrNull(r.OrderID), Reasons: r.Reasons, Proposed: r.Proposed, Status: r.Status, CreatedAt: r.CreatedAt,
	}
}

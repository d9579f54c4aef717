package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/claims"
	"doortab/promotion"
	"doortab/settlement"
	"doortab/tasks"
)

type claimView struct {
	ClaimID     string               `json:"claimId"`
	PromotionID string               `json:"promotionId"`
	UserID      int64                `json:"userId"`
	State       promotion.ClaimState `json:"state" enum:"held,used,returned,expired,pending,refused" doc:"refused: of a dead letter alone."`
	Quantity    int64                `json:"quantity"`
	Left        int64                `json:"left" doc:"Units that the claim still holds."`
	ExpiresAt   time.Time            `json:"expiresAt"`
}

func viewClaim(c promotion.Claim) claimView {
	return claimView{
		ClaimID: settlement.FormatID(c.ClaimID), PromotionID: settlement.FormatID(c.PromotionID), UserID: c.UserID, State: c.State,
		Quantity: c.Quantity, Left: c.Left(), ExpiresAt: c.ExpiresAt,
	}
}

type orderTokenInput struct {
	Body struct {
		UserID      int64  `json:"userId" minimum:"1" maximum:"9007199254740991"`
		PromotionID string `json:"promotionId" maxLength:"20"`
	}
}

func (in orderTokenInput) shopper() int64 { return in.Body.UserID }

type orderTokenOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		Token     string    `json:"token" doc:"Makes one claim, of this person and promotion, with a token of this app."`
		ExpiresAt time.Time `json:"expiresAt"`
	}
}

type claimInput struct {
	PromotionID string `path:"promotionId" maxLength:"20"`
	Body        struct {
		Token    string `json:"token" maxLength:"200" doc:"An order token. Sent again, it gets the same answer again."`
		UserID   int64  `json:"userId" minimum:"1" maximum:"9007199254740991"`
		Quantity int64  `json:"quantity" minimum:"1" maximum:"1000"`
	}
}

func (in claimInput) shopper() int64 { return in.Body.UserID }

type claimPath struct {
	ClaimID string `path:"claimId" maxLength:"20"`
}

type claimOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     claimView
}

func (s *Server) claimRoutes() {
	route(s, Operator, forApps(huma.Operation{
		OperationID: "createOrderToken", Method: http.MethodPost, Path: "/v1/order-tokens", DefaultStatus: http.StatusCreated,
		Summary: "Give a person a token to claim with", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}), s.createOrderToken)
	route(s, Operator, forApps(huma.Operation{
		OperationID: "createClaim", Method: http.MethodPost, Path: "/v1/promotions/{promotionId}/claims", DefaultStatus: http.StatusCreated,
		Summary: "Claim units of a promotion: 201 once it is written, 202 with where to look where that takes long",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
	}), s.createClaim)
	route(s, Operator, forApps(huma.Operation{
		OperationID: "getClaim", Method: http.MethodGet, Path: "/v1/claims/{claimId}",
		Summary: "What became of a claim; 409 where one that was pending could not be given",
		Errors:  []int{http.StatusNotFound, http.StatusConflict},
	}), s.getClaim)
	route(s, Operator, forApps(huma.Operation{
		OperationID: "returnClaim", Method: http.MethodDelete, Path: "/v1/claims/{claimId}", DefaultStatus: http.StatusOK,
		Summary: "Give back what a claim has left", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}), s.returnClaim)
}

func (s *Server) createOrderToken(ctx context.Context, in *orderTokenInput) (*orderTokenOutput, error) {
	id, err := parseID("promotion", in.Body.PromotionID)
	if err != nil {
		return nil, err
	}
	out := &orderTokenOutput{CacheControl: "no-store"}
	out.Body.Token, out.Body.ExpiresAt, err = s.claims.Issue(ctx,
		promotion.Purpose{PromotionID: id, UserID: in.Body.UserID, App: principalOf(ctx).app()})
	return out, err
}

func (s *Server) createClaim(ctx context.Context, in *claimInput) (*claimOutput, error) {
	id, err := parseID("promotion", in.PromotionID)
	if err != nil {
		return nil, err
	}
	c, err := s.claims.Claim(ctx, claims.Request{
		Purpose: promotion.Purpose{PromotionID: id, UserID: in.Body.UserID, App: principalOf(ctx).app()},
		Token:   in.Body.Token, Quantity: in.Body.Quantity,
	})
	if err != nil {
		return nil, err
	}
	out := claimAnswer(c, http.StatusCreated)
	if c.State == promotion.Held {
		s.tasks.Schedule(tasks.Claim, out.Body.ClaimID, c.ExpiresAt)
	}
	return out, nil
}

// claimAnswer: a claim that isn't written yet is 202, wherever it is asked for.
func claimAnswer(c promotion.Claim, status int) *claimOutput {
	out := &claimOutput{Status: status, Body: viewClaim(c)}
	if c.State == promotion.Pending {
		out.Status, out.Location = http.StatusAccepted, "/v1/claims/"+out.Body.ClaimID
	}
	return out
}

func (s *Server) getClaim(ctx context.Context, in *claimPath) (*claimOutput, error) {
	id, err := parseID("claim", in.ClaimID)
	if err != nil {
		return nil, err
	}
	c, err := s.claims.Read(ctx, id)
	if err == nil && !principalOf(ctx).seesClaim(c) {
		err = promotion.ErrNoClaim
	}
	if err == nil {
		err = c.Refusal()
	}
	if err != nil {
		return nil, err
	}
	return claimAnswer(c, http.StatusOK), nil
}

func (s *Server) returnClaim(ctx context.Context, in *claimPath) (*struct{ Body claimView }, error) {
	id, err := parseID("claim", in.ClaimID)
	if err != nil {
		return nil, err
	}
	c, err := s.claims.GiveBack(ctx, id, principalOf(ctx).seesClaim)
	return &struct{ Body claimView }{viewClaim(c)}, err
}

// seesClaim: an app sees the claims that were made with its tokens, staff sees all.
func (p principal) seesClaim(c promotion.Claim) bool { return p.Role != App || c.App == p.Name }

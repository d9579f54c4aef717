package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/promotion"
	"doortab/settlement"
)

type promotionView struct {
	PromotionID     string          `json:"promotionId"`
	Name            string          `json:"name"`
	ProductID       int64           `json:"productId"`
	PriceMinor      int64           `json:"priceMinor" doc:"What a unit costs with it. It only ever lowers the price in force."`
	Quota           int64           `json:"quota" doc:"Units in all."`
	PerUser         int64           `json:"perUser" doc:"Units for each person."`
	NeedsClaim      bool            `json:"needsClaim" doc:"false: it applies at the door to whoever comes first."`
	Site            string          `json:"site" doc:"Empty: the whole fleet."`
	StartsAt        time.Time       `json:"startsAt"`
	EndsAt          time.Time       `json:"endsAt" doc:"The first moment that no longer counts."`
	ClaimTTLSeconds int64           `json:"claimTtlSeconds"`
	Way             promotion.Way   `json:"way" enum:"database,redis"`
	State           promotion.State `json:"state" enum:"draft,warming,live,paused,ended"`
	Taken           int64           `json:"taken" doc:"Units that are held, used or set aside for Redis."`
	Left            int64           `json:"left" doc:"Units that nobody has."`
	CreatedAt       time.Time       `json:"createdAt"`
}

func viewPromotion(p promotion.Promotion) promotionView {
	return promotionView{
		PromotionID: settlement.FormatID(p.PromotionID), Name: p.Name, ProductID: p.ProductID, PriceMinor: p.PriceMinor,
		Quota: p.Quota, PerUser: p.PerUser, NeedsClaim: p.NeedsClaim, Site: p.Site, StartsAt: p.StartsAt, EndsAt: p.EndsAt,
		ClaimTTLSeconds: p.ClaimTTLS, Way: p.Way, State: p.State, Taken: p.Taken, Left: p.Left(), CreatedAt: p.CreatedAt,
	}
}

type createPromotion struct {
	Body struct {
		Name            string        `json:"name" minLength:"1" maxLength:"200"`
		ProductID       int64         `json:"productId" minimum:"1" maximum:"9007199254740991"`
		PriceMinor      int64         `json:"priceMinor" minimum:"0" maximum:"9007199254740991"`
		Quota           int64         `json:"quota" minimum:"1" maximum:"1000000000"`
		PerUser         int64         `json:"perUser" minimum:"1" maximum:"1000"`
		NeedsClaim      *bool         `json:"needsClaim,omitempty" nullable:"false" doc:"true if left out."`
		Site            string        `json:"site,omitempty" maxLength:"200"`
		StartsAt        time.Time     `json:"startsAt"`
		EndsAt          time.Time     `json:"endsAt"`
		ClaimTTLSeconds int64         `json:"claimTtlSeconds,omitempty" minimum:"1" maximum:"604800" default:"900"`
		Way             promotion.Way `json:"way,omitempty" enum:"database,redis" default:"database"`
	}
}

type promotionPath struct {
	PromotionID string `path:"promotionId" maxLength:"20"`
}

type transitionInput struct {
	PromotionID string `path:"promotionId" maxLength:"20"`
	Body        struct {
		To promotion.State `json:"to" enum:"warming,live,paused,ended"`
	}
}

type listPromotionsInput struct {
	PageInput
	State     promotion.State `query:"state" enum:"draft,warming,live,paused,ended"`
	ProductID int64           `query:"productId" minimum:"1" maximum:"9007199254740991"`
}

func (s *Server) promotionRoutes() {
	changeRoute(s, Operator, withoutKeyToo(huma.Operation{
		OperationID: "createPromotion", Method: http.MethodPost, Path: "/v1/promotions",
		Summary: "Draft a promotion: a product at a special price", DefaultStatus: http.StatusCreated,
	}), createPromotionOf)
	route(s, Viewer, huma.Operation{
		OperationID: "listPromotions", Method: http.MethodGet, Path: "/v1/promotions", Summary: "List promotions, the newest first",
	}, s.listPromotions)
	route(s, Viewer, huma.Operation{
		OperationID: "getPromotion", Method: http.MethodGet, Path: "/v1/promotions/{promotionId}",
		Summary: "Read a promotion, with how much of it is taken", Errors: []int{http.StatusNotFound},
	}, s.getPromotion)
	changeRoute(s, Operator, withoutKeyToo(huma.Operation{
		OperationID: "transitionPromotion", Method: http.MethodPost, Path: "/v1/promotions/{promotionId}/transitions",
		Summary: "Make a promotion live, pause it, end it", DefaultStatus: http.StatusOK, Errors: []int{http.StatusNotFound},
	}), transitionPromotion)
}

func createPromotionOf(c change, in *createPromotion) (*promotionView, error) {
	b := in.Body
	p, err := promotion.Create(c.tx, promotion.Promotion{
		Name: b.Name, ProductID: b.ProductID, PriceMinor: b.PriceMinor, Quota: b.Quota, PerUser: b.PerUser,
		NeedsClaim: b.NeedsClaim == nil || *b.NeedsClaim, Site: b.Site, StartsAt: b.StartsAt, EndsAt: b.EndsAt,
		ClaimTTLS: b.ClaimTTLSeconds, Way: b.Way,
	}, c.now)
	view := viewPromotion(p)
	return &view, err
}

func (s *Server) listPromotions(ctx context.Context, in *listPromotionsInput) (*pageOutput[promotionView], error) {
	filter := promotion.Filter{State: in.State, ProductID: in.ProductID}
	return readPage(in.PageInput, func(after *idPlace, limit int) ([]promotion.Promotion, error) {
		return promotion.List(ctx, s.db, filter, after.from(), limit)
	}, func(p promotion.Promotion) idPlace { return idPlace{p.PromotionID} }, viewPromotion)
}

func (s *Server) getPromotion(ctx context.Context, in *promotionPath) (*struct{ Body promotionView }, error) {
	id, err := parseID("promotion", in.PromotionID)
	if err != nil {
		return nil, err
	}
	p, err := promotion.Read(s.db.Read(ctx), id)
	return &struct{ Body promotionView }{viewPromotion(p)}, err
}

func transitionPromotion(c change, in *transitionInput) (*promotionView, error) {
	id, err := parseID("promotion", in.PromotionID)
	if err != nil {
		return nil, err
	}
	p, err := promotion.Transition(c.tx, id, in.Body.To, c.now)
	view := viewPromotion(p)
	return &view, err
}

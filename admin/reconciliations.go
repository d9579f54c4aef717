package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/reconcile"
	"doortab/settlement"
)

// shownDifferences is how many differences a run is shown with.
const shownDifferences = 1000

// ReconciliationView is one run.
type ReconciliationView struct {
	ReconciliationID string     `json:"reconciliationId"`
	State            string     `json:"state" enum:"waiting,running,done,failed"`
	Origin           string     `json:"origin" enum:"periodic,nightly,request,command"`
	StartedBy        string     `json:"startedBy"`
	Everything       bool       `json:"everything" doc:"Whether promotions were compared too that are long over."`
	Repair           bool       `json:"repair" doc:"Whether what is proven was to be mended."`
	Promotions       int64      `json:"promotions" doc:"How many were compared."`
	Differences      int64      `json:"differences" doc:"How many were found."`
	Repaired         int64      `json:"repaired" doc:"How many of them were mended."`
	Behind           int64      `json:"behind" doc:"Buckets that could not be compared, since their write-back was behind."`
	Detail           string     `json:"detail" doc:"Why it failed."`
	CreatedAt        time.Time  `json:"createdAt"`
	StartedAt        *time.Time `json:"startedAt"`
	EndedAt          *time.Time `json:"endedAt"`
}

type differenceView struct {
	PromotionID *string `json:"promotionId" doc:"Null: of a reservation."`
	Cause       string  `json:"cause"`
	Target      string  `json:"target" doc:"Table and key, or what of Redis."`
	Counted     int64   `json:"counted" doc:"What is there, in units."`
	Due         int64   `json:"due" doc:"What should be."`
	Repaired    bool    `json:"repaired"`
}

type causeView struct {
	Cause    string `json:"cause"`
	Found    int64  `json:"found"`
	Repaired int64  `json:"repaired"`
}

type reconciliationDetail struct {
	ReconciliationView

	Causes []causeView      `json:"causes" nullable:"false"`
	Items  []differenceView `json:"items" nullable:"false" doc:"The first 1000."`
}

type reconciliationPath struct {
	ReconciliationID string `path:"reconciliationId"`
}

type reconciliationInput struct {
	Body struct {
		Repair bool `json:"repair" required:"false" doc:"Whether to mend what is proven."`
	}
}

func (s *Server) reconciliationRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listReconciliations", Method: http.MethodGet, Path: "/v1/reconciliations",
		Summary: "Comparisons of counters with what they count, the newest first",
	}, s.listReconciliations)
	route(s, Viewer, huma.Operation{
		OperationID: "getReconciliation", Method: http.MethodGet, Path: "/v1/reconciliations/{reconciliationId}",
		Summary: "Read a comparison with its differences", Errors: []int{http.StatusNotFound},
	}, s.getReconciliation)
	changeRoute(s, Operator, withoutKeyToo(huma.Operation{
		OperationID: "reconcile", Method: http.MethodPost, Path: "/v1/reconciliations",
		Summary: "Ask for a comparison: a serving process begins it within seconds", DefaultStatus: http.StatusAccepted,
	}), s.askReconciliation)
}

func (s *Server) listReconciliations(ctx context.Context, in *PageInput) (*pageOutput[ReconciliationView], error) {
	return readPage(*in, func(after *idPlace, limit int) ([]reconcile.Run, error) {
		return reconcile.ListRuns(ctx, s.db, after.from(), limit)
	}, func(r reconcile.Run) idPlace { return idPlace{r.RunID} }, viewRun)
}

func (s *Server) getReconciliation(ctx context.Context, in *reconciliationPath) (*struct{ Body reconciliationDetail }, error) {
	id, err := parseID("reconciliation", in.ReconciliationID)
	if err != nil {
		return nil, err
	}
	r, err := reconcile.ReadRun(ctx, s.db, id)
	if err != nil {
		return nil, err
	}
	counts, err := reconcile.ReadCounts(ctx, s.db, id)
	if err != nil {
		return nil, err
	}
	found, err := reconcile.ReadDifferences(ctx, s.db, id, shownDifferences)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body reconciliationDetail }{reconciliationDetail{
		ReconciliationView: viewRun(r), Causes: viewCauses(counts), Items: make([]differenceView, len(found)),
	}}
	for i, d := range found {
		out.Body.Items[i] = viewDifference(d)
	}
	return out, nil
}

func (s *Server) askReconciliation(c change, in *reconciliationInput) (*ReconciliationView, error) {
	r, err := reconcile.Ask(c.tx, in.Body.Repair, c.now)
	v := viewRun(r)
	return &v, err
}

func viewRun(r reconcile.Run) ReconciliationView {
	return ReconciliationView{
		ReconciliationID: settlement.FormatID(r.RunID), State: string(r.State), Origin: string(r.Origin), StartedBy: r.StartedBy,
		Everything: r.Everything, Repair: r.Repairs, Promotions: r.Promotions, Differences: r.Found, Repaired: r.Repaired,
		Behind: r.Behind, Detail: r.Detail, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	}
}

func viewDifference(d reconcile.Difference) differenceView {
	v := differenceView{Cause: string(d.Cause), Target: d.Target, Counted: d.Counted, Due: d.Due, Repaired: d.Repaired}
	if d.PromotionID != 0 {
		v.PromotionID = idOrNull(&d.PromotionID)
	}
	return v
}

// viewCauses adds up over promotions.
func viewCauses(counts []reconcile.Count) []causeView {
	list, at := []causeView{}, map[reconcile.Cause]int{}
	for _, c := range counts {
		i, known := at[c.Cause]
		if !known {
			i = len(list)
			at[c.Cause] = i
			list = append(list, causeView{Cause: string(c.Cause)})
		}
		list[i].Found += c.Found
		list[i].Repaired += c.Repaired
	}
	return list
}

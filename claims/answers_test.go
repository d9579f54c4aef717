package claims_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/claims"
)

func TestAnswersAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	s, registry := newShop(t), prometheus.NewRegistry()
	service := claims.New(claims.Config{DB: s.db, Metrics: registry})
	t.Cleanup(service.Close)
	p := s.live(2, 1)
	first := s.request(p, 1, 1)
	for _, r := range []claims.Request{
		first, first, // the same answer again
		s.request(p, 1, 1), s.request(p, 2, 1), s.request(p, 3, 1),
		{Purpose: first.Purpose, Token: "made up", Quantity: 1}, // no claim, so it is not counted
		{Purpose: first.Purpose, Token: first.Token},
	} {
		_, _ = service.Claim(t.Context(), r)
	}
	s.exec("CREATE TRIGGER broken BEFORE INSERT ON claims FOR EACH ROW SIGNAL SQLSTATE '45000'")
	if _, err := service.Claim(t.Context(), s.request(s.live(1, 1), 1, 1)); err == nil {
		t.Error("a claim was written in spite of its trigger")
	}
	got := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "doortab_claims_total" && m.GetCounter().GetValue() > 0 {
				got[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	want := fmt.Sprint(map[string]float64{"database held": 3, "database limit_reached": 1, "database sold_out": 1, "database error": 1})
	if fmt.Sprint(got) != want {
		t.Errorf("counted %v, want %s", got, want)
	}
}

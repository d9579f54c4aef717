package simulator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCatalogueHasRightCheckDigits(t *testing.T) {
	t.Parallel()
	if got := gtin13("871913900574"); got != "8719139005740" {
		t.Errorf("check digit of 871913900574: got %s, want 8719139005740", got)
	}
	seen := map[string]bool{}
	for _, p := range catalogue() {
		if len(p.GTIN) != 13 || seen[p.GTIN] || seen[p.SKU] || p.PriceMinor <= 0 || p.UnitWeightGrams <= 2*p.WeightToleranceGrams {
			t.Errorf("not a product that Doortab takes, or a second one of its kind: %+v", p)
		}
		seen[p.GTIN], seen[p.SKU] = true, true
	}
	if len(seen) < 24 {
		t.Errorf("%d products, want a dozen", len(seen)/2)
	}
}

func TestShoppersRepeatWithTheSeed(t *testing.T) {
	t.Parallel()
	crowd := func(seed uint64) (visits []visit) {
		s := newShoppers(seed, testProducts())
		for range 500 {
			s.gap(60)
			s.cabinet(50)
			visits = append(visits, s.next())
		}
		return visits
	}
	if diff := cmp.Diff(crowd(7), crowd(7), cmp.AllowUnexported(visit{})); diff != "" {
		t.Errorf("the same seed, other shoppers (-first +second):\n%s", diff)
	}
	if cmp.Equal(crowd(7), crowd(8), cmp.AllowUnexported(visit{})) {
		t.Error("two seeds, the same shoppers")
	}
}

func TestShoppersAreOfEverySort(t *testing.T) {
	t.Parallel()
	s := newShoppers(1, testProducts())
	var unknown, imagined, byApp int
	var time1 time.Duration
	const visits = 5000
	for range visits {
		time1 += s.gap(50)
		v := s.next()
		if v.byApp {
			byApp++
			if v.userID == 0 {
				t.Fatalf("the app knows its user: %+v", v)
			}
		}
		switch {
		case v.imagined != 0:
			imagined++
		case v.userID == 0:
			unknown++
		}
	}
	for sort, n := range map[string]int{"unknown": unknown, "imagined": imagined, "by app": byApp} {
		if n == 0 || n > visits/8 {
			t.Errorf("%s: %d of %d visits", sort, n, visits)
		}
	}
	if perSecond := visits / time1.Seconds(); perSecond < 45 || perSecond > 55 {
		t.Errorf("%.1f shoppers a second, want about 50", perSecond)
	}
}

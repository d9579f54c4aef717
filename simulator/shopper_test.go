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
	var empty, unknown, doubtful, mixed, byApp int
	var time1 time.Duration
	const visits = 5000
	for range visits {
		time1 += s.gap(50)
		v := s.next()
		if len(v.want) > 4 {
			t.Fatalf("%d products are more than a handful: %+v", len(v.want), v)
		}
		for _, q := range v.want {
			if len(v.doubtful) > 0 && v.doubtful[0].ProductID == q.ProductID {
				t.Fatalf("one product is both sure and doubtful: %+v", v)
			}
		}
		if v.byApp {
			byApp++
			if v.userID == 0 {
				t.Fatalf("the app knows its user: %+v", v)
			}
		}
		switch {
		case len(v.doubtful) > 0 && len(v.want) > 0:
			mixed++
		case len(v.doubtful) > 0:
			doubtful++
		case len(v.want) == 0:
			empty++
		case v.userID == 0:
			unknown++
		}
	}
	for sort, n := range map[string]int{"empty": empty, "unknown": unknown, "doubtful": doubtful, "mixed": mixed, "by app": byApp} {
		if n == 0 || n > visits/8 {
			t.Errorf("%s: %d of %d visits", sort, n, visits)
		}
	}
	if perSecond := visits / time1.Seconds(); perSecond < 45 || perSecond > 55 {
		t.Errorf("%.1f shoppers a second, want about 50", perSecond)
	}
}

func TestShelfGivesOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.add([]quantity{{1, 2}, {2, 5}})
	got := s.take([]quantity{{2, 1}, {1, 3}, {3, 1}})
	if diff := cmp.Diff([]quantity{{1, 2}, {2, 1}}, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int64]int64{1: 0, 2: 4}, s.content()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	products := []product{{ProductID: 1}, {ProductID: 2}}
	if diff := cmp.Diff([]quantity{{1, 10}}, s.lacking(products, 3, 10)); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
}

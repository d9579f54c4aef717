package physical_test

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"doortab/simulator/physical"
)

// The promised figures are those of 200,000 doors; here a smaller number guards them, with the room that chance needs.
func TestOrdersOfEachKindAreRightAndFewNeedAPerson(t *testing.T) {
	t.Parallel()
	for kind, target := range physical.Targets {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := physical.Measure(physical.Config{Kind: kind, Doors: guardedDoors, Seed: 4})
			if most := atMost(target.Wrong * float64(r.Settled)); r.Wrong > most {
				t.Errorf("%d of %d settled orders are wrong, want at most %d", r.Wrong, r.Settled, most)
			}
			if most := atMost(target.Reviews * float64(r.Doors)); r.Reviews > most {
				t.Errorf("%d of %d doors went to review, want at most %d", r.Reviews, r.Doors, most)
			}
			if r.Settled < r.Doors*3/4 {
				t.Errorf("only %d of %d doors made an order", r.Settled, r.Doors)
			}
		})
	}
}

// atMost is what a mean may come to by chance, three standard deviations up.
func atMost(mean float64) int { return int(math.Ceil(mean + 3*math.Sqrt(mean))) }

func TestWithoutNoiseEveryVerdictIsTheTruth(t *testing.T) {
	t.Parallel()
	for _, kind := range physical.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			quiet := physical.Noise{TagReads: 1, ScaleSigmaGrams: 1e-9}
			r := physical.Measure(physical.Config{Kind: kind, Doors: guardedDoors / 10, Seed: 1, Noise: quiet})
			if r.Wrong+r.Missed+r.Reviews+r.RestocksWrong+r.StockOff > 0 {
				t.Errorf("wrong without any noise: %+v", r)
			}
		})
	}
}

func TestTheSameSeedMakesTheSameReport(t *testing.T) {
	t.Parallel()
	config := physical.Config{Kind: physical.KindBoth, Doors: 2500, Seed: 9, Workers: 1}
	one := physical.Measure(config)
	config.Workers = 3
	if three := physical.Measure(config); one != three {
		t.Errorf("by one worker %+v, by three %+v", one, three)
	}
	config.Seed = 10
	if other := physical.Measure(config); other.Settled == one.Settled && other.Reviews == one.Reviews {
		t.Errorf("another seed made the same doors: %+v", other)
	}
}

func TestWhatShoppersDoIsSeen(t *testing.T) {
	t.Parallel()
	often := func(change func(*physical.Noise)) physical.Noise {
		n := physical.DefaultNoise()
		n.WrongLane, n.Foreign, n.HalfEmpty, n.Swapped = 0, 0, 0, 0
		change(&n)
		return n
	}
	cases := map[string]struct {
		noise  physical.Noise
		reason string
	}{
		"something foreign": {often(func(n *physical.Noise) { n.Foreign = 0.05 }), "foreign_object/gain_without_loss"},
		"half empty":        {often(func(n *physical.Noise) { n.HalfEmpty = 0.05 }), "unexplained_weight/no_whole_units"},
		"swapped":           {often(func(n *physical.Noise) { n.Swapped = 0.05 }), "evidence_disagrees/tag_gone_weight_unchanged"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := 0
			r := physical.Measure(physical.Config{
				Kind: physical.KindBoth, Doors: 2000, Seed: 1, Noise: c.noise,
				Review: func(reasons []string) {
					if strings.Contains(strings.Join(reasons, " "), c.reason) {
						seen++
					}
				},
			})
			if seen < 50 || r.Wrong > 0 {
				t.Errorf("%s in %d reviews, %d wrong orders", c.reason, seen, r.Wrong)
			}
		})
	}
}

func TestTheTableHasARowForEachKindAndSeed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reports, _, err := physical.MeasureAll(physical.Config{}, 300, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := len(physical.Kinds) * len(physical.Seeds); len(reports) != want || len(rows) != want+1 {
		t.Fatalf("%d reports and %d rows:\n%s", len(reports), len(rows), out.String())
	}
	for _, r := range reports {
		if r.Doors != 300 {
			t.Errorf("%+v", r)
		}
	}
}

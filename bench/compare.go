package bench

import (
	"context"
	"slices"
	"time"
)

// side is one design at work: it works for about d and returns what it did, events a second as a rule.
type side struct {
	name string
	work func(ctx context.Context, d time.Duration) (float64, error)
}

// spread is what the turns of one side gave.
type spread struct{ median, least, most float64 }

// detail adds the median and the edges to the details of a figure.
func (s spread) detail(details map[string]float64, name string) {
	details[name] = s.median
	s.edges(details, name)
}

func (s spread) edges(details map[string]float64, name string) {
	details[name+"_least"], details[name+"_most"] = s.least, s.most
}

// alternate lets the sides work in turn, A B A B, and returns what each gave.
func (l *Lab) alternate(ctx context.Context, sides ...side) ([]spread, error) {
	if err := l.calm(ctx); err != nil {
		return nil, err
	}
	rates := make([][]float64, len(sides))
	for turn := range l.slices {
		for i, s := range sides {
			left := time.Duration((l.slices-turn)*len(sides)-i) * l.slice
			rate, err := s.work(ctx, l.slice)
			if err != nil {
				return nil, err
			}
			rates[i] = append(rates[i], rate)
			l.say("turn %d of %d: %s %s, about %.0f s left", turn+1, l.slices, s.name, short(rate), (left - l.slice).Seconds())
		}
	}
	spreads := make([]spread, len(sides))
	for i := range sides {
		spreads[i] = spreadOf(rates[i])
	}
	return spreads, nil
}

// compare is [Lab.alternate] for the two designs, as a figure.
func (l *Lab) compare(
	ctx context.Context, unit string, doortab, usual func(context.Context, time.Duration) (float64, error),
) (Figure, error) {
	sides := []side{{"doortab", doortab}, {"usual", usual}}
	spreads, err := l.alternate(ctx, sides...)
	if err != nil {
		return Figure{}, err
	}
	f := newFigure(spreads[0].median, spreads[1].median, unit)
	for i, s := range sides {
		spreads[i].edges(f.Details, s.name)
	}
	f.Details["slices"], f.Details["slice_seconds"] = float64(l.slices), l.slice.Seconds()
	return f, nil
}

func spreadOf(rates []float64) spread {
	sorted := slices.Sorted(slices.Values(rates))
	middle := len(sorted) / 2
	s := spread{median: sorted[middle], least: sorted[0], most: sorted[len(sorted)-1]}
	if len(sorted)%2 == 0 {
		s.median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return s
}

// Package bench measures Doortab beside the usual design of the field, package usual, on private
// services that it starts for itself. Both work in turn, in short slices, on one server and with
// one stream of events, so that whatever else the machine does meets both; a figure is the median
// of its slices. docs/performance.md says what each part does and why it is fair.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Figure is what one part measured of both designs.
type Figure struct {
	Doortab float64 `json:"doortab"`
	Usual   float64 `json:"usual"`
	Ratio   float64 `json:"ratio"` // Doortab ÷ Usual
	Unit    string  `json:"unit"`  // of Doortab and Usual
	// Details are further figures by name; what each means is in docs/performance.md.
	Details map[string]float64 `json:"details"`
}

// newFigure keeps a ratio of 0 where the usual design has no figure.
func newFigure(doortab, usual float64, unit string) Figure {
	f := Figure{Doortab: doortab, Usual: usual, Unit: unit, Details: map[string]float64{}}
	f.Ratio = ratio(doortab, usual)
	return f
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// part is one thing to measure.
type part struct {
	name, about string
	run         func(context.Context, *Lab) (Figure, error)
	goals       []goal
}

// parts in the order in which a full run takes them.
var parts = []part{settlePart, hotPart, mqttPart, latencyPart, duplicatesPart, growthPart, drainPart, memoryPart, claimsPart}

// Part names one part and says what it measures.
type Part struct{ Name, About string }

// Parts lists all parts in the order in which they run.
func Parts() []Part {
	list := make([]Part, len(parts))
	for i, p := range parts {
		list[i] = Part{p.name, p.about}
	}
	return list
}

// Options says what to measure and how long.
type Options struct {
	// Parts are the names of those to run; all where it is empty.
	Parts []string
	// Quick takes less data and shorter slices: an impression within seconds, not a figure to quote.
	Quick bool
	// Seconds is how long each design works in each part, warm-up and preparation aside; 0 leaves it to the part.
	Seconds float64
	// Program is the file of the doortab program, which the parts behind a broker start as processes of their own.
	Program string
	// Progress is told what runs and how far it is.
	Progress io.Writer
}

// Run measures part after part and returns what it has, also beside an error. The services that
// it starts are gone when it returns. It fails on a part that does not exist.
func Run(ctx context.Context, o Options) (report Report, err error) {
	chosen, err := choose(o.Parts)
	if err != nil {
		return report, err
	}
	lab := newLab(o)
	if err := lab.start(ctx); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lab.close(ctx)) }()
	report.Quick = o.Quick
	for i, p := range chosen {
		lab.begin(p, i+1, len(chosen))
		figure, err := p.run(ctx, lab)
		if err != nil {
			return report, fmt.Errorf("part %s: %w", p.name, err)
		}
		report.results = append(report.results, result{p, figure})
	}
	return report, nil
}

func choose(names []string) ([]part, error) {
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("no part %q: there are %s", name, strings.Join(partNames(), ", "))
		}
	}
	if len(names) == 0 {
		return parts, nil
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.Contains(names, p.name) }), nil
}

func partNames() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

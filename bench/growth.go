package bench

import (
	"context"
	"errors"
)

var growthPart = part{
	name: "growth", about: "an empty database, then one with years of books", run: measureGrowth,
	goals: []goal{{label: "growth: full ÷ empty", value: byDoortab, must: 0.8, aim: 0.95}},
}

// measureGrowth lets both designs settle the events of as many cabinets in an empty database and in one where a hundred times as
// many have a past, all four in turn; and then in the full one those of all its cabinets.
func measureGrowth(ctx context.Context, l *Lab) (Figure, error) {
	empty, err := l.newDuel(ctx, newPast(l.cabinets, 0), l.cabinets)
	if err != nil {
		return Figure{}, err
	}
	full, err := l.newDuel(ctx, newPast(l.grown, l.pastOfEach), l.cabinets)
	if err != nil {
		return Figure{}, errors.Join(err, empty.close())
	}
	f, err := l.compareGrowth(ctx, empty, full)
	if err != nil {
		return f, errors.Join(err, empty.close(), full.close())
	}
	return f, errors.Join(empty.end(ctx, l), full.end(ctx, l))
}

func (l *Lab) compareGrowth(ctx context.Context, empty, full *duel) (Figure, error) {
	sides := []side{
		{"doortab_empty", empty.doortab}, {"usual_empty", empty.usual}, {"doortab_full", full.doortab}, {"usual_full", full.usual},
	}
	spreads, err := l.alternate(ctx, sides...)
	if err != nil {
		return Figure{}, err
	}
	f := newFigure(ratio(spreads[2].median, spreads[0].median), ratio(spreads[3].median, spreads[1].median), "full ÷ empty")
	for i, s := range sides {
		spreads[i].detail(f.Details, s.name)
	}
	f.Details["ratio_empty"] = ratio(spreads[0].median, spreads[1].median)
	f.Details["ratio_full"] = ratio(spreads[2].median, spreads[3].median)
	f.Details["stock_rows"] = float64(l.grown * products)
	f.Details["past_settlements"] = float64(l.grown * l.pastOfEach)
	full.cost.perEvent(f.Details, "full_")
	return f, l.everywhere(ctx, full, f.Details)
}

// everywhere spreads the events over all cabinets, so that hardly a page of the tables serves two of them.
func (l *Lab) everywhere(ctx context.Context, full *duel, details map[string]float64) error {
	l.say("now with events of all %d cabinets", l.grown)
	full.events.everywhere(l.grown)
	full.same.everywhere(l.grown)
	spreads, err := l.alternate(ctx, side{"doortab everywhere", full.doortab}, side{"usual everywhere", full.usual})
	if err != nil {
		return err
	}
	details["doortab_everywhere"], details["usual_everywhere"] = spreads[0].median, spreads[1].median
	details["ratio_everywhere"] = ratio(spreads[0].median, spreads[1].median)
	return nil
}

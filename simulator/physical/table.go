package physical

import (
	"fmt"
	"io"
)

// Seeds are the three that the figures are promised for.
var Seeds = []uint64{1, 2, 3}

// Target is what a kind of cabinet must keep.
type Target struct {
	Wrong   float64 // share of settled orders that don't equal the truth
	Reviews float64 // share of doors that a person must decide
}

// Targets by kind. A camera that only counts has none: it is as good as it is.
var Targets = map[Kind]Target{
	KindWeight: {Wrong: 1.0 / 2000, Reviews: 0.03},
	KindRFID:   {Wrong: 1.0 / 2000, Reviews: 0.03},
	KindBoth:   {Wrong: 1.0 / 10000, Reviews: 0.01},
}

// WrongShare is the share of settled orders that were wrong.
func (r Report) WrongShare() float64 { return share(r.Wrong, r.Settled) }

// ReviewShare is the share of all doors that went to a person.
func (r Report) ReviewShare() float64 { return share(r.Reviews, r.Doors) }

// StockOffShare is the share of products whose books differed from the shelf before a restock.
func (r Report) StockOffShare() float64 { return share(r.StockOff, r.StockRows) }

// Meets reports whether the kind's target is kept; one without a target always is.
func (r Report) Meets() bool {
	target, ok := Targets[r.Kind]
	return !ok || r.WrongShare() <= target.Wrong && r.ReviewShare() <= target.Reviews
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// MeasureAll measures every kind with every one of Seeds, doors each, and writes a table to out, a row when it is known.
// It says on progress, which may be io.Discard, how far it is. config.Kind, config.Doors and config.Seed are set here. It
// returns the reports and whether all of them meet their targets; the error is that of writing.
func MeasureAll(config Config, doors int, out, progress io.Writer) (reports []Report, met bool, err error) {
	met = true
	if _, err := fmt.Fprintln(out, header); err != nil {
		return nil, false, fmt.Errorf("write the table of the physical simulation: %w", err)
	}
	for _, kind := range Kinds {
		for _, seed := range Seeds {
			config.Kind, config.Doors, config.Seed = kind, doors, seed
			config.Done = func(done int) { fmt.Fprintf(progress, "\r%s, seed %d: %d of %d doors ", kind, seed, done, doors) }
			report := Measure(config)
			reports, met = append(reports, report), met && report.Meets()
			fmt.Fprint(progress, "\r")
			if err := report.write(out); err != nil {
				return nil, false, fmt.Errorf("write the table of the physical simulation: %w", err)
			}
		}
	}
	return reports, met, nil
}

const (
	header = "kind    seed    doors  settled  wrong  wrong share  reviews  review share  missed  " +
		"restocks off  stock rows off  units off  targets"
	row = "%-6s  %4d  %7d  %7d  %5d  %11s  %7d  %11.2f%%  %6d  %5d of %-5d  %13.2f%%  %8.2f%%  %s\n"
)

func (r Report) write(out io.Writer) error {
	verdict := "none set"
	if _, ok := Targets[r.Kind]; ok {
		verdict = "met"
		if !r.Meets() {
			verdict = "MISSED"
		}
	}
	_, err := fmt.Fprintf(out, row, r.Kind, r.Seed, r.Doors, r.Settled, r.Wrong, oneIn(r.WrongShare()), r.Reviews, 100*r.ReviewShare(),
		r.Missed, r.RestocksWrong, r.Restocks, 100*r.StockOffShare(), 100*share(int(r.UnitsOff), int(r.UnitsOnAll)), verdict)
	return err
}

func oneIn(share float64) string {
	if share == 0 {
		return "none"
	}
	return fmt.Sprintf("1 in %.0f", 1/share)
}

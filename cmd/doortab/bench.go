package main

import (
	"context"
	"errors"

	"doortab/bench"
)

type benchCommand struct {
	Parts   []string `arg:"" optional:"" help:"Parts to run; all where none is named."`
	JSON    bool     `name:"json" help:"Print one JSON object instead of a table."`
	Quick   bool     `help:"Short slices on little data: an impression, not figures to quote."`
	Seconds float64  `default:"0" min:"0" max:"3600" help:"How long each design works in each part; 0 leaves it to the part."`
}

// Run is called by the command line. Interrupted, it prints what it has.
func (b *benchCommand) Run(ctx context.Context, c *console) error {
	report, err := bench.Run(ctx, bench.Options{Parts: b.Parts, Quick: b.Quick, Seconds: b.Seconds, Progress: c.log})
	if err != nil && ctx.Err() != nil {
		err = errors.New("stopped before all parts had run")
	}
	if err != nil && report.Empty() {
		return err
	}
	if b.JSON {
		return errors.Join(err, report.WriteJSON(c.out))
	}
	return errors.Join(err, report.WriteTable(c.out))
}

// Help lists the parts below the flags.
func (b *benchCommand) Help() string {
	text := "Each figure stands beside the usual design, measured in the same run on the same private services. Parts:\n"
	for _, part := range bench.Parts() {
		text += "\n" + part.Name + ": " + part.About + "\n"
	}
	return text
}

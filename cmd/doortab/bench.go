package main

import (
	"context"
	"errors"
	"os"

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
	program, err := os.Executable()
	if err != nil {
		return err
	}
	report, err := bench.Run(ctx, bench.Options{
		Parts: b.Parts, Quick: b.Quick, Seconds: b.Seconds, Program: program, Progress: c.log,
	})
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

// benchUsualCommand is the usual design as a process behind a broker: what `doortab bench` measures `doortab serve` beside.
// Nobody else starts it.
type benchUsualCommand struct {
	DatabaseDSN string `name:"database-dsn" required:"" help:"Database of the usual design."`
	RedisURL    string `name:"redis-url" required:"" help:"Redis of its tokens."`
	MQTTURL     string `name:"mqtt-url" required:"" help:"Broker."`
	Workers     int    `required:"" min:"1" max:"1000" help:"Events settled at one time."`
}

// Run is called by the command line.
func (b *benchUsualCommand) Run(ctx context.Context, c *console) error {
	return bench.Consume(ctx, bench.ConsumerConfig{
		DSN: b.DatabaseDSN, RedisURL: b.RedisURL, MQTTURL: b.MQTTURL, Workers: b.Workers, Logger: newLogger(c, "info"),
	})
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"doortab/simulator"
	"doortab/simulator/physical"
)

// fleetFlags say what a simulated fleet does.
type fleetFlags struct {
	Duration time.Duration `min:"0s" max:"8760h" help:"How long shoppers come, such as 20s; until interrupted where it is 0."`
	Cabinets int           `default:"50" min:"1" max:"100000" help:"Cabinets in the fleet."`
	Rate     float64       `default:"60" min:"0.001" max:"100000" help:"Closed doors a second of the whole fleet; a cabinet closes at most ten."`
	Kinds    simulator.Mix `default:"items=4,weight=3,rfid=1,both=2" help:"Parts of the fleet that count, weigh, read tags, or both."`
	Miscount float64       `default:"0.02" min:"0" max:"1" help:"Share of lines that staff type or count wrong by one."`
	Faults   faultLevel    `default:"mild" negatable:"" min:"0" max:"10" help:"Duplicates, cut connections, garbage: off, mild, wild, or a number."`
	Seed     uint64        `min:"0" max:"18446744073709551615" help:"Makes shoppers and faults come in the same order again; random where 0."`
}

type simulateCommand struct {
	fleetFlags
	HTTP     string        `name:"http" default:"http://127.0.0.1:8080" help:"Where the REST API is."`
	MQTT     string        `name:"mqtt" default:"tcp://127.0.0.1:1883" help:"Where cabinets connect."`
	Token    string        `required:"" help:"A token of role admin: the fleet is set up through REST."`
	CAFile   string        `name:"ca-file" placeholder:"FILE" help:"PEM file of the authority behind both, where they are encrypted; else the system's."`
	Resend   time.Duration `default:"10s" min:"100ms" max:"24h" help:"A cabinet's first wait for a receipt; it doubles up to 30 times as long."`
	LogLevel string        `enum:"debug,info,warn,error" default:"warn" help:"Least level that is logged: ${enum}."`
}

// Run is called by the command line.
func (s *simulateCommand) Run(ctx context.Context, c *console) error {
	config := s.config(c, newLogger(c, s.LogLevel))
	config.BaseURL, config.BrokerURL, config.Token, config.CAFile = s.HTTP, s.MQTT, s.Token, s.CAFile
	config.FirstResend, config.LastResend = s.Resend, 30*s.Resend
	result, err := simulate(ctx, config)
	if err != nil {
		return err
	}
	if err := result.WriteSummary(c.out); err != nil {
		return err
	}
	if !result.Clean() {
		return errFound
	}
	return nil
}

func (f *fleetFlags) config(c *console, log *slog.Logger) simulator.Config {
	noise := physical.DefaultNoise()
	noise.Miscount = f.Miscount
	return simulator.Config{
		Kinds: f.Kinds, Noise: noise,
		Cabinets: f.Cabinets, Rate: f.Rate, Faults: int(f.Faults), Seed: f.Seed, Duration: f.Duration,
		Out: c.out, Logger: log,
	}
}

func simulate(ctx context.Context, config simulator.Config) (simulator.Result, error) {
	fleet, err := simulator.New(config)
	if err != nil {
		return simulator.Result{}, err
	}
	if err := fleet.Provision(ctx); err != nil {
		if ctx.Err() != nil { // interrupted before the first shopper came
			return simulator.Result{}, nil
		}
		return simulator.Result{}, err
	}
	return fleet.Run(ctx)
}

// faultLevel is 0 for none, 1 mild, 2 and more wilder; as a flag without a value it is mild.
type faultLevel int

// IsBool lets the flag stand without a value.
func (*faultLevel) IsBool() bool { return true }

// Decode reads the flag's value.
func (l *faultLevel) Decode(ctx *kong.DecodeContext) error {
	text := ""
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		text = fmt.Sprint(ctx.Scan.Pop().Value)
	}
	switch strings.ToLower(text) {
	case "", "true", "on", "mild", "yes":
		*l = 1
	case "false", "off", "none", "no":
		*l = 0
	case "wild":
		*l = 3
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 10 {
			return fmt.Errorf("faults %q: give off, mild, wild or a number from 0 to 10", text)
		}
		*l = faultLevel(n)
	}
	return nil
}

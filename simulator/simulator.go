package simulator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	randv2 "math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"doortab/simulator/physical"
)

// Config says where Doortab is and what the fleet does to it. The zero value of a field takes its default.
type Config struct {
	BaseURL   string // of the REST API: "http://127.0.0.1:8080"
	BrokerURL string // tcp:// or mqtt://, or tls://, ssl:// or mqtts:// for an encrypted one
	Token     string // an admin's: provisioning makes products, cabinets and credentials
	CAFile    string // PEM file of the authority behind an https API and an encrypted broker; "" for the system's

	Cabinets    int     // default 50
	FirstDevice int64   // deviceId of the first cabinet, the others follow it; default 1001
	Rate        float64 // door-close events per second of the whole fleet, at most 10 a cabinet; default 60
	Faults      int     // 0 none, 1 mild, 2 and more wilder
	Kinds       Mix     // what the cabinets see with; default DefaultMix
	// Noise is how far sensors and people are from what the catalogue and the books say; physical.DefaultNoise where it is
	// the zero Noise.
	Noise physical.Noise
	Seed  uint64 // of shoppers, staff and faults; 0 takes a random one

	Duration time.Duration // how long shoppers come; 0 until the context of Run ends
	Drain    time.Duration // the longest wait for the last receipts; default 8 s, which leaves 2 of 10 s to disconnect

	// FirstResend is the wait before an event is sent again, doubling up to LastResend; default 10 s and 5 min, as R2
	// has them. A short run with faults needs a faster scale.
	FirstResend, LastResend time.Duration

	Out    io.Writer    // gets one status line a second; default io.Discard
	Logger *slog.Logger // default slog.Default()
}

func (c Config) withDefaults() Config {
	c.Cabinets = orDefault(c.Cabinets, 50)
	c.FirstDevice = orDefault(c.FirstDevice, 1001)
	c.Rate = orDefault(c.Rate, 60)
	c.Drain = orDefault(c.Drain, 8*time.Second)
	c.FirstResend = orDefault(c.FirstResend, 10*time.Second)
	c.LastResend = max(orDefault(c.LastResend, 5*time.Minute), c.FirstResend)
	c.Seed = orDefault(c.Seed, randv2.Uint64()) //nolint:gosec // luck, not a secret
	if c.Kinds == nil {
		c.Kinds = DefaultMix()
	}
	if c.Noise == (physical.Noise{}) {
		c.Noise = physical.DefaultNoise()
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// check refuses what no fleet can do.
func (c Config) check() error {
	switch {
	case !(c.Rate >= 0 && c.Rate <= maxRate): // NaN is in no range
		return fmt.Errorf("simulator: rate %v: give 0 to %d doors a second", c.Rate, maxRate)
	case c.Kinds != nil && c.Kinds.parts() < 1:
		return errors.New("simulator: no kind of cabinet has a part of the fleet: give one")
	case c.Cabinets < 0 || c.FirstDevice < 0 || c.Faults < 0:
		return fmt.Errorf("simulator: %d cabinets from %d on with faults %d: give none below 0", c.Cabinets, c.FirstDevice, c.Faults)
	case c.Duration < 0 || c.Drain < 0 || c.FirstResend < 0 || c.LastResend < 0:
		return errors.New("simulator: a duration, drain or resend below 0: give 0 for its default, or more")
	default:
		return nil
	}
}

const maxRate = 100_000

func orDefault[T int | int64 | uint64 | float64 | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// Simulator is one fleet and its books. Make it with New, call Provision once and then Run once.
type Simulator struct {
	config   Config
	broker   endpoint
	api      *client
	runID    string // begins every closeEventId that this run makes, so that no other run's are mistaken for its own
	products []product
	fleet    []*device
	books    *books
	faults   *tally
	staff    *staff
	operator *operator
	taps     atomic.Int64 // door sessions that shoppers asked for
	sessions atomic.Int64 // and doors that these opened
}

// New checks the configuration. It connects to nothing.
func New(config Config) (*Simulator, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	broker, err := parseBroker(config.BrokerURL)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("simulator: the address of the REST API is missing or wrong: write it as http://127.0.0.1:8080")
	}
	if config.Token == "" {
		return nil, errors.New("simulator: no token: give it one of role admin, from doortab token create --role admin")
	}
	if broker.roots, err = authorities(config.CAFile); err != nil {
		return nil, err
	}
	runID, err := newRunID()
	if err != nil {
		return nil, err
	}
	return &Simulator{
		config: config, broker: broker, api: newClient(config.BaseURL, config.Token, broker.roots), runID: runID,
		books: newBooks(), faults: newTally(),
	}, nil
}

// newRunID doesn't depend on the seed: a second run on the same database must not use the ids of the first.
func newRunID() (string, error) {
	var b [5]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("simulator: name the run: %w", err)
	}
	return "sim-" + hex.EncodeToString(b[:]), nil
}

// Run lets shoppers come until Duration is over or ctx ends, then waits at most Drain for the last receipts, and compares
// the books. The error says why the books could not be compared; differences between them are no error but the Result.
func (s *Simulator) Run(ctx context.Context) (Result, error) {
	if len(s.fleet) == 0 {
		return Result{}, errors.New("simulator: no cabinets: call Provision first")
	}
	defer s.api.http.CloseIdleConnections()
	from, err := s.markStart(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // interrupted before the first shopper came
		return Result{}, nil
	case err != nil:
		return Result{}, err
	}
	s.sayPace()
	behind := s.live(ctx)
	_, _ = fmt.Fprintf(s.config.Out, "comparing the books of %d events\n", s.books.sofar().published)
	got, err := s.readWithin(context.WithoutCancel(ctx), from)
	if err != nil {
		return Result{}, fmt.Errorf("simulator: compare the books: %w", err)
	}
	want := s.expected(behind)
	return s.result(compare(want, got), s.figures(want, got)), nil
}

// sayPace tells whoever asked for more doors than the fleet has hands for.
func (s *Simulator) sayPace() {
	if pace := s.pace(); pace < s.config.Rate {
		_, _ = fmt.Fprintf(s.config.Out, "%d cabinets close at most %.0f doors a second, not %g: more of them close more.\n",
			len(s.fleet), pace, s.config.Rate)
	}
}

// live is the fleet's life until every cabinet is disconnected: whoever interrupts the shoppers still wants the receipts. From
// then on no receipt comes, so that the fleet's books stand still while Doortab's are read.
func (s *Simulator) live(ctx context.Context) (behind bool) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, d := range s.fleet {
		running.Go(func() { d.run(life) })
	}
	running.Go(func() { s.report(life) })
	s.staff.stockUp(ctx)
	s.trade(ctx, life)
	behind = s.behind(time.Now())
	end()
	running.Wait()
	return behind
}

// behind tells, at the end of the drain, that outboxes aren't empty and Doortab was still answering in the second half: it has
// too much to do, and lost nothing yet.
func (s *Simulator) behind(now time.Time) bool {
	return !s.idle() && now.Sub(s.books.lastReceipt()) < s.config.Drain/2
}

// readWithin reads Doortab's books in a time that grows with them, so that a run always ends.
func (s *Simulator) readWithin(ctx context.Context, from start) (*theirs, error) {
	limit := 10*time.Second + time.Duration(s.books.sofar().published)*2*time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, err := s.read(ctx, from)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("not read within %s: %w", limit, err)
	}
	return got, err
}

// trade lets shoppers and staff work until the time is over, and then drains: what is held back is sent, what is unanswered
// is sent again soon, until every outbox is empty. A restock that was begun is finished: its units may be on the books.
func (s *Simulator) trade(ctx, life context.Context) {
	open := ctx
	if s.config.Duration > 0 {
		var closing context.CancelFunc
		open, closing = context.WithTimeout(ctx, s.config.Duration)
		defer closing()
	}
	drain, end := context.WithCancel(life)
	defer end()
	var working sync.WaitGroup
	for worker := range restockers {
		working.Go(func() { s.staff.work(open, drain, worker) })
	}
	working.Go(func() { s.operator.work(open, drain) })
	s.shop(open)
	timer := time.AfterFunc(s.config.Drain, end)
	defer timer.Stop()
	for _, d := range s.fleet {
		d.hurry()
	}
	working.Wait()
	s.settleDown(drain)
}

// settleDown waits until every outbox is empty and no further receipts come: those to copies are compared too.
func (s *Simulator) settleDown(ctx context.Context) {
	const quiet = 300 * time.Millisecond
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !s.idle() || time.Since(s.books.lastReceipt()) < quiet {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Simulator) idle() bool {
	for _, d := range s.fleet {
		if d.waiting() > 0 {
			return false
		}
	}
	return true
}

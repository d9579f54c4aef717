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
)

// Config says where Doortab is and what the fleet does to it. The zero value of a field takes its default.
type Config struct {
	BaseURL   string // of the REST API: "http://127.0.0.1:8080"
	BrokerURL string // tcp:// or mqtt://, or tls://, ssl:// or mqtts:// for an encrypted one
	Token     string // an admin's: provisioning makes products, cabinets and credentials
	CAFile    string // PEM file of the authority behind an https API and an encrypted broker; "" for the system's

	Cabinets    int     // default 50
	FirstDevice int64   // deviceId of the first cabinet, the others follow it; default 1001
	Rate        float64 // door-close events per second of the whole fleet; default 60
	Faults      int     // 0 none, 1 mild, 2 and more wilder
	Seed        uint64  // of shoppers, staff and faults; 0 takes a random one

	Duration time.Duration // how long shoppers come; 0 until the context of Run ends
	Drain    time.Duration // the longest wait for the last receipts; default 10 s

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
	c.Drain = orDefault(c.Drain, 10*time.Second)
	c.FirstResend = orDefault(c.FirstResend, 10*time.Second)
	c.LastResend = max(orDefault(c.LastResend, 5*time.Minute), c.FirstResend)
	c.Seed = orDefault(c.Seed, randv2.Uint64()) //nolint:gosec // luck, not a secret
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func orDefault[T int | int64 | uint64 | float64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
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
	taps     atomic.Int64 // door sessions that shoppers asked for
	sessions atomic.Int64 // and doors that these opened
}

// New checks the configuration. It connects to nothing.
func New(config Config) (*Simulator, error) {
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
	// Who interrupts the shoppers still wants the receipts and the comparison.
	defer s.api.http.CloseIdleConnections()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	from, err := s.markStart(life)
	if err != nil {
		return Result{}, err
	}
	for _, d := range s.fleet {
		running.Go(func() { d.run(life) })
	}
	running.Go(func() { s.report(life) })
	s.trade(ctx, life)
	got, err := s.read(life, from)
	if err != nil {
		return Result{}, fmt.Errorf("simulator: compare the books: %w", err)
	}
	return s.result(compare(s.expected(), got)), nil
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

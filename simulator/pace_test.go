package simulator

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"doortab/simulator/physical"
)

// fleetOf makes cabinets that are connected to nothing: whatever their doors report stays in their outboxes.
func fleetOf(t *testing.T, cabinets int, rate float64) *Simulator {
	t.Helper()
	s, err := New(Config{
		BaseURL: "http://127.0.0.1:1", BrokerURL: "tcp://127.0.0.1:1", Token: "t", Cabinets: cabinets, Rate: rate, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.products = testProducts()
	around := &surroundings{first: time.Hour, last: time.Hour, books: s.books, faults: s.faults}
	for i := range cabinets {
		s.fleet = append(s.fleet, newDevice(around, s.config.FirstDevice+int64(i), testCabinet(physical.Kinds[i%len(physical.Kinds)])))
	}
	return s
}

func TestACabinetHasOneDoor(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{3000, maxRate} {
		synctest.Test(t, func(t *testing.T) {
			s := fleetOf(t, 5, rate)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			s.shop(ctx)
			if n := s.books.sofar().published; n < 50 || n > 5*21 {
				t.Errorf("5 cabinets closed %d doors in 2 s at rate %g, want at most 10 a second each", n, rate)
			}
		})
	}
}

func TestACabinetWithoutReceiptsLetsNobodyIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fleetOf(t, 3, 60)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.shop(ctx)
		if n := s.books.sofar().published; n != 3*maxWaiting {
			t.Errorf("3 cabinets reported %d doors without an answer, want %d each", n, maxWaiting)
		}
	})
}

// A shopper who is always late must not hide the end.
func TestShoppersStopAtTheEndWhateverTheRate(t *testing.T) {
	t.Parallel()
	s := fleetOf(t, 1, maxRate)
	s.config.Rate = math.NaN()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.shop(ctx)
}

// An event without an answer is lost where Doortab has nothing else to do.
func TestWhetherDoortabIsBehind(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		waiting bool
		silent  time.Duration // since the last receipt
		want    bool
	}{
		{"still answering", true, time.Second, true},
		{"silent for most of the drain", true, 5 * time.Second, false},
		{"everything is answered", false, time.Second, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fleetOf(t, 1, 60)
			key := eventKey{s.fleet[0].id, "e"}
			s.books.open(&entry{key: key})
			if c.waiting {
				s.fleet[0].post(&message{id: key.id, dueAt: noon})
			}
			s.books.last = noon
			behind := s.behind(noon.Add(c.silent))
			s.staff = &staff{}
			entries := s.expected(behind).entries
			if behind != c.want || entries[0].pending != c.want {
				t.Errorf("behind %t, pending %t; want %t", behind, entries[0].pending, c.want)
			}
		})
	}
}

func TestAConfigurationThatNoFleetCanDoIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]Config{
		"rate not a number":       {Rate: math.NaN()},
		"rate infinite":           {Rate: math.Inf(1)},
		"rate negative":           {Rate: -1},
		"cabinets negative":       {Cabinets: -1},
		"duration negative":       {Duration: -time.Second},
		"resend negative":         {FirstResend: -time.Second},
		"no part of any kind":     {Kinds: Mix{physical.KindItems: 0}},
		"faults negative":         {Faults: -1},
		"more doors than 100,000": {Rate: 100_001},
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.BaseURL, config.BrokerURL, config.Token = "http://127.0.0.1:1", "tcp://127.0.0.1:1", "t"
			if _, err := New(config); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}

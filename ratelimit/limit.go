package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const maxCalls = 1_000_000 // of a rate or a burst

// Limit is how often something may happen: Rate times in each Period for as long as it likes, and Burst times at once after a
// rest. The zero value is no limit.
type Limit struct {
	Rate   int // 1 to 1,000,000
	Burst  int // 1 to 1,000,000
	Period time.Duration
}

var periods = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

var errLimit = errors.New("write a limit as 10/s:100 (10 a second, 100 at once; also /m and /h), or 0 for none")

// UnmarshalText reads a limit as it is set: 10/s:100, 300/m, 0. Without a burst it is the rate.
func (l *Limit) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*l = Limit{}
		return nil
	}
	steady, burst, hasBurst := strings.Cut(string(text), ":")
	rate, per, _ := strings.Cut(steady, "/")
	if !hasBurst {
		burst = rate
	}
	parsed := Limit{Period: periods[per]}
	var rateErr, burstErr error
	parsed.Rate, rateErr = calls(rate)
	parsed.Burst, burstErr = calls(burst)
	if parsed.Period == 0 || rateErr != nil || burstErr != nil {
		return fmt.Errorf("%q: %w", text, errLimit)
	}
	*l = parsed
	return nil
}

func calls(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxCalls {
		return 0, errLimit
	}
	return n, nil
}

// String is the limit as [Limit.UnmarshalText] reads it.
func (l Limit) String() string {
	for name, period := range periods {
		if l.Period == period {
			return fmt.Sprintf("%d/%s:%d", l.Rate, name, l.Burst)
		}
	}
	return "0"
}

func (l Limit) off() bool { return l == Limit{} }

// full is how long it takes from nothing left to the whole burst.
func (l Limit) full() time.Duration {
	return time.Duration(float64(l.Period) * float64(l.Burst) / float64(l.Rate))
}

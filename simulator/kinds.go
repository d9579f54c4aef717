package simulator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"doortab/simulator/physical"
)

// Mix says how many parts of a fleet are of each kind: with items=4 and rfid=1, four cabinets of five count what is taken
// and one reads tags.
type Mix map[physical.Kind]int

// DefaultMix has every kind.
func DefaultMix() Mix {
	return Mix{physical.KindItems: 4, physical.KindWeight: 3, physical.KindRFID: 1, physical.KindBoth: 2}
}

// UnmarshalText reads items=4,weight=3,rfid=1,both=2. A kind that isn't named has no part, one without a number has one.
func (m *Mix) UnmarshalText(text []byte) error {
	mix := Mix{}
	for field := range strings.SplitSeq(string(text), ",") {
		name, number, given := strings.Cut(strings.TrimSpace(field), "=")
		kind, parts := physical.Kind(name), 1
		if !slices.Contains(physical.Kinds, kind) {
			return fmt.Errorf("kind %q: items, weight, rfid and both are known", name)
		}
		if given {
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 || n > maxParts {
				return fmt.Errorf("kind %s: %q parts of the fleet, give 0 to %d", kind, number, maxParts)
			}
			parts = n
		}
		if _, twice := mix[kind]; twice {
			return fmt.Errorf("kind %s is there twice", kind)
		}
		mix[kind] = parts
	}
	if mix.parts() == 0 {
		return errors.New("no kind of cabinet has a part of the fleet: give items=1 or the like")
	}
	*m = mix
	return nil
}

const maxParts = 1_000_000

func (m Mix) parts() (sum int) {
	for _, kind := range physical.Kinds {
		sum += m[kind]
	}
	return sum
}

// deal gives each of n cabinets its kind, so that the first few are as mixed as all of them.
func (m Mix) deal(n int) []physical.Kind {
	due := make(map[physical.Kind]int, len(physical.Kinds))
	kinds := make([]physical.Kind, n)
	for i := range kinds {
		next := physical.Kinds[0]
		for _, kind := range physical.Kinds {
			if due[kind] += m[kind]; due[kind] > due[next] {
				next = kind
			}
		}
		due[next] -= m.parts()
		kinds[i] = next
	}
	return kinds
}

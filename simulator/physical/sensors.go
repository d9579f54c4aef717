package physical

import (
	"math"
	"math/rand/v2"
	"time"

	"doortab/cabinet"
)

// scale of one lane. It trembles from reading to reading and drifts over hours.
type scale struct {
	noise  Noise
	random *rand.Rand
	drift  float64       // grams that it is off by now
	rate   float64       // grams an hour
	left   time.Duration // until the rate changes
}

func newScale(noise Noise, random *rand.Rand) scale {
	return scale{noise: noise, random: random}
}

func (s *scale) pass(d time.Duration) {
	for d > 0 {
		if s.left <= 0 {
			s.left = time.Hour
			s.rate = s.noise.DriftGramsPerHour * (2*s.random.Float64() - 1)
		}
		step := min(d, s.left)
		s.drift += s.rate * step.Hours()
		s.left -= step
		d -= step
	}
}

// read weighs in whole grams.
func (s *scale) read(load float64) int64 {
	return int64(math.Round(load + s.drift + s.noise.ScaleSigmaGrams*s.random.NormFloat64()))
}

func (s *shelf) pass(d time.Duration) {
	for i := range s.scales {
		s.scales[i].pass(d)
	}
}

// reading is what all sensors see of the closed cabinet.
type reading struct {
	grams []int64
	tags  []string
}

func (s *shelf) read() reading {
	var r reading
	if s.kind.weighs() {
		for i := range s.lanes {
			r.grams = append(r.grams, s.scales[i].read(s.load(i)))
		}
	}
	if s.kind.tagged() {
		for _, tag := range s.tags() {
			if s.seen() {
				r.tags = append(r.tags, tag)
			}
		}
	}
	return r
}

// seen: any of the reads of a tag saw it.
func (s *shelf) seen() bool {
	for range s.noise.TagReads {
		if s.random.Float64() >= s.noise.TagMiss {
			return true
		}
	}
	return false
}

// event is what the cabinet reports of a door.
func (s *shelf) event(kind cabinet.Kind, before, after reading, changed []int64) *cabinet.Event {
	e := &cabinet.Event{
		CloseEventID: "e", DeviceID: 1, Kind: kind, UserID: 1,
		HasItems: s.kind == KindItems, HasWeights: before.grams != nil,
		HasRFID: s.kind.tagged(),
		RFID:    cabinet.RFID{Before: before.tags, After: after.tags},
	}
	for i := range before.grams {
		e.Weights = append(e.Weights, cabinet.Weight{Lane: i + 1, BeforeGrams: before.grams[i], AfterGrams: after.grams[i]})
	}
	if e.HasItems {
		e.Items = s.camera(changed)
	}
	return e
}

// camera counts the units of each product that left or came, at times one too many or too few, and is then less sure of
// itself more often than not.
func (s *shelf) camera(changed []int64) []cabinet.Item {
	var items []cabinet.Item
	for i, n := range changed {
		if n == 0 {
			continue
		}
		confidence := 0.85 + 0.15*s.random.Float64()
		if s.random.Float64() < s.noise.CameraWrong {
			n += 2*int64(s.random.IntN(2)) - 1
			confidence = 0.6 + 0.4*s.random.Float64()
		}
		if n > 0 {
			items = append(items, cabinet.Item{ProductID: s.products[i].ProductID, Quantity: n, Confidence: confidence})
		}
	}
	return items
}

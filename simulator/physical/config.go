package physical

import "time"

// Kind says what a cabinet sees with.
type Kind string

// The kinds of cabinets.
const (
	KindItems  Kind = "items"  // a camera that counts
	KindWeight Kind = "weight" // a scale under each lane
	KindRFID   Kind = "rfid"   // antennas and a tag on each unit
	KindBoth   Kind = "both"   // scales and antennas
)

// Kinds are all of them, in the order in which reports show them.
var Kinds = []Kind{KindItems, KindWeight, KindRFID, KindBoth}

func (k Kind) weighs() bool { return k == KindWeight || k == KindBoth }

func (k Kind) tagged() bool { return k == KindRFID || k == KindBoth }

// Config says what to simulate.
type Config struct {
	Kind  Kind
	Doors int // sale and restock doors together
	Seed  uint64
	// Workers run cabinets side by side; 0 for as many as the machine has processors. The report doesn't depend on it.
	Workers int
	Noise   Noise                  // DefaultNoise where it is the zero Noise
	Catalog Catalog                // DefaultCatalog where it is the zero Catalog
	Done    func(doors int)        // called now and then with the doors that are done; nil for nobody
	Wrong   func(Mistake)          // called for each wrong order, one call at a time; nil for nobody
	Review  func(reasons []string) // called for each review, one call at a time; nil for nobody
}

// Noise is how far reality is from what the catalogue says, and what people do.
type Noise struct {
	ScaleSigmaGrams   float64 // of one reading
	DriftGramsPerHour float64 // each lane's scale drifts at a rate between minus this and this, a new one each hour
	UnitWeightSpread  float64 // standard deviation of a unit's weight, as a share of the nominal one
	TagMiss           float64 // of one read of one tag
	TagReads          int     // a tag is seen if any of them sees it

	// Shares of sale doors in which it happens: to one of the units that the shopper has in the hand, or, with OnTop, to
	// one more than those that he keeps or would have kept.
	WrongLane, Foreign, HalfEmpty, Swapped, RightLane float64
	OnTop                                             bool

	Beside      float64 // share of units in a wrong lane that lie in one next to their own
	CameraWrong float64 // share of products taken whose count by the camera is off by one
	Miscount    float64 // share of lines that a restocker types wrong by one
}

// DefaultNoise is that of an ordinary installation.
func DefaultNoise() Noise {
	return Noise{
		ScaleSigmaGrams: 2, DriftGramsPerHour: 3, UnitWeightSpread: 0.01, TagMiss: 0.005, TagReads: 3,
		WrongLane: 0.01, Foreign: 0.002, HalfEmpty: 0.001, Swapped: 0.0001, RightLane: 0.05, Beside: 0.75,
		CameraWrong: 0.005, Miscount: 0.02,
	}
}

// Catalog is what the cabinets hold and what the operator wrote down of it.
type Catalog struct {
	LeastGrams, MostGrams float64 // nominal unit weights, spread evenly between them
	Logarithmic           bool    // or evenly on a logarithmic scale: many small goods, which are harder to tell apart
	Alike                 float64 // share of neighbouring lanes whose products are within AlikeWithin of each other
	AlikeWithin           float64
	Lanes, PerLane        int // lanes of a cabinet, units that fit in one
	// The tolerance that the operator gave each product: grams, plus a share of its nominal weight. Both 0 for none
	// given, so that the product's default applies.
	ToleranceGrams, ToleranceShare float64
}

// DefaultCatalog is that of an ordinary installation. Its tolerance is three to four times what a scale of 2 g and units
// that spread by 1 % let one expect, and known before the first door.
func DefaultCatalog() Catalog {
	return Catalog{
		LeastGrams: 60, MostGrams: 1500, Alike: 1.0 / 3, AlikeWithin: 0.05, Lanes: 12, PerLane: 8,
		ToleranceGrams: 8, ToleranceShare: 0.03,
	}
}

func (c Config) withDefaults() Config {
	if c.Noise == (Noise{}) {
		c.Noise = DefaultNoise()
	}
	if c.Catalog == (Catalog{}) {
		c.Catalog = DefaultCatalog()
	}
	return c
}

const (
	doorsPerCabinet = 1000
	betweenDoors    = 25 * time.Minute // on average
	longestDoor     = 90 * time.Second
)

package cabinet

import "math"

// The tolerance of a product whose catalogue entry gives none, section 9 of the design.
const (
	defaultToleranceShare = 0.02
	leastToleranceGrams   = 5
)

// Product is what evidence needs to know of a product.
type Product struct {
	ProductID            int64
	GTIN14               string // "" for none
	UnitWeightGrams      int64  // 0 for none given
	WeightToleranceGrams int64  // of one unit; 0 for none given
}

// Tolerance is how many grams a change of the given count of units may be off by: the tolerance of one unit times the
// square root of the count, since deviations of units don't add up but for their squares. It is no limit by itself: a
// remainder of half a unit weight or more never passes.
func (p Product) Tolerance(count int64) float64 {
	one := float64(p.WeightToleranceGrams)
	if one <= 0 {
		one = max(leastToleranceGrams, defaultToleranceShare*float64(p.UnitWeightGrams))
	}
	return one * math.Sqrt(float64(max(count, 1)))
}

// TagPlace is where the books have a tag: an EPC is in one cabinet, or sold in one order, or lost.
type TagPlace string

// The places. A tag that the books never saw has none, the empty TagPlace.
const (
	TagUnknown   TagPlace = ""
	TagHere      TagPlace = "here" // in the cabinet that reported the event
	TagElsewhere TagPlace = "elsewhere"
	TagSold      TagPlace = "sold"
	TagLost      TagPlace = "lost"
)

// Stray is something that lies in a lane it doesn't belong to since an earlier door: a unit that was put back wrong, or
// an object that is no unit at all. Scales that know of it aren't fooled when it leaves.
type Stray struct {
	Lane      int   `json:"lane"`
	ProductID int64 `json:"productId"` // 0 for something that isn't a known product
	Grams     int64 `json:"grams"`     // as weighed when it came, at least 1
	// Possible: it may as well lie where it belongs, since the door that moved it had several explanations.
	Possible bool `json:"possible,omitempty"`
}

// Shelf is what the books know about a cabinet at the moment of an event. Judge only reads it.
type Shelf struct {
	Lanes     map[int]int64       // the planogram: lane to product
	Products  map[int64]Product   // the catalogue, at least what Lanes, ByGTIN, Overrides and the event's items name
	ByGTIN    map[string]int64    // GTIN-14 to product
	Overrides map[string]int64    // EPC in upper case to product: wins over the tag's own GTIN
	Tags      map[string]TagPlace // place of each tag of the event, by EPC in upper case; a missing one is TagUnknown
	// Later are the tags whose place in Tags was decided by a door that closed after the event's, which came late: it stands.
	Later     map[string]bool
	Strays    []Stray // as the last Verdict left them
	Threshold float64 // confidence from which the cabinet's own count is taken, 0.8 by default
}

// ProductOf names the product of a tag, by its EPC in upper case. decoded is false for a tag that neither the overrides nor SGTIN-96 explain;
// productID is 0 where the catalogue doesn't have what the tag names.
func (s *Shelf) ProductOf(epc string) (productID int64, decoded bool) {
	if id, ok := s.Overrides[epc]; ok {
		return s.known(id), true
	}
	tag, ok := DecodeSGTIN(epc)
	if !ok {
		return 0, false
	}
	return s.known(s.ByGTIN[tag.GTIN14]), true
}

func (s *Shelf) known(productID int64) int64 {
	if _, ok := s.Products[productID]; !ok {
		return 0
	}
	return productID
}

// whole says whether grams are a whole number of units, 1 to most, and how well they fit.
func (p Product) whole(grams, most int64) (score float64, units int64, ok bool) {
	w := weighed{product: p}
	if units = w.nearest(grams); units < 1 || units > most {
		return 0, 0, false
	}
	score, ok = w.fit(grams, units, 0)
	return score, units, ok
}

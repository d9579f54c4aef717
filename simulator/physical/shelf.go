package physical

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"doortab/cabinet"
)

// unit is one thing in a cabinet.
type unit struct {
	product int // index into shelf.products; -1 for what is no product
	grams   float64
	tag     string // "" for none
	opened  bool   // somebody drank from it: not for sale any more
}

// product is what the catalogue says, and the share of shoppers who want it.
type product struct {
	cabinet.Product
	popularity float64
}

// shelf is the inside of one cabinet as it is: lane i+1 holds product i where everybody puts things where they belong.
type shelf struct {
	random   *rand.Rand
	kind     Kind
	noise    Noise
	perLane  int
	products []product
	lanes    [][]unit
	scales   []scale
	serial   func(product int) int64 // of a new unit's tag
}

func newShelf(config Config, random *rand.Rand) *shelf {
	c, grams, serial := config.Catalog, 0.0, int64(0)
	s := &shelf{random: random, kind: config.Kind, noise: config.Noise, perLane: c.PerLane}
	s.serial = func(int) int64 { serial++; return serial }
	s.lanes = make([][]unit, c.Lanes)
	s.scales = make([]scale, c.Lanes)
	for i := range c.Lanes {
		if i > 0 && random.Float64() < c.Alike {
			grams = min(max(grams*(1+c.AlikeWithin*(2*random.Float64()-1)), c.LeastGrams), c.MostGrams)
		} else {
			grams = c.draw(random.Float64())
		}
		s.products = append(s.products, s.newProduct(c, i, grams))
		s.scales[i] = newScale(config.Noise, random)
		for range c.PerLane {
			s.lanes[i] = append(s.lanes[i], s.newUnit(i))
		}
	}
	return s
}

// draw spreads 0 to 1 over the unit weights.
func (c Catalog) draw(x float64) float64 {
	if c.Logarithmic {
		return c.LeastGrams * math.Pow(c.MostGrams/c.LeastGrams, x)
	}
	return c.LeastGrams + (c.MostGrams-c.LeastGrams)*x
}

func (s *shelf) newProduct(c Catalog, i int, grams float64) product {
	p := cabinet.Product{ProductID: int64(i + 1), GTIN14: gtin(i), UnitWeightGrams: int64(math.Round(grams))}
	p.WeightToleranceGrams = int64(math.Round(c.ToleranceGrams + c.ToleranceShare*float64(p.UnitWeightGrams)))
	return product{Product: p, popularity: 0.2 + s.random.ExpFloat64()}
}

// newUnit comes from the factory: its weight spreads round the nominal one.
func (s *shelf) newUnit(i int) unit {
	nominal := float64(s.products[i].UnitWeightGrams)
	u := unit{product: i, grams: nominal * (1 + s.noise.UnitWeightSpread*s.random.NormFloat64())}
	if s.kind.tagged() {
		u.tag = sgtin(s.products[i].GTIN14, s.serial(i))
	}
	return u
}

// load is what truly lies on the scale of a lane.
func (s *shelf) load(lane int) float64 {
	grams := 0.0
	for _, u := range s.lanes[lane] {
		grams += u.grams
	}
	return grams
}

func (s *shelf) remove(lane, at int) unit {
	u := s.lanes[lane][at]
	s.lanes[lane] = slices.Delete(s.lanes[lane], at, at+1)
	return u
}

func (s *shelf) put(lane int, u unit) { s.lanes[lane] = append(s.lanes[lane], u) }

// forSale counts the sound units of a product, wherever they lie.
func (s *shelf) forSale(product int) int64 {
	n := int64(0)
	for _, lane := range s.lanes {
		for _, u := range lane {
			if u.product == product && !u.opened {
				n++
			}
		}
	}
	return n
}

// low: less than half of what fits is left, or half of the lanes are empty.
func (s *shelf) low() bool {
	units, empty := int64(0), 0
	for i := range s.products {
		n := s.forSale(i)
		units += n
		if n == 0 {
			empty++
		}
	}
	return units*2 < int64(len(s.lanes)*s.perLane) || empty*2 > len(s.lanes)
}

// tags of everything in the cabinet, sorted.
func (s *shelf) tags() []string {
	var tags []string
	for _, lane := range s.lanes {
		for _, u := range lane {
			if u.tag != "" {
				tags = append(tags, u.tag)
			}
		}
	}
	slices.Sort(tags)
	return tags
}

// company is what the products of the measured shelves have in common.
const company = 4012345

// gtin of product i: the item reference's indicator 0, the company, the reference, the check digit.
func gtin(i int) string {
	body := fmt.Sprintf("0%07d%05d", company, i+1)
	sum := 0
	for k, d := range body {
		sum += int(d-'0') * []int{3, 1}[k%2]
	}
	return fmt.Sprintf("%s%d", body, (10-sum%10)%10)
}

// sgtin writes the tag of a unit as SGTIN-96 of partition 5: 7 digits of the GTIN-14 name the company, and 6 the item, its
// indicator first (GS1 EPC Tag Data Standard, 14.6.1). The serial has 38 bits.
func sgtin(gtin14 string, serial int64) string {
	const head = 0x30<<56 | filter<<53 | partition<<50
	digits, _ := strconv.ParseInt(gtin14[1:13], 10, 64) // a GTIN is digits
	indicator := int64(gtin14[0] - '0')
	company, item := digits/1e5, indicator*1e5+digits%1e5
	return fmt.Sprintf("%016X%08X", head|company<<26|item<<6|serial>>32, serial&(1<<32-1))
}

const (
	filter    = 1
	partition = 5
)

package physical

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"doortab/cabinet"
)

// Cabinet is one that shoppers and staff use at their own time: what is in it, what its sensors see, and what people do.
// Its clock runs by the pace of [DefaultNoise]'s ordinary installation, a door every 25 minutes, however quickly doors
// follow each other. It is for one goroutine at a time.
type Cabinet struct {
	shelf *shelf
	index map[int64]int // of a product
}

// Stocked says what a cabinet is made for.
type Stocked struct {
	Kind     Kind
	Noise    Noise
	Products []cabinet.Product // lane i+1 holds the i-th; each with a GTIN-14 and a unit weight
	PerLane  int               // units that fit into a lane
	// Serial numbers the tags of a product, given by its place in Products: each number once in all cabinets, 0 to 2³⁸ − 1.
	// Nobody is asked where the kind has no tags.
	Serial func(product int) int64
}

// NewCabinet is empty.
func NewCabinet(s Stocked, random *rand.Rand) *Cabinet {
	c := &Cabinet{
		shelf: &shelf{random: random, kind: s.Kind, noise: s.Noise, perLane: s.PerLane, serial: s.Serial},
		index: make(map[int64]int, len(s.Products)),
	}
	c.shelf.lanes = make([][]unit, len(s.Products))
	for i, p := range s.Products {
		c.shelf.products = append(c.shelf.products, product{Product: p, popularity: 0.2 + random.ExpFloat64()})
		c.shelf.scales = append(c.shelf.scales, newScale(s.Noise, random))
		c.index[p.ProductID] = i
	}
	return c
}

// Kind is what it sees with.
func (c *Cabinet) Kind() Kind { return c.shelf.kind }

// Door is what became of one door.
type Door struct {
	Seen cabinet.Event // by the sensors: its Items, Weights and RFID alone
	// Truth is how many units of each product are gone or opened, or came at a restock; none of it is 0.
	Truth map[int64]int64
}

// Sale lets a shopper in.
func (c *Cabinet) Sale() Door { return c.door(cabinet.KindSale, c.shelf.shop) }

// Restock lets staff in, who tidy up and put in what is brought: units by product, such as [Cabinet.Lacking].
func (c *Cabinet) Restock(brought map[int64]int64) Door {
	return c.door(cabinet.KindRestock, func() []int64 {
		c.shelf.tidyUp()
		return c.shelf.add(c.inOrder(brought))
	})
}

func (c *Cabinet) door(kind cabinet.Kind, use func() []int64) Door {
	s := c.shelf
	s.pass(time.Duration(s.random.ExpFloat64() * float64(betweenDoors)))
	before := s.read()
	s.pass(time.Duration(s.random.Float64() * float64(longestDoor)))
	truth := use()
	return Door{Seen: *s.event(kind, before, s.read(), truth), Truth: c.byProduct(truth)}
}

// Put adds units without a door.
func (c *Cabinet) Put(units map[int64]int64) { c.shelf.add(c.inOrder(units)) }

// Low tells whether staff should come: less than half of what fits is left, or half of the products are sold out.
func (c *Cabinet) Low() bool { return c.shelf.low() }

// Lacking is what fills the lanes.
func (c *Cabinet) Lacking() map[int64]int64 { return c.byProduct(c.shelf.lacking()) }

// Content counts the sound units of each product, wherever they lie; also those that aren't there, as 0.
func (c *Cabinet) Content() map[int64]int64 {
	content := make(map[int64]int64, len(c.shelf.products))
	for i, p := range c.shelf.products {
		content[p.ProductID] = c.shelf.forSale(i)
	}
	return content
}

func (c *Cabinet) inOrder(units map[int64]int64) []int64 {
	list := make([]int64, len(c.shelf.products))
	for id, n := range units {
		list[c.index[id]] = n
	}
	return list
}

func (c *Cabinet) byProduct(units []int64) map[int64]int64 {
	products := make(map[int64]int64)
	for i, n := range units {
		if n != 0 {
			products[c.shelf.products[i].ProductID] = n
		}
	}
	return products
}

// Miscounted is what somebody writes down who counts units: each product is off by one in the share given, and never
// below 0.
func Miscounted(units map[int64]int64, share float64, random *rand.Rand) map[int64]int64 {
	written := make(map[int64]int64, len(units))
	for _, id := range slices.Sorted(maps.Keys(units)) {
		n := units[id]
		if random.Float64() < share {
			n += 2*int64(random.IntN(2)) - 1
		}
		written[id] = max(n, 0)
	}
	return written
}

package inventory

import (
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

const (
	// keptFor bounds how long a change can stay unseen that raised no mark: a process of an older version made it.
	keptFor = 5 * time.Second
	// keptBytes bounds the products of a [View], and its planograms, by what they take of memory.
	keptBytes = 4 << 20
	// readAgain is how many products a new View reads at once, since the one before it knew them. While the catalogue changes many
	// times a second that is no view's worth: only after one that was kept for readAgainAfter.
	readAgain      = 1000
	readAgainAfter = time.Second
	// pricesBack is how far back the prices of a View reach. An event that comes later after its door was opened is rare, and has
	// them read for itself.
	pricesBack = 24 * time.Hour
)

// Cache keeps products, prices and planograms from one transaction to the next, as long as the mark [database.Catalogue] stays
// the same. It is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	current *View
}

// At returns the view of a transaction that has just read the mark. All that is ever put into a view is read by transactions
// that asked for it first, so nothing in it is older than its mark.
func (c *Cache) At(mark int64, now time.Time) *View {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch last := c.current; {
	case last == nil:
		c.current = newView(mark, now)
	case last.mark < mark || !now.Before(last.until):
		c.current = newView(mark, now)
		if now.Sub(last.began) >= readAgainAfter {
			c.current.again = last.products()
		}
	case last.mark > mark: // somebody has read a later mark meanwhile
		return newView(mark, now)
	}
	return c.current
}

// View is what the catalogue and the planograms say under one version of the mark. It is safe for concurrent use; what it
// returns is shared and must not be changed.
type View struct {
	mark  int64
	began time.Time
	until time.Time
	since time.Time // from when on it has prices

	mu             sync.Mutex
	articles       map[int64]*Article // nil: there is no such product
	gtins          map[string]int64   // 0: no product bears it
	planograms     map[int64]Planogram
	articleBytes   int
	planogramBytes int
	again          []int64 // products to be read with the first that is missing
}

func newView(mark int64, now time.Time) *View {
	return &View{
		mark: mark, began: now, until: now.Add(keptFor), since: now.Add(-pricesBack),
		articles: map[int64]*Article{}, gtins: map[string]int64{}, planograms: map[int64]Planogram{},
	}
}

func (v *View) products() []int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	ids := make([]int64, 0, min(len(v.articles), readAgain))
	for id, a := range v.articles {
		if a != nil && len(ids) < readAgain {
			ids = append(ids, id)
		}
	}
	return ids
}

// PricesReach tells whether the prices of Articles go back to a moment.
func (v *View) PricesReach(at time.Time) bool { return !at.Before(v.since) }

// Articles finds the products that exist among ids or bear one of gtins, each a GTIN-14.
func (v *View) Articles(tx *gorm.DB, ids []int64, gtins []string) (map[int64]*Article, error) {
	found := map[int64]*Article{}
	missing, unknown := v.find(found, ids, gtins)
	if len(missing)+len(unknown) == 0 {
		return found, nil
	}
	read, err := ReadArticles(tx, missing, unknown, v.since)
	if err != nil {
		return nil, err
	}
	v.keepArticles(missing, unknown, read)
	for i := range read {
		found[read[i].ProductID] = &read[i]
	}
	return found, nil
}

// find returns what has to be read.
func (v *View) find(found map[int64]*Article, ids []int64, gtins []string) (missing []int64, unknown []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	take := func(id int64) {
		if a, kept := v.articles[id]; a != nil {
			found[id] = a
		} else if !kept {
			missing = append(missing, id)
		}
	}
	for _, id := range ids {
		if found[id] == nil {
			take(id)
		}
	}
	for _, gtin := range gtins {
		switch id, kept := v.gtins[gtin]; {
		case !kept:
			unknown = append(unknown, gtin)
		case id != 0 && found[id] == nil:
			take(id)
		}
	}
	if len(missing) > 0 {
		missing, v.again = append(missing, v.again...), nil
	}
	return distinct(missing), distinct(unknown)
}

func (v *View) keepArticles(ids []int64, gtins []string, read []Article) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.articleBytes > keptBytes {
		v.articles, v.gtins, v.articleBytes = map[int64]*Article{}, map[string]int64{}, 0
	}
	for _, id := range ids {
		v.articles[id] = nil
	}
	for _, gtin := range gtins {
		v.gtins[gtin] = 0
	}
	v.articleBytes += 64 * (len(ids) + len(gtins))
	for i := range read {
		a := &read[i]
		v.articles[a.ProductID] = a
		if a.GTIN14 != "" {
			v.gtins[a.GTIN14] = a.ProductID
		}
		v.articleBytes += 256 + 48*len(a.Prices)
	}
}

// Planograms finds those of some cabinets; a cabinet without one is missing.
func (v *View) Planograms(tx *gorm.DB, devices []int64) (map[int64]Planogram, error) {
	found := make(map[int64]Planogram, len(devices))
	missing := v.findPlanograms(found, devices)
	if len(missing) == 0 {
		return found, nil
	}
	read, err := ReadPlanograms(tx, missing)
	if err != nil {
		return nil, err
	}
	v.keepPlanograms(missing, read)
	for device, p := range read {
		found[device] = p
	}
	return found, nil
}

func (v *View) findPlanograms(found map[int64]Planogram, devices []int64) (missing []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, device := range devices {
		if p, kept := v.planograms[device]; p != nil {
			found[device] = p
		} else if !kept {
			missing = append(missing, device)
		}
	}
	return missing
}

func (v *View) keepPlanograms(devices []int64, read map[int64]Planogram) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.planogramBytes > keptBytes {
		v.planograms, v.planogramBytes = map[int64]Planogram{}, 0
	}
	for _, device := range devices {
		v.planograms[device] = read[device]
		v.planogramBytes += 64 + 32*len(read[device])
	}
}

func distinct[T int64 | string](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// raise tells every process that it must read the catalogue anew.
func raise(tx *gorm.DB) error { return database.Raise(tx, database.Catalogue) }

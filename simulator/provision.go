package simulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"doortab/simulator/physical"
)

// provisioners is how many cabinets are set up at one moment.
const provisioners = 8

// Provision makes what the run needs and isn't there: the demonstration catalogue, the cabinets, each with its planogram and
// a new credential, and goods in those that only count what is taken; the others are filled by restock doors when Run
// begins. What an earlier run left is used further: stock as it stands, and the next seq. Tags that an earlier run
// put in are nowhere, and neither is what doesn't fit: that stock is written off.
func (s *Simulator) Provision(ctx context.Context) error {
	if err := s.stockCatalogue(ctx); err != nil {
		return fmt.Errorf("simulator: provision the catalogue: %w", err)
	}
	around := &surroundings{
		broker: s.broker, runID: s.runID, first: s.config.FirstResend, last: s.config.LastResend,
		books: s.books, faults: s.faults, dials: make(chan struct{}, maxDials), logger: s.config.Logger,
	}
	fleet, kinds, goods := make([]*device, s.config.Cabinets), s.config.Kinds.deal(s.config.Cabinets), s.goods()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(provisioners)
	for i := range fleet {
		group.Go(func() error {
			id := s.config.FirstDevice + int64(i)
			random := rand.New(rand.NewPCG(s.config.Seed, streamCabinets+uint64(id)<<8)) //nolint:gosec // not a secret
			goods := goods
			goods.Kind = kinds[i]
			fleet[i] = newDevice(around, id, physical.NewCabinet(goods, random))
			if err := s.install(ctx, fleet[i], i); err != nil {
				return fmt.Errorf("simulator: provision cabinet %d: %w", fleet[i].id, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.fleet = fleet
	s.hire()
	return nil
}

// goods is what all cabinets hold.
func (s *Simulator) goods() physical.Stocked {
	own := make(map[string]product)
	for _, p := range catalogue() {
		own[p.SKU] = p
	}
	stocked := physical.Stocked{Noise: s.config.Noise, PerLane: perLane}
	for _, p := range s.products {
		stocked.Products = append(stocked.Products, p.article(own[p.SKU]))
	}
	// The next run begins behind this one's numbers: nobody sells a thousand units of a product each second.
	first := time.Since(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds()
	last := make([]atomic.Int64, len(s.products))
	stocked.Serial = func(product int) int64 { return (first + last[product].Add(1)) & (1<<38 - 1) }
	return stocked
}

func (s *Simulator) hire() {
	// A visit brings about forty units, of ten shoppers fourteen are taken.
	perSecond := max(1, s.pace()/20) / restockers
	s.staff = &staff{
		api: s.api, fleet: s.fleet, faults: s.faults, books: s.books, runID: s.runID, seed: s.config.Seed,
		miscount: s.config.Noise.Miscount, gap: time.Duration(float64(time.Second) / perSecond), faulty: s.config.Faults > 0,
		logger: s.config.Logger,
	}
	decisions := min(max(1, s.pace()/10), mostDecisions)
	s.operator = &operator{
		api: s.api, books: s.books, runID: s.runID, seed: s.config.Seed, gap: time.Duration(float64(time.Second) / decisions),
		logger: s.config.Logger,
	}
}

func (s *Simulator) stockCatalogue(ctx context.Context) error {
	known := make(map[string]product)
	keep := func(page []product) bool {
		for _, p := range page {
			known[p.SKU] = p
		}
		return true
	}
	if err := walk(ctx, s.api, "/v1/products", nil, keep); err != nil {
		return err
	}
	for _, p := range catalogue() {
		if had, ok := known[p.SKU]; ok {
			s.products = append(s.products, had)
			continue
		}
		made, err := s.makeProduct(ctx, p)
		if err != nil {
			return err
		}
		s.products = append(s.products, made)
	}
	return nil
}

// makeProduct finds the product where another try, or somebody else, has made it meanwhile.
func (s *Simulator) makeProduct(ctx context.Context, p product) (product, error) {
	made := p
	err := s.api.do(ctx, call{method: http.MethodPost, path: "/v1/products", body: p, into: &made})
	if !refusedWith(err, http.StatusConflict) {
		return made, err
	}
	found := false
	find := func(page []product) bool {
		for _, other := range page {
			if other.SKU == p.SKU {
				made, found = other, true
			}
		}
		return !found
	}
	if err := walk(ctx, s.api, "/v1/products", nil, find); err != nil {
		return product{}, err
	}
	if !found {
		return product{}, fmt.Errorf("product %s: another product has its GTIN: %w", p.SKU, err)
	}
	return made, nil
}

// install sets up one cabinet.
func (s *Simulator) install(ctx context.Context, d *device, index int) error {
	path := fmt.Sprintf("/v1/cabinets/%d", d.id)
	err := s.api.do(ctx, call{method: http.MethodPost, path: "/v1/cabinets", body: map[string]any{
		"deviceId": d.id, "name": cabinetName(index), "site": siteName(index),
	}})
	switch {
	case refusedWith(err, http.StatusConflict):
		if err := s.resume(ctx, d, path); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if err := s.api.do(ctx, call{method: http.MethodPut, path: path + "/planogram", body: s.planogram()}); err != nil {
		return err
	}
	var credentials struct {
		Secret string `json:"secret"`
	}
	if err := s.api.do(ctx, call{method: http.MethodPost, path: path + "/credentials", into: &credentials}); err != nil {
		return err
	}
	d.secret = credentials.Secret
	return s.fillUp(ctx, d)
}

func (s *Simulator) planogram() map[string]any {
	lanes := make([]map[string]any, len(s.products))
	for i, p := range s.products {
		lanes[i] = map[string]any{"lane": i + 1, "productId": p.ProductID, "capacity": perLane, "parLevel": perLane / 2}
	}
	return map[string]any{"lanes": lanes}
}

// resume takes over what an earlier run left: stock, and the last seq among the newest settlements.
func (s *Simulator) resume(ctx context.Context, d *device, path string) error {
	err := walk(ctx, s.api, path+"/stock", nil, func(rows []stockRow) bool {
		for _, r := range rows {
			d.opening[r.ProductID] = balance{r.Stock, r.Version}
		}
		return true
	})
	if err != nil {
		return err
	}
	if err := s.takeOver(ctx, d, path); err != nil {
		return err
	}
	var newest struct {
		Items []struct {
			Event struct {
				Seq int64 `json:"seq"`
			} `json:"event"`
		} `json:"items"`
	}
	query := url.Values{"deviceId": {d.name()}, "limit": {"50"}}
	if err := s.api.do(ctx, call{method: http.MethodGet, path: "/v1/settlements?" + query.Encode(), into: &newest}); err != nil {
		return err
	}
	for _, row := range newest.Items {
		d.seq = max(d.seq, row.Event.Seq)
	}
	return nil
}

// takeOver puts what is on the books into the cabinet, and writes off what can't be there.
func (s *Simulator) takeOver(ctx context.Context, d *device, path string) error {
	there, gone := make(map[int64]int64), make(map[int64]int64)
	for _, p := range s.products {
		stock := d.opening[p.ProductID].stock
		if d.kind() == physical.KindItems || d.kind() == physical.KindWeight {
			there[p.ProductID] = min(stock, perLane)
		}
		gone[p.ProductID] = stock - there[p.ProductID]
	}
	d.put(there)
	lines := fromMap(gone)
	if len(lines) == 0 {
		return nil
	}
	return s.book(ctx, d, call{
		method: http.MethodPost, path: path + "/writeoffs", key: fmt.Sprintf("%s-writeoff-%d", s.runID, d.id),
		body: map[string]any{"lines": lines, "reason": "not found in the cabinet"},
	})
}

// fillUp fills a cabinet that only counts what is taken.
func (s *Simulator) fillUp(ctx context.Context, d *device) error {
	d.put(nil)
	list := d.lacking()
	if d.kind() != physical.KindItems || !d.low.Load() || len(list) == 0 {
		return nil
	}
	d.put(list)
	return s.book(ctx, d, restockCall(d.id, fromMap(list), fmt.Sprintf("%s-fill-%d", s.runID, d.id)))
}

// book makes a change before the run begins.
func (s *Simulator) book(ctx context.Context, d *device, c call) error {
	var answer struct {
		Movements []movementRow `json:"movements"`
	}
	c.into = &answer
	if err := s.api.do(ctx, c); err != nil {
		return err
	}
	for _, m := range answer.Movements {
		d.opening[m.ProductID] = balance{m.Balance, m.Version}
	}
	return nil
}

func cabinetName(index int) string {
	places := [...]string{"Lobby", "Canteen", "Platform", "Waiting room", "Gym", "Floor 2", "Workshop", "Reception"}
	return fmt.Sprintf("%s %d", places[index%len(places)], index/len(places)+1)
}

func siteName(index int) string {
	sites := [...]string{"Head office", "Central station", "University", "Hospital", "Airport"}
	return sites[index/10%len(sites)]
}

package simulator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
)

// provisioners is how many cabinets are set up at one moment.
const provisioners = 8

// Provision makes what the run needs and isn't there: the demonstration catalogue, the cabinets, a new credential for each,
// and goods in them. What an earlier run left is used further: stock as it stands, and the next seq.
func (s *Simulator) Provision(ctx context.Context) error {
	if err := s.stockCatalogue(ctx); err != nil {
		return fmt.Errorf("simulator: provision the catalogue: %w", err)
	}
	around := &surroundings{
		broker: s.broker, runID: s.runID, first: s.config.FirstResend, last: s.config.LastResend,
		books: s.books, faults: s.faults, dials: make(chan struct{}, maxDials), logger: s.config.Logger,
	}
	fleet := make([]*device, s.config.Cabinets)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(provisioners)
	for i := range fleet {
		group.Go(func() error {
			fleet[i] = newDevice(around, s.config.FirstDevice+int64(i))
			if err := s.install(ctx, fleet[i], i); err != nil {
				return fmt.Errorf("simulator: provision cabinet %d: %w", fleet[i].id, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.fleet, s.staff = fleet, s.hire(fleet)
	return nil
}

func (s *Simulator) hire(fleet []*device) *staff {
	// A delivery brings about a hundred units, a shopper takes two or three.
	perSecond := max(1, s.pace()/25) / restockers
	return &staff{
		api: s.api, fleet: fleet, products: s.products, faults: s.faults, books: s.books, runID: s.runID, seed: s.config.Seed,
		gap: time.Duration(float64(time.Second) / perSecond), faulty: s.config.Faults > 0, logger: s.config.Logger,
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
	var credentials struct {
		Secret string `json:"secret"`
	}
	if err := s.api.do(ctx, call{method: http.MethodPost, path: path + "/credentials", into: &credentials}); err != nil {
		return err
	}
	d.secret = credentials.Secret
	return s.fillUp(ctx, d)
}

// resume reads what an earlier run left: stock, and the last seq among the newest settlements.
func (s *Simulator) resume(ctx context.Context, d *device, path string) error {
	err := walk(ctx, s.api, path+"/stock", nil, func(rows []stockRow) bool {
		for _, r := range rows {
			d.shelf.add([]quantity{{r.ProductID, r.Stock}})
			d.opening[r.ProductID] = r.Version
		}
		return true
	})
	if err != nil {
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

// fillUp restocks what is low. What Doortab says is then in the cabinet is what is physically there.
func (s *Simulator) fillUp(ctx context.Context, d *device) error {
	list := d.shelf.lacking(s.products, capacity/2, capacity)
	if len(list) == 0 {
		return nil
	}
	var answer struct {
		Movements []struct {
			ProductID int64 `json:"productId"`
			Version   int64 `json:"version"`
		} `json:"movements"`
	}
	req := restockCall(d.id, list, fmt.Sprintf("%s-opening-%d", s.runID, d.id))
	req.into = &answer
	if err := s.api.do(ctx, req); err != nil {
		return err
	}
	d.shelf.add(list)
	for _, m := range answer.Movements {
		d.opening[m.ProductID] = m.Version
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

package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"doortab/cabinet"
)

func compareKeys(a, b eventKey) int {
	return cmp.Or(cmp.Compare(a.deviceID, b.deviceID), cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
}

// stockKey names one row of book stock.
type stockKey struct{ deviceID, productID int64 }

type stockRow struct {
	ProductID int64 `json:"productId"`
	Stock     int64 `json:"stock"`
	Version   int64 `json:"version"`
}

type settlementRow struct {
	DeviceID     int64             `json:"deviceId"`
	CloseEventID string            `json:"closeEventId"`
	Outcome      cabinet.Outcome   `json:"outcome"`
	OrderID      string            `json:"orderId"`
	Conflicts    []json.RawMessage `json:"conflicts"`
	Receipt      struct {
		Lines []quantity `json:"lines"`
	} `json:"receipt"`
	Lines   []quantity  `json:"lines"` // of the order as it is now
	Reviews []reviewRow `json:"reviews"`
}

type orderRow struct {
	OrderID      string     `json:"orderId"`
	DeviceID     int64      `json:"deviceId"`
	CloseEventID string     `json:"closeEventId"`
	UserID       int64      `json:"userId"` // 0 for none
	Lines        []quantity `json:"lines"`
}

type movementRow struct {
	ProductID int64  `json:"productId"`
	Version   int64  `json:"version"`
	Kind      string `json:"kind"`
	Delta     int64  `json:"delta"`
	Balance   int64  `json:"balance"`
	Ref       string `json:"ref"`
}

// theirs is what Doortab's books say about this run.
type theirs struct {
	mu          sync.Mutex
	settlements map[eventKey]settlementRow
	orders      map[eventKey][]orderRow
	movements   map[stockKey][]movementRow
	stock       map[stockKey]balance
}

// start is what was in Doortab's books before the run.
type start struct {
	from   time.Time // by Doortab's clock, and early enough
	orders map[string]bool
}

func (s start) query() url.Values { return url.Values{"from": {s.from.Format(time.RFC3339)}} }

// markStart notes the orders of the last minute, so that an earlier run's aren't taken for this one's.
func (s *Simulator) markStart(ctx context.Context) (start, error) {
	from := start{from: s.api.clock().UTC().Add(-time.Minute), orders: make(map[string]bool)}
	err := walk(ctx, s.api, "/v1/orders", from.query(), func(page []orderRow) bool {
		for _, o := range page {
			from.orders[o.OrderID] = true
		}
		return true
	})
	if err != nil {
		return start{}, fmt.Errorf("simulator: read the orders that are there: %w", err)
	}
	return from, nil
}

// read reads Doortab's side of the comparison.
func (s *Simulator) read(ctx context.Context, from start) (*theirs, error) {
	t := &theirs{
		settlements: make(map[eventKey]settlementRow), orders: make(map[eventKey][]orderRow),
		movements: make(map[stockKey][]movementRow), stock: make(map[stockKey]balance),
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(provisioners)
	group.Go(func() error { return s.readSettlements(groupCtx, from, t) })
	group.Go(func() error { return s.readOrders(groupCtx, from, t) })
	for _, d := range s.fleet {
		group.Go(func() error { return s.readCabinet(groupCtx, d, t) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return t, s.readConflicts(ctx, t)
}

func (s *Simulator) readSettlements(ctx context.Context, from start, t *theirs) error {
	return walk(ctx, s.api, "/v1/settlements", from.query(), func(page []settlementRow) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range page {
			key := eventKey{r.DeviceID, r.CloseEventID}
			if strings.HasPrefix(r.CloseEventID, s.runID) || s.books.isMinted(key) {
				r.Lines, r.Reviews = nil, nil // orders are read by themselves
				t.settlements[key] = r
			}
		}
		return true
	})
}

// readOrders reads every new order of the fleet, also one that names no event of this run.
func (s *Simulator) readOrders(ctx context.Context, from start, t *theirs) error {
	return walk(ctx, s.api, "/v1/orders", from.query(), func(page []orderRow) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, o := range page {
			key := eventKey{o.DeviceID, o.CloseEventID}
			if !from.orders[o.OrderID] && s.ours(o.DeviceID) && !slices.ContainsFunc(t.orders[key], o.same) {
				t.orders[key] = append(t.orders[key], o)
			}
		}
		return true
	})
}

func (o orderRow) same(other orderRow) bool { return o.OrderID == other.OrderID }

func (s *Simulator) ours(deviceID int64) bool {
	return deviceID >= s.config.FirstDevice && deviceID < s.config.FirstDevice+int64(len(s.fleet))
}

func (s *Simulator) readCabinet(ctx context.Context, d *device, t *theirs) error {
	path := fmt.Sprintf("/v1/cabinets/%d", d.id)
	var moved []int64
	err := walk(ctx, s.api, path+"/stock", nil, func(rows []stockRow) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range rows {
			t.stock[stockKey{d.id, r.ProductID}] = balance{r.Stock, r.Version}
			if r.Version > d.opening[r.ProductID].version {
				moved = append(moved, r.ProductID)
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return s.readMovements(ctx, d, path+"/movements", moved, t)
}

// readMovements reads the ledger of a cabinet. Movements come newest first; where an earlier run left a long history, each
// product is read only as far back as this run goes.
func (s *Simulator) readMovements(ctx context.Context, d *device, path string, moved []int64, t *theirs) error {
	const long = 2000
	older := int64(0)
	for _, opening := range d.opening {
		older += opening.version
	}
	if older < long {
		return walk(ctx, s.api, path, nil, func(rows []movementRow) bool {
			t.addMovements(d, rows)
			return true
		})
	}
	for _, productID := range moved {
		query := url.Values{"productId": {strconv.FormatInt(productID, 10)}}
		if err := walk(ctx, s.api, path, query, func(rows []movementRow) bool { return t.addMovements(d, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// addMovements keeps those of the run, and reports whether the whole page was the run's.
func (t *theirs) addMovements(d *device, rows []movementRow) (fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh = true
	for _, m := range rows {
		if m.Version <= d.opening[m.ProductID].version {
			fresh = false
			continue
		}
		key := stockKey{d.id, m.ProductID}
		t.movements[key] = append(t.movements[key], m)
	}
	return fresh
}

// readConflicts reads the settlements whose id was used for another content one by one: a list may leave conflicts out.
func (s *Simulator) readConflicts(ctx context.Context, t *theirs) error {
	entries, _ := s.books.all()
	for _, e := range entries {
		row, settled := t.settlements[e.key]
		if !e.conflicted || !settled || len(row.Conflicts) > 0 {
			continue
		}
		path := fmt.Sprintf("/v1/settlements/%d/%s", e.key.deviceID, url.PathEscape(e.key.id))
		if err := s.api.do(ctx, call{method: http.MethodGet, path: path, into: &row}); err != nil {
			return err
		}
		t.settlements[e.key] = row
	}
	return nil
}

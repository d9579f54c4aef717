package settlement_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/settlement"
)

// model is what the books must be, kept in plain memory.
type model struct {
	stock, short, version map[[2]int64]int64
	outcomes              map[string]string // device/event: outcome and total
	conflicts             map[string]bool   // distinct other contents
	deals                 *deals            // nil: none
}

func newModel() *model {
	return &model{map[[2]int64]int64{}, map[[2]int64]int64{}, map[[2]int64]int64{}, map[string]string{}, map[string]bool{}, nil}
}

func (m *model) move(device, product, units int64) (short bool) {
	k := [2]int64{device, product}
	m.version[k]++
	m.stock[k] += units
	if m.stock[k] < 0 {
		m.short[k] -= m.stock[k]
		m.stock[k] = 0
		return true
	}
	return false
}

// happening is one thing that happens: a delivery, or staff bringing goods by REST.
type happening struct {
	device  int64
	id      string // "" for goods brought by REST
	kind    string
	user    int64      // 0: nobody known
	taken   [][2]int64 // product, units
	payload string
	other   bool // other content under the id of an event that came before
}

var priceOf = map[int64]int64{7: 500, 8: 300, 9: 250}

func (m *model) settle(h happening) {
	name := fmt.Sprint(h.device, "/", h.id)
	if h.other {
		m.conflicts[h.payload] = true
	}
	if _, known := m.outcomes[name]; known {
		return
	}
	outcome, total := "settled", int64(0)
	taken := slices.Clone(h.taken)
	slices.SortFunc(taken, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	sure := map[int64]int64{}
	doubt := h.user == 0 && h.kind == "sale" && len(taken) > 0
	for _, t := range taken {
		if priceOf[t[0]] == 0 {
			doubt = true
			continue
		}
		sure[t[0]] += t[1]
	}
	for product, units := range sure {
		if h.kind == "restock" {
			m.move(h.device, product, units)
		} else {
			m.move(h.device, product, -units)
			for price, units := range m.deals.prices(h.user, product, units) {
				total += price * units
			}
		}
	}
	switch {
	case doubt:
		outcome = "review"
	case h.kind == "restock":
		outcome = "restocked"
	case len(taken) == 0:
		outcome = "empty"
	}
	m.outcomes[name] = fmt.Sprint(outcome, "|", total)
}

// script makes a run of events, resends, contradictions and restocks.
func script(random *rand.Rand, length int) []happening {
	var events, all []happening
	for n := range length {
		device := int64(1001 + random.IntN(3))
		switch r := random.IntN(40); {
		case r < 1:
			all = append(all, happening{device: device, taken: [][2]int64{{7, 1 + random.Int64N(30)}, {8, 1 + random.Int64N(30)}}})
		case r < 9 && len(events) > 0:
			all = append(all, events[random.IntN(len(events))])
		case r < 11 && len(events) > 0:
			h := events[random.IntN(len(events))]
			h.payload, h.other = event(h.device, h.id, `"userId":43`, items(9, int64(1000-n))), true
			all = append(all, h)
		default:
			h := randomEvent(random, device, fmt.Sprint("e", n))
			events, all = append(events, h), append(all, h)
		}
	}
	return all
}

func randomEvent(random *rand.Rand, device int64, id string) happening {
	h := happening{device: device, id: id, kind: "sale", user: 42 + random.Int64N(4)}
	if random.IntN(8) == 0 {
		h.user = 0
	}
	if random.IntN(10) == 0 {
		h.kind = "restock"
	}
	var taken []int64
	for range random.IntN(4) {
		product := []int64{7, 8, 9, 99}[min(random.IntN(16)/4, 3)]
		units := 1 + random.Int64N(4)
		h.taken = append(h.taken, [2]int64{product, units})
		taken = append(taken, product, units)
	}
	members := []string{fmt.Sprintf(`"kind":%q`, h.kind), items(taken...)}
	if h.user != 0 {
		members = append(members, fmt.Sprintf(`"userId":%d`, h.user))
	}
	h.payload = event(device, id, members...)
	return h
}

// TestBooksEqualTheModel runs the same script in groups of one and in large ones: the books
// are those of a model that knows no database.
func TestBooksEqualTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		for _, size := range []int{1, 9, 100} {
			t.Run(fmt.Sprintf("seed %d groups of %d", seed, size), func(t *testing.T) {
				t.Parallel()
				runInGroups(t, script(rand.New(rand.NewPCG(seed, 3)), 150), size, false)
			})
		}
	}
}

// The groups of a busy process, each of several statements, with promotions: a restock by REST, which ends a group, is left out.
func TestBooksOfGroupsAsLargeAsTheyGet(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		all := slices.DeleteFunc(script(rand.New(rand.NewPCG(seed, 4)), 700), func(h happening) bool { return h.id == "" })
		for _, size := range []int{1, 500} {
			t.Run(fmt.Sprintf("seed %d groups of %d", seed, size), func(t *testing.T) {
				t.Parallel()
				runInGroups(t, all, size, true)
			})
		}
	}
}

func runInGroups(t *testing.T, all []happening, size int, promoted bool) {
	t.Helper()
	s, m := newShop(t), newModel()
	for device := int64(1001); device <= 1003; device++ {
		s.cabinet(device)
	}
	if promoted {
		m.deals = s.openDeals()
		for n := range 30 {
			m.deals.claim(s, m.deals.kept[n%3], 42+int64(n%4), 1+int64(n%5), 1+n*7%31)
		}
	}
	var group []settlement.Delivery
	flush := func() {
		for n, a := range s.Settle(context.Background(), group) {
			if a.Err != nil || a.Receipt == nil {
				t.Errorf("delivery %d: %+v", n, a)
			}
		}
		group = nil
	}
	for _, h := range all {
		if h.id == "" {
			flush()
			s.restock(h.device, 7, h.taken[0][1], 8, h.taken[1][1])
			m.move(h.device, 7, h.taken[0][1])
			m.move(h.device, 8, h.taken[1][1])
			continue
		}
		m.settle(h)
		if group = append(group, deliveriesOf(h.device, h.payload)...); len(group) == size {
			flush()
		}
	}
	flush()
	m.compare(s)
	if promoted {
		m.deals.compare(s)
	}
	s.audited()
}

func (m *model) compare(s *shop) {
	s.t.Helper()
	var stock, outcomes []string
	for k, version := range m.version {
		stock = append(stock, fmt.Sprintf("%d|%d|%d|%d|%d", k[0], k[1], m.stock[k], version, m.short[k]))
	}
	for name, outcome := range m.outcomes {
		outcomes = append(outcomes, name+"|"+outcome)
	}
	slices.Sort(stock)
	slices.Sort(outcomes)
	gotStock := s.rows(`SELECT d.device_id, d.product_id, d.stock, d.version, COALESCE((SELECT SUM(x.quantity) FROM discrepancies x
		WHERE x.device_id = d.device_id AND x.product_id = d.product_id), 0) FROM device_stock d ORDER BY 1, 2`)
	if diff := gocmp.Diff(stock, gotStock); diff != "" {
		s.t.Errorf("stock, version and shortfall: %s", diff)
	}
	gotOutcomes := s.rows(`SELECT CONCAT(s.device_id, '/', s.close_event_id) AS name, s.outcome, COALESCE(o.total_minor, 0)
		FROM settlements s LEFT JOIN orders o ON o.order_id = s.order_id`)
	slices.Sort(gotOutcomes)
	if diff := gocmp.Diff(outcomes, gotOutcomes); diff != "" {
		s.t.Errorf("outcomes and totals: %s", diff)
	}
	if n := s.count("settlement_conflicts", "1"); n != len(m.conflicts) {
		s.t.Errorf("%d conflicts, want %d", n, len(m.conflicts))
	}
}

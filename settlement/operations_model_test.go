package settlement_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/archive"
	"doortab/database"
	"doortab/promotion"
	"doortab/settlement"
)

// past is what a plain model knows of one event.
type past struct {
	device      int64
	at          place
	id, payload string
	receipt     string
	restock     bool
	sure        map[int64]int64
	proposed    map[int64]int64
	user        int64
	units       map[int64]int64           // on the order, or brought by a restock door
	charged     map[int64]map[int64]int64 // of these on the order, by product and price
	short       map[int64]int64           // of these, what the books never gave and no count has made good
	ordered     bool                      // it ever had a line
	waiting     bool                      // for the review of its outcome, or a reopened one
}

// question is an open review.
type question struct {
	reviewID int64
	of       *past
	proposed map[int64]int64
	conflict bool
}

// desk is a shop with the people who decide its reviews, beside a model that knows no database.
type desk struct {
	*shop
	*rand.Rand
	books     *model
	deals     *deals
	sequences map[int64]*sequence
	counted   map[[2]int64]place
	different map[[2]int64]int64
	placed    map[[2]int64][]placed
	events    []*past
	held      []*past // doors that closed, whose events are still on their way
	promises  []*promise
	questions []question
	opened    time.Time
}

func newDesk(t *testing.T, seed uint64) *desk {
	d := &desk{
		shop: newShop(t), Rand: rand.New(rand.NewPCG(seed, 7)), books: newModel(), sequences: map[int64]*sequence{},
		counted: map[[2]int64]place{}, different: map[[2]int64]int64{}, placed: map[[2]int64][]placed{},
		opened: database.Now(),
	}
	for device := int64(1001); device <= 1002; device++ {
		d.cabinet(device)
		d.sequences[device] = &sequence{last: none}
	}
	d.deals = d.openDeals()
	return d
}

// move follows an event of a place in its cabinet's sequence: what was counted since moves nothing, and what comes back
// makes good what the books lacked before it adds to them.
func (d *desk) move(p *past, product, units int64) {
	k := [2]int64{p.device, product}
	before := d.books.stock[k]
	if d.countedUpTo(k).covers(p.at) {
		d.books.version[k]++
	} else {
		lacked, back := d.books.short[k], min(max(units, 0), p.short[product])
		d.books.short[k] -= back
		d.books.move(p.device, product, units-back)
		p.short[product] += d.books.short[k] - lacked
	}
	d.placed[k] = append(d.placed[k], placed{p.at, units, d.books.stock[k] - before})
}

// book changes what an event has come to.
func (d *desk) book(p *past, change map[int64]int64) {
	for _, product := range slices.Sorted(maps.Keys(change)) {
		units := change[product]
		if units == 0 {
			continue
		}
		p.units[product] += units
		if p.restock {
			d.move(p, product, units)
		} else {
			d.move(p, product, -units)
			p.ordered = true
			d.charge(p, product, units)
		}
	}
}

// charge prices what is added as at a door, and takes the dearest back first.
func (d *desk) charge(p *past, product, units int64) {
	at := p.charged[product]
	if at == nil {
		at = map[int64]int64{}
		p.charged[product] = at
	}
	if units > 0 {
		for price, n := range d.deals.prices(p.user, product, units) {
			at[price] += n
		}
		return
	}
	for _, price := range slices.Backward(slices.Sorted(maps.Keys(at))) {
		n := min(at[price], -units)
		at[price] -= n
		units += n
		d.deals.giveBack(p.user, product, price, n)
	}
}

func (d *desk) happen() {
	switch n := d.IntN(34); {
	case n >= 32:
		d.endSome()
	case n >= 30:
		d.reserveSome()
	case n >= 28 && len(d.deals.held) > 0:
		d.deals.end(d.shop, d.IntN(len(d.deals.held)), []promotion.ClaimState{promotion.Returned, promotion.Expired}[d.IntN(2)])
	case n >= 26:
		d.deals.claim(d.shop, d.deals.kept[d.IntN(3)], 42+d.Int64N(3), 1+d.Int64N(4), 1+d.IntN(800))
	case n < 6 || len(d.events) == 0:
		if p := d.closeDoor(); len(d.events) > 0 && d.IntN(3) == 0 {
			d.held = append(d.held, p)
		} else {
			d.deliver(p)
		}
	case n < 7:
		d.restockAll()
	case n < 8:
		d.writeOffSome()
	case n < 10 && len(d.held) > 0:
		d.deliverHeld()
	case n < 12:
		d.takeStock()
	case n == 12 && d.IntN(4) == 0:
		d.replace(int64(1001 + d.IntN(2)))
	case n < 14:
		d.resend(d.events[d.IntN(len(d.events))])
	case n < 16:
		d.contradict(d.events[d.IntN(len(d.events))])
	case n < 18:
		d.reopenAny(d.events[d.IntN(len(d.events))])
	case n < 20:
		d.archiveSome()
	case len(d.questions) > 0:
		d.answer(d.IntN(len(d.questions)))
	}
}

// closeDoor makes an event that nobody has heard of yet. One in eight has no seq.
func (d *desk) closeDoor() *past {
	device := int64(1001 + d.IntN(2))
	p := &past{
		device: device, id: fmt.Sprint("e", len(d.events)+len(d.held)), restock: d.IntN(5) == 0, at: place{seq: none},
		user: 42 + d.Int64N(3), charged: map[int64]map[int64]int64{},
		units: map[int64]int64{}, short: map[int64]int64{}, sure: map[int64]int64{}, proposed: map[int64]int64{},
	}
	list := []string{}
	for _, product := range []int64{7, 8, 9, 99} {
		units, confidence := 1+d.Int64N(4), []float64{1, 1, 0.5}[d.IntN(3)]
		switch {
		case d.IntN(2) == 0 || product == 99 && d.IntN(4) > 0:
			continue
		case product == 99:
			p.waiting = true
		case confidence < 1:
			p.waiting, p.proposed[product] = true, units
		default:
			p.sure[product] = units
		}
		list = append(list, fmt.Sprintf(`{"productId":%d,"quantity":%d,"confidence":%v}`, product, units, confidence))
	}
	members := []string{fmt.Sprintf(`"userId":%d`, p.user), fmt.Sprintf(`"kind":%q`, map[bool]string{true: "restock", false: "sale"}[p.restock])}
	if d.IntN(8) > 0 {
		p.at.seq = d.sequences[device].issue(1 + d.Int64N(2))
		members = append(members, fmt.Sprintf(`"seq":%d`, p.at.seq))
	}
	p.payload = event(device, p.id, append(members, `"items":[`+strings.Join(list, ",")+"]")...)
	return p
}

func (d *desk) deliver(p *past) {
	p.at.epoch = d.sequences[p.device].adopt(p.at.seq)
	receipt := d.receipts(p.device, p.payload)[0]
	p.receipt = fmt.Sprint(receipt)
	d.book(p, p.sure)
	d.pickUp(p, p.sure)
	d.checkTaken(p, receipt, d.lacking(p))
	d.events = append(d.events, p)
	if p.waiting {
		d.questions = append(d.questions, question{d.review(p.device, p.id).ReviewID, p, p.proposed, false})
	}
}

func (d *desk) deliverHeld() {
	n := d.IntN(len(d.held))
	p := d.held[n]
	d.held = slices.Delete(d.held, n, n+1)
	d.deliver(p)
}

func (d *desk) restockAll() {
	device, units := int64(1001+d.IntN(2)), 1+d.Int64N(20)
	d.restock(device, 7, units, 8, units)
	d.books.move(device, 7, units)
	d.books.move(device, 8, units)
}

// archiveSome archives what is older than some moment of the test, and may be stopped after any step.
func (d *desk) archiveSome() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	steps := d.IntN(12)
	_, err := archive.Run(ctx, d.db, archive.Options{
		Before: d.opened.Add(time.Duration(d.Int64N(int64(time.Since(d.opened)) + 1))), Batch: 1 + d.IntN(9),
		Progress: func(archive.Progress) {
			if steps--; steps < 0 {
				cancel()
			}
		},
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		d.t.Error(err)
	}
}

func (d *desk) resend(p *past) {
	receipt := d.receipts(p.device, p.payload)[0]
	receipt.Duplicate = false
	if got := fmt.Sprint(receipt); got != p.receipt {
		d.t.Errorf("%s resent: %s, first %s", p.id, got, p.receipt)
	}
}

func (d *desk) contradict(p *past) {
	d.receipts(p.device, event(p.device, p.id, `"userId":7`, items(7, 1+d.Int64N(900))))
	review := d.review(p.device, p.id)
	if !slices.ContainsFunc(d.questions, func(q question) bool { return q.reviewID == review.ReviewID }) && review.Status == "open" {
		d.questions = append(d.questions, question{review.ReviewID, p, nil, true})
	}
}

func (d *desk) reopenAny(p *past) {
	if p.restock || !p.ordered {
		return
	}
	review, err := d.reopen(d.orderOf(p.device, p.id).OrderID)
	if (err == nil) == p.waiting {
		d.t.Errorf("%s reopened while waiting is %v: %v", p.id, p.waiting, err)
	}
	if err == nil {
		p.waiting = true
		d.questions = append(d.questions, question{review.ReviewID, p, nil, false})
	}
}

func (d *desk) answer(n int) {
	q := d.questions[n]
	d.questions = slices.Delete(d.questions, n, n+1)
	decision := []settlement.Decision{settlement.Accept, settlement.Amend, settlement.Waive}[d.IntN(3)]
	change, whole := map[int64]int64{}, []int64{}
	switch decision {
	case settlement.Accept:
		maps.Copy(change, q.proposed)
	case settlement.Amend:
		for product, units := range q.of.units {
			change[product] = -units
		}
		for product := int64(7); product <= 9; product++ {
			if units := d.Int64N(5); units > 0 {
				change[product] += units
				whole = append(whole, product, units)
			}
		}
	}
	if _, err := d.decide(q.reviewID, decision, whole...); err != nil {
		d.t.Errorf("%s of %s: %v", decision, q.of.id, err)
	}
	d.book(q.of, change)
	d.pickUp(q.of, change)
	if !q.conflict {
		q.of.waiting = false
	}
}

func (d *desk) compare() {
	d.t.Helper()
	d.comparePromises()
	var stock, orders []string
	for k, version := range d.books.version {
		stock = append(stock, fmt.Sprintf("%d|%d|%d|%d|%d|%d", k[0], k[1], d.books.stock[k], version, d.books.short[k], d.different[k]))
	}
	slices.Sort(stock)
	got := d.rows(`SELECT d.device_id, d.product_id, d.stock, d.version, COALESCE(SUM(IF(x.kind = 'shortfall', x.quantity, 0)), 0),
		COALESCE(SUM(IF(x.kind = 'stocktake', x.quantity, 0)), 0) FROM device_stock d
		LEFT JOIN discrepancies x ON x.device_id = d.device_id AND x.product_id = d.product_id GROUP BY 1, 2, 3, 4 ORDER BY 1, 2`)
	if diff := gocmp.Diff(stock, got); diff != "" {
		d.t.Errorf("stock, version, shortfalls and differences: %s", diff)
	}
	for _, p := range d.events {
		if p.ordered && !p.restock {
			orders = append(orders, p.order())
		}
	}
	slices.Sort(orders)
	got = d.rows(`SELECT device_id, close_event_id, status, total_minor FROM orders
		UNION ALL SELECT device_id, close_event_id, status, total_minor FROM orders_archive`)
	slices.Sort(got)
	if diff := gocmp.Diff(orders, got); diff != "" {
		d.t.Errorf("orders: %s", diff)
	}
	d.deals.compare(d.shop)
	if n := d.count("reviews", "status = 'open'"); n != len(d.questions) {
		d.t.Errorf("%d open reviews, want %d", n, len(d.questions))
	}
}

func (p *past) order() string {
	status, total := "void", int64(0)
	for product, units := range p.units {
		for price, n := range p.charged[product] {
			total += price * n
		}
		if units != 0 {
			status = "open"
		}
	}
	if p.waiting {
		status = "review"
	}
	return fmt.Sprintf("%d|%s|%s|%d", p.device, p.id, status, total)
}

// TestOperationsEqualTheModel: sales and staff's doors in any order, with and without a seq, resent and contradicted, between
// restocks, write-offs, stock-takes, replaced controllers and whatever people decide, with promotions and their claims and with
// reservations, while what is old is archived: the books are those of the model, and sound.
func TestOperationsEqualTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, seed)
			for range 150 {
				d.happen()
			}
			d.compare()
			d.audited()
			for len(d.held) > 0 {
				d.deliverHeld()
			}
			for len(d.questions) > 0 {
				d.answer(d.IntN(len(d.questions)))
			}
			d.compare()
			d.audited()
			for _, p := range slices.SortedFunc(slices.Values(d.events), func(a, b *past) int { return cmp.Compare(b.at.seq, a.at.seq) }) {
				d.resend(p)
			}
		})
	}
}

package settlement_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/settlement"
)

// tagPlace is where a plain model has a tag; "" for one that it never saw.
type tagPlace struct {
	state string
	by    *tagDoor // put it there, or took it
}

// tagDoor is what the model knows of one event; units are those on its order, or brought.
type tagDoor struct {
	device     int64
	id         string
	seq        int
	restock    bool
	gone, came []string
	units      int64
	proposed   int64
	ordered    bool
	reviewID   int64 // the open one
}

// tagDesk is a shop of two cabinets with tags of product 7 that come, go, wander and are misread, beside a model.
type tagDesk struct {
	*shop
	*rand.Rand
	tags  map[string]tagPlace
	doors []*tagDoor
	held  []*heldDoor // closed, and not yet reported
}

// heldDoor is a door as it is reported; covered: tags vanish while the scale stands still.
type heldDoor struct {
	*tagDoor
	stayed  []string
	covered bool
}

func (d *tagDesk) in(epc string, state string, device int64) bool {
	at := d.tags[epc]
	return at.state == state && (device == 0 || at.by.device == device)
}

func (d *tagDesk) some(one func(epc string) bool) (list []string) {
	for _, epc := range slices.Sorted(maps.Keys(d.tags)) {
		if one(epc) {
			list = append(list, epc)
		}
	}
	return list
}

// chance lists the tags that both ends of a door see, and those that only one does: mostly such as are where the books have them.
func (d *tagDesk) chance(p *tagDoor) (stayed []string) {
	for _, epc := range slices.Sorted(maps.Keys(d.tags)) {
		here := d.in(epc, "in_cabinet", p.device)
		switch n := d.IntN(10); {
		case here && !p.restock && n < 4 || here && n < 1 || !here && n == 9:
			p.gone = append(p.gone, epc)
		case p.restock && !here && n < 4 || n == 8:
			p.came = append(p.came, epc)
		case here || n == 7:
			stayed = append(stayed, epc)
		}
	}
	return stayed
}

func (d *tagDesk) closeDoor() {
	n := len(d.doors) + len(d.held)
	p := &heldDoor{tagDoor: &tagDoor{device: int64(1001 + d.IntN(2)), id: fmt.Sprint("e", n), seq: n, restock: d.IntN(3) == 0}}
	if p.covered = !p.restock && d.IntN(3) == 0; p.covered {
		here := d.some(func(epc string) bool { return d.in(epc, "in_cabinet", p.device) })
		gone := min(len(here), 2)
		p.gone, p.stayed, p.proposed = here[:gone], here[gone:], int64(gone)
		d.report(p)
		return
	}
	p.stayed = d.chance(p.tagDoor)
	if d.held = append(d.held, p); d.IntN(3) > 0 {
		d.reportSome()
	}
}

// reportSome lets one of the two cabinets report some of its doors in any order, as one group.
func (d *tagDesk) reportSome() {
	d.Shuffle(len(d.held), func(i, j int) { d.held[i], d.held[j] = d.held[j], d.held[i] })
	var group, held []*heldDoor
	for i, p := range d.held {
		if i == 0 || p.device == d.held[0].device && d.IntN(2) == 0 {
			group = append(group, p)
		} else {
			held = append(held, p)
		}
	}
	d.held = held
	d.report(group...)
}

func (d *tagDesk) report(group ...*heldDoor) {
	var events []string
	var waits []*tagDoor
	for _, p := range group {
		events = append(events, p.event())
		if d.settled(p.tagDoor, p.stayed, p.covered) {
			waits = append(waits, p.tagDoor)
		}
		p.ordered = p.units > 0 && !p.restock
		d.doors = append(d.doors, p.tagDoor)
	}
	d.receipts(group[0].device, events...)
	for _, p := range waits {
		p.reviewID = d.review(p.device, p.id).ReviewID
	}
}

func (p *heldDoor) event() string {
	text := func(a, b []string) string { return strings.Join(slices.Concat(a, b), " ") }
	members := []string{
		seq(p.seq), fmt.Sprintf(`"kind":%q`, map[bool]string{true: "restock", false: "sale"}[p.restock]), `"userId":42`,
		rfid(text(p.gone, p.stayed), text(p.came, p.stayed)),
	}
	if p.covered {
		members = append(members, oneLane(690, 690))
	}
	return event(p.device, p.id, members...)
}

// settled is what the door by itself does to the tags, and whether a person is asked. Where a later door put a tag, it stays.
func (d *tagDesk) settled(p *tagDoor, stayed []string, covered bool) (waits bool) {
	for _, epc := range p.gone {
		switch here := d.in(epc, "in_cabinet", p.device) && !d.late(p, epc); {
		case covered:
			waits = true
		case here && p.restock:
			d.tags[epc], waits = tagPlace{"lost", p}, true
		case here:
			d.tags[epc] = tagPlace{"sold", p}
			p.units++
		default:
			waits = true
			if !p.restock {
				p.proposed++
			}
		}
	}
	for _, epc := range p.came {
		switch at, late := d.tags[epc], d.late(p, epc); {
		case d.in(epc, "in_cabinet", p.device) && late:
		case d.in(epc, "in_cabinet", p.device):
			d.tags[epc] = tagPlace{"in_cabinet", p}
		case p.restock && late:
			p.units++
		case p.restock && (at.state == "" || at.state == "lost"):
			d.tags[epc] = tagPlace{"in_cabinet", p}
			p.units++
		case p.restock:
			waits = true
			p.proposed++
		case late:
		case at.state == "sold":
			d.tags[epc], waits = tagPlace{"in_cabinet", p}, true
		default:
			waits = true
		}
	}
	for _, epc := range stayed {
		if d.in(epc, "sold", 0) && !d.late(p, epc) {
			d.tags[epc], waits = tagPlace{"in_cabinet", p}, true
		}
	}
	return waits
}

// late: a later door put the tag where it is.
func (d *tagDesk) late(p *tagDoor, epc string) bool {
	at := d.tags[epc]
	return at.by != nil && p.before(at.by)
}

func (d *tagDesk) decideAny() {
	var open []*tagDoor
	for _, p := range d.doors {
		if p.reviewID != 0 {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return
	}
	p := open[d.IntN(len(open))]
	decision, lines, before := settlement.Waive, []int64(nil), p.units
	switch d.IntN(3) {
	case 0:
		decision, p.units = settlement.Accept, p.units+p.proposed
	case 1:
		decision, p.units = settlement.Amend, d.Int64N(4)
		if p.units > 0 {
			lines = []int64{7, p.units}
		}
	}
	if _, err := d.decide(p.reviewID, decision, lines...); err != nil {
		d.t.Errorf("%s of %s: %v", decision, p.id, err)
	}
	p.reviewID, p.proposed, p.ordered = 0, 0, !p.restock && (p.ordered || p.units > 0)
	if p.restock {
		d.brought(p, p.units-before)
	} else {
		d.charged(p)
	}
}

func (p *tagDoor) before(other *tagDoor) bool { return p.device == other.device && p.seq < other.seq }

func (d *tagDesk) charged(p *tagDoor) {
	left, free := p.units, []string(nil)
	for _, epc := range slices.Sorted(slices.Values(p.gone)) {
		switch at := d.tags[epc]; {
		case at.state == "sold" && at.by == p && left > 0:
			left--
		case at.state == "sold" && at.by == p:
			d.tags[epc] = tagPlace{"in_cabinet", p}
		case at.state != "sold" && (at.by == nil || !p.before(at.by)):
			free = append(free, epc)
		}
	}
	rank := func(epc string) int {
		switch {
		case d.in(epc, "in_cabinet", p.device):
			return 0
		case d.in(epc, "lost", p.device) && d.tags[epc].by == p:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(free, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, epc := range free {
		switch at := d.tags[epc]; {
		case left > 0:
			d.tags[epc] = tagPlace{"sold", p}
			left--
		case at.state != "lost" && (at.state != "in_cabinet" || at.by != p):
			d.tags[epc] = tagPlace{"lost", p}
		}
	}
}

func (d *tagDesk) brought(p *tagDoor, more int64) {
	for _, epc := range slices.Sorted(slices.Values(p.came)) {
		at := d.tags[epc]
		if more > 0 && at.state != "sold" && !d.in(epc, "in_cabinet", p.device) && (at.by == nil || !p.before(at.by)) {
			d.tags[epc] = tagPlace{"in_cabinet", p}
			more--
		}
	}
}

func (d *tagDesk) reopenAny() {
	if len(d.doors) == 0 {
		return
	}
	p := d.doors[d.IntN(len(d.doors))]
	if !p.ordered || p.reviewID != 0 {
		return
	}
	review, err := d.reopen(d.orderOf(p.device, p.id).OrderID)
	if err != nil {
		d.t.Fatal(err)
	}
	p.reviewID = review.ReviewID
}

func (d *tagDesk) compare() {
	d.t.Helper()
	var want []string
	for _, epc := range d.some(func(epc string) bool { return d.tags[epc].state != "" }) {
		at, order := d.tags[epc], ""
		if at.state == "sold" {
			order = at.by.id
		}
		want = append(want, fmt.Sprintf("%s|%s|%d|%s|%s", epc, at.state, at.by.device, at.by.id, order))
	}
	got := d.rows(`SELECT epc, state, e.device_id, e.close_event_id, o.close_event_id FROM epcs e LEFT JOIN orders o USING (order_id) ORDER BY epc`)
	if diff := gocmp.Diff(want, got); diff != "" {
		d.t.Fatalf("after %d doors, tags (- wanted, + found): %s", len(d.doors), diff)
	}
	over := d.rows(`SELECT order_id, product_id FROM epcs e WHERE state = 'sold' GROUP BY 1, 2
		HAVING COUNT(*) > (SELECT SUM(quantity) FROM order_lines l WHERE l.order_id = e.order_id AND l.product_id = e.product_id)`)
	if len(over) > 0 {
		d.t.Fatalf("more tags than units are sold in %v", over)
	}
}

// TestTagsEqualTheModel: whatever doors report, also late, and people decide in whatever order, each tag is in the one place
// where the model has it, and no order has more tags than units.
func TestTagsEqualTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d := &tagDesk{shop: taggedShop(t), Rand: rand.New(rand.NewPCG(seed, 3)), tags: map[string]tagPlace{}}
			d.planned(1001)
			d.planned(1002)
			for n := range 8 {
				d.tags[fmt.Sprintf("3036142C8C008F80000532%02X", n)] = tagPlace{}
			}
			for range 120 {
				switch n := d.IntN(8); {
				case n < 4:
					d.closeDoor()
				case n < 5:
					d.reopenAny()
				default:
					d.decideAny()
				}
				d.compare()
			}
			d.audited()
		})
	}
}

package settlement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

// tagChange is a tag that a decision moved, as the audit log keeps it.
type tagChange struct {
	EPC   string             `json:"epc"`
	State inventory.TagState `json:"state"`
}

// pastTags are the tags that only one end of a past event's door saw, gone at a sale or come at a restock, with the place that
// the books have for them now.
type pastTags struct {
	event     *pastEvent
	orderID   int64
	tags      *inventory.Tags
	byProduct map[int64][]string // ascending
	since     map[string]bool    // whose place a later door or a write-off decided, which stands
	moved     []tagChange
}

// placeTags moves the tags of an event to where a decision leaves them. At a sale as many are sold in the order as it has
// units of their product; those that were sold beyond that are in the cabinet again; and once nobody is to decide more, those
// that nobody is charged for are lost. At a restock as many come in as units were added. A tag that is sold in another order
// stays there.
func (e *pastEvent) placeTags(
	tx *gorm.DB, attempt int, change map[int64]int64, orderID int64, waits bool, now time.Time,
) ([]tagChange, error) {
	p, err := e.openTags(tx, orderID, database.LockingFor(attempt))
	if p == nil || err != nil {
		return nil, err
	}
	for _, product := range slices.Sorted(maps.Keys(p.byProduct)) {
		switch {
		case e.restock:
			p.bring(product, change[product])
		case !waits || change[product] != 0:
			p.charge(product, e.standing[product], waits)
		}
	}
	return p.moved, p.tags.Write(tx, now)
}

// openTags returns nil where the event has no such tags.
func (e *pastEvent) openTags(tx *gorm.DB, orderID int64, locking database.Locking) (*pastTags, error) {
	if len(e.payload) == 0 {
		return nil, nil
	}
	said, err := cabinet.Decode(e.payload)
	if err != nil {
		return nil, fmt.Errorf("stored payload of %s: %w", e.name(), err)
	}
	epcs, came := said.TagsMoved()
	if e.restock {
		epcs = came
	}
	if len(epcs) == 0 {
		return nil, nil
	}
	p := &pastTags{event: e, orderID: orderID, byProduct: map[int64][]string{}}
	if p.tags, err = inventory.OpenTags(tx, epcs, locking); err != nil {
		return nil, err
	}
	if err := p.name(tx, epcs); err != nil {
		return nil, err
	}
	return p, p.readSince(tx, epcs)
}

// name finds the product of each tag, as catalogue and overrides have it now: a person may have corrected them before the
// review.
func (p *pastTags) name(tx *gorm.DB, epcs []string) error {
	b := newBooks()
	b.tags = p.tags
	var none inventory.Cache // a person's decision bears reading them
	if err := b.findProducts(tx, none.At(0, time.Now()), nil, epcs); err != nil {
		return err
	}
	shelf := cabinet.Shelf{Products: b.products, ByGTIN: b.byGTIN, Overrides: p.tags.Overrides()}
	for _, epc := range epcs {
		product, _ := shelf.ProductOf(epc)
		if tag, _ := p.tags.Tag(epc); p.sold(tag) && p.event.standing[tag.ProductID] > 0 {
			product = tag.ProductID // as which it was charged
		}
		if product != 0 {
			p.byProduct[product] = append(p.byProduct[product], epc)
		}
	}
	return nil
}

func (p *pastTags) sold(tag inventory.Tag) bool {
	return tag.OrderID != nil && *tag.OrderID == p.orderID
}

// Within one controller's sequence seq tells which of two doors came later, else the time at which they were reported.
const readSince = `SELECT t.epc FROM epcs t FORCE INDEX (PRIMARY)
	LEFT JOIN settlements s ON s.device_id = t.device_id AND s.close_event_id = t.close_event_id
	WHERE t.epc IN ? AND COALESCE(IF(s.device_id = ? AND s.seq_epoch = ?, s.seq > ?, NULL), COALESCE(s.received_at, t.updated_at) > ?)`

func (p *pastTags) readSince(tx *gorm.DB, epcs []string) error {
	var seq, epoch any
	if at := p.event.at; at != nil {
		seq, epoch = at.Seq, at.Epoch
	}
	var later []string
	if err := tx.Raw(readSince, epcs, p.event.deviceID, epoch, seq, p.event.receivedAt).Scan(&later).Error; err != nil {
		return fmt.Errorf("read tags of %s that later doors saw: %w", p.event.name(), err)
	}
	p.since = make(map[string]bool, len(later))
	for _, epc := range later {
		p.since[epc] = true
	}
	return nil
}

// charge settles the tags of a product of which units stand on the order.
func (p *pastTags) charge(product, units int64, waits bool) {
	sold, free := p.claimed(product)
	kept := min(int(units), len(sold))
	for _, epc := range sold[kept:] {
		p.move(epc, product, inventory.TagInCabinet)
	}
	more := min(int(units)-kept, len(free))
	for _, epc := range free[:more] {
		p.move(epc, product, inventory.TagSold)
	}
	if waits {
		return
	}
	for _, epc := range free[more:] {
		if tag, _ := p.tags.Tag(epc); tag.State != inventory.TagLost && !p.givenBack(tag) {
			p.move(epc, product, inventory.TagLost)
		}
	}
}

// claimed are the tags of a product that are sold in the order, and those that may be, the likeliest first.
func (p *pastTags) claimed(product int64) (sold, free []string) {
	for _, epc := range p.byProduct[product] {
		tag, _ := p.tags.Tag(epc)
		switch {
		case p.sold(tag):
			sold = append(sold, epc)
		case tag.State != inventory.TagSold && !p.since[epc]:
			free = append(free, epc)
		}
	}
	slices.SortStableFunc(free, func(a, b string) int { return cmp.Compare(p.preference(a), p.preference(b)) })
	return sold, free
}

// preference of a tag that may be the one that was taken, the lowest first.
func (p *pastTags) preference(epc string) int {
	switch tag, _ := p.tags.Tag(epc); {
	case tag.State == inventory.TagInCabinet && tag.DeviceID == p.event.deviceID:
		return 0
	case tag.State == inventory.TagLost && p.ofEvent(tag): // an earlier decision left it uncharged
		return 1
	default:
		return 2
	}
}

// givenBack: an earlier decision about the event took the tag off its order.
func (p *pastTags) givenBack(tag inventory.Tag) bool {
	return tag.State == inventory.TagInCabinet && p.ofEvent(tag)
}

func (p *pastTags) ofEvent(tag inventory.Tag) bool {
	return tag.DeviceID == p.event.deviceID && tag.CloseEventID == p.event.closeEventID
}

// bring books in the tags of a product of which staff brought more units than the door had booked.
func (p *pastTags) bring(product, units int64) {
	for _, epc := range p.byProduct[product] {
		tag, _ := p.tags.Tag(epc)
		here := tag.State == inventory.TagInCabinet && tag.DeviceID == p.event.deviceID
		if units > 0 && !here && tag.State != inventory.TagSold && !p.since[epc] {
			p.move(epc, product, inventory.TagInCabinet)
			units--
		}
	}
}

func (p *pastTags) move(epc string, product int64, state inventory.TagState) {
	p.tags.Move(inventory.Tag{
		EPC: epc, ProductID: product, State: state, DeviceID: p.event.deviceID, CloseEventID: p.event.closeEventID,
	})
	if state == inventory.TagSold {
		p.tags.SetOrder(epc, p.orderID)
	}
	p.moved = append(p.moved, tagChange{epc, state})
}

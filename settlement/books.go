package settlement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
	"doortab/promotion"
	"doortab/reservation"
)

// books is what the database knows of the cabinets of a group while it is judged: each event
// finds what the one before it left.
type books struct {
	planograms map[int64]inventory.Planogram
	products   map[int64]cabinet.Product
	byGTIN     map[string]int64
	prices     inventory.Prices
	tags       *inventory.Tags
	movers     map[key]moment // doors that moved tags, as far as an event of the group may be older
	strays     map[int64]*strays
	stock      *inventory.Ledger
	doors      *promotion.Doors   // nil: no promotion is of anything that the group sold
	holds      *reservation.Holds // nil: nothing can be reserved
}

// strays is what lies in lanes of a cabinet that it does not belong to.
type strays struct {
	list    []cabinet.Stray
	before  int64 // version as read; 0: not there
	changed bool
}

func newBooks() *books {
	return &books{
		products: map[int64]cabinet.Product{}, byGTIN: map[string]int64{}, prices: inventory.Prices{}, strays: map[int64]*strays{},
	}
}

// openBooks reads what the evidence of the group's events is laid against.
func openBooks(tx *gorm.DB, items []*item, catalogue *inventory.View, locking database.Locking) (b *books, err error) {
	b = newBooks()
	weighed, epcs := witnesses(items)
	if b.planograms, err = catalogue.Planograms(tx, weighed); err != nil {
		return nil, err
	}
	if err = b.readStrays(tx, weighed); err != nil {
		return nil, err
	}
	if b.tags, err = inventory.OpenTags(tx, epcs, locking); err != nil {
		return nil, err
	}
	if err = b.readMovers(tx, items); err != nil {
		return nil, err
	}
	return b, b.findProducts(tx, catalogue, items, epcs)
}

// witnesses lists the cabinets whose scales speak and the tags that antennas saw.
func witnesses(items []*item) (weighed []int64, epcs []string) {
	for _, it := range items {
		if it.event.HasWeights || it.event.HasRFID {
			weighed = append(weighed, it.key.deviceID)
		}
		epcs = append(append(epcs, it.event.RFID.Before...), it.event.RFID.After...)
	}
	return distinct(weighed), epcs
}

func (b *books) readStrays(tx *gorm.DB, devices []int64) error {
	if len(devices) == 0 {
		return nil
	}
	var rows []struct {
		DeviceID int64
		Strays   []byte
		Version  int64
	}
	err := tx.Raw("SELECT device_id, strays, version FROM cabinet_strays WHERE device_id IN ?", devices).Scan(&rows).Error
	if err != nil {
		return fmt.Errorf("read cabinet_strays: %w", err)
	}
	for _, row := range rows {
		known := &strays{before: row.Version}
		if err := json.Unmarshal(row.Strays, &known.list); err != nil {
			return fmt.Errorf("strays of cabinet %d: %w", row.DeviceID, err)
		}
		b.strays[row.DeviceID] = known
	}
	return nil
}

func (b *books) findProducts(tx *gorm.DB, catalogue *inventory.View, items []*item, epcs []string) error {
	ids := b.tags.Products()
	for _, it := range items {
		for _, counted := range it.event.Items {
			ids = append(ids, counted.ProductID)
		}
	}
	for _, planogram := range b.planograms {
		ids = slices.AppendSeq(ids, maps.Values(planogram))
	}
	for _, known := range b.strays {
		for _, stray := range known.list {
			ids = append(ids, stray.ProductID)
		}
	}
	var gtins []string
	for _, epc := range epcs {
		if tag, ok := cabinet.DecodeSGTIN(epc); ok {
			gtins = append(gtins, tag.GTIN14)
		}
	}
	articles, err := catalogue.Articles(tx, ids, gtins)
	if err != nil {
		return err
	}
	for id, a := range articles {
		b.products[id] = cabinet.Product{
			ProductID: id, GTIN14: a.GTIN14, UnitWeightGrams: a.UnitWeightGrams, WeightToleranceGrams: a.WeightToleranceGrams,
		}
		b.prices[id] = a.Prices
		if a.GTIN14 != "" {
			b.byGTIN[a.GTIN14] = id
		}
	}
	return b.readOldPrices(tx, catalogue, items)
}

// readOldPrices is for events that come long after their doors were opened.
func (b *books) readOldPrices(tx *gorm.DB, catalogue *inventory.View, items []*item) (err error) {
	if len(items) == 0 {
		return nil
	}
	oldest := slices.MinFunc(items, func(x, y *item) int { return x.pricedAt().Compare(y.pricedAt()) }).pricedAt()
	if !catalogue.PricesReach(oldest) {
		b.prices, err = inventory.ReadPrices(tx, slices.Collect(maps.Keys(b.products)), oldest)
	}
	return err
}

func distinct[T int64 | string](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// shelf is what the books know at the moment of an event.
func (b *books) shelf(it *item) cabinet.Shelf {
	shelf := cabinet.Shelf{
		Lanes: b.planograms[it.key.deviceID], Products: b.products, ByGTIN: b.byGTIN,
		Overrides: b.tags.Overrides(),
	}
	if it.event.HasRFID {
		shelf.Tags, shelf.Later = map[string]cabinet.TagPlace{}, map[string]bool{}
	}
	for _, epc := range slices.Concat(it.event.RFID.Before, it.event.RFID.After) {
		shelf.Tags[epc] = b.place(epc, it.key.deviceID)
		if b.movedLater(epc, it) {
			shelf.Later[epc] = true
		}
	}
	if known := b.strays[it.key.deviceID]; known != nil {
		shelf.Strays = known.list
	}
	return shelf
}

func (b *books) place(epc string, deviceID int64) cabinet.TagPlace {
	tag, known := b.tags.Tag(epc)
	switch {
	case !known:
		return cabinet.TagUnknown
	case tag.State == inventory.TagSold:
		return cabinet.TagSold
	case tag.State == inventory.TagLost:
		return cabinet.TagLost
	case tag.DeviceID == deviceID:
		return cabinet.TagHere
	default:
		return cabinet.TagElsewhere
	}
}

var stateOf = map[cabinet.TagPlace]inventory.TagState{
	cabinet.TagHere: inventory.TagInCabinet, cabinet.TagSold: inventory.TagSold, cabinet.TagLost: inventory.TagLost,
}

// nameSales tells a person which order to look at where a tag was sold before. Once the tag has a new place the books forget it.
func (b *books) nameSales(v *verdict) {
	for i := range v.evidence.Findings {
		f := &v.evidence.Findings[i]
		if f.Reason != cabinet.ReasonEPCAlreadySold {
			continue
		}
		for _, epc := range f.Evidence.EPCs {
			tag, _ := b.tags.Tag(epc)
			sale := cabinet.TagSale{EPC: epc, DeviceID: tag.DeviceID, CloseEventID: tag.CloseEventID}
			if tag.OrderID != nil {
				sale.OrderID = FormatID(*tag.OrderID)
			}
			f.Sales = append(f.Sales, sale)
		}
	}
}

// note keeps what an event changed beside stock, for the events behind it.
func (b *books) note(it *item, v *verdict) {
	for _, move := range v.evidence.Tags {
		b.tags.Move(inventory.Tag{
			EPC: move.EPC, ProductID: move.ProductID, State: stateOf[move.Place],
			DeviceID: it.key.deviceID, CloseEventID: it.key.closeEventID,
		})
	}
	known := b.strays[it.key.deviceID]
	if known == nil {
		known = &strays{}
		b.strays[it.key.deviceID] = known
	}
	if it.event.HasWeights && !slices.Equal(known.list, v.evidence.Strays) {
		known.list, known.changed = v.evidence.Strays, true
	}
}

// sold writes the order to the tags that the event sold.
func (b *books) sold(it *item, v *verdict, orderID int64) {
	for _, move := range v.evidence.Tags {
		if tag, _ := b.tags.Tag(move.EPC); tag.CloseEventID == it.key.closeEventID && tag.State == inventory.TagSold {
			b.tags.SetOrder(move.EPC, orderID)
		}
	}
}

// write writes stock, then tags, strays and reservations. It returns [database.ErrConflict] where another
// writer was first.
func (b *books) write(tx *gorm.DB, now time.Time) error {
	if err := b.stock.Write(tx, now); err != nil {
		return err
	}
	if err := b.tags.Write(tx, now); err != nil {
		return err
	}
	if err := b.writeStrays(tx, now); err != nil {
		return err
	}
	return b.holds.Write(tx, now)
}

func (b *books) writeStrays(tx *gorm.DB, now time.Time) error {
	var fresh, known [][]any
	for _, device := range slices.Sorted(maps.Keys(b.strays)) {
		s := b.strays[device]
		switch {
		case !s.changed:
		case s.before == 0:
			fresh = append(fresh, []any{device, marshal(orEmpty(s.list)), 1, now})
		default:
			known = append(known, []any{device, s.before, marshal(orEmpty(s.list)), s.before + 1, now})
		}
	}
	err := database.UpdateAll(tx, "cabinet_strays", []database.Column{database.Int("device_id"), database.Int("version")},
		[]database.Column{database.Document("strays"), database.Int("version"), database.Time("updated_at")}, known)
	if err != nil {
		return err
	}
	return insert(tx, "cabinet_strays", "", fresh, "device_id", "strays", "version", "updated_at")
}

package inventory

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// TagState says where the books have a tag.
type TagState string

// The states. A tag is in one cabinet, or sold in one order, or lost.
const (
	TagInCabinet TagState = "in_cabinet"
	TagSold      TagState = "sold"
	TagLost      TagState = "lost"
)

// Tag is the one place that the books have for an EPC.
type Tag struct {
	EPC          string // upper case hex
	ProductID    int64
	State        TagState
	DeviceID     int64  // the cabinet it is in, or was in last
	CloseEventID string // the door that put it there or took it out; the id of the write-off that lost it
	OrderID      *int64 // of a sold one
	Version      int64
	MovedAt      time.Time // when its place was written; zero once moved in this transaction
}

// Tags holds what the books know of some tags inside one transaction, and writes where they
// went.
type Tags struct {
	tags   map[string]*tagRow
	moved  map[string]bool
	assign map[string]int64 // EPC to product, where the tag's own GTIN is wrong
}

type tagRow struct {
	Tag    `gorm:"embedded"`
	before int64 // version as read; 0: not there
}

// OpenTags reads the tags among epcs that the books have, in ascending order, and the
// overrides for them.
func OpenTags(tx *gorm.DB, epcs []string, locking database.Locking) (*Tags, error) {
	t := &Tags{tags: map[string]*tagRow{}, moved: map[string]bool{}, assign: map[string]int64{}}
	sorted := slices.Compact(slices.Sorted(slices.Values(epcs)))
	for some := range slices.Chunk(sorted, rowsAtOnce) {
		if err := t.read(tx, some, locking); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Tags) read(tx *gorm.DB, epcs []string, locking database.Locking) error {
	var found []*tagRow
	err := tx.Raw(`SELECT epc, product_id, state, device_id, close_event_id, order_id, version,
		updated_at AS moved_at FROM epcs FORCE INDEX (PRIMARY) WHERE epc IN ? ORDER BY epc`+locking.Clause(), epcs).Scan(&found).Error
	if err != nil {
		return fmt.Errorf("read tags: %w", err)
	}
	for _, row := range found {
		row.before = row.Version
		t.tags[row.EPC] = row
	}
	var overrides []struct {
		EPC       string
		ProductID int64
	}
	if err := tx.Raw("SELECT epc, product_id FROM epc_overrides WHERE epc IN ?", epcs).Scan(&overrides).Error; err != nil {
		return fmt.Errorf("read overrides of tags: %w", err)
	}
	for _, o := range overrides {
		t.assign[o.EPC] = o.ProductID
	}
	return nil
}

// Tag is what the books have of an EPC, false where they never saw it.
func (t *Tags) Tag(epc string) (Tag, bool) {
	row := t.tags[epc]
	if row == nil {
		return Tag{}, false
	}
	return row.Tag, true
}

// isHere tells whether the books have an EPC on a product in a cabinet.
func (t *Tags) isHere(epc string, productID, deviceID int64) bool {
	row := t.tags[epc]
	if row == nil || row.State != TagInCabinet || row.DeviceID != deviceID {
		return false
	}
	if assigned, ok := t.assign[epc]; ok {
		return assigned == productID
	}
	return row.ProductID == productID
}

// Overrides maps an EPC to its product, where the tag's own GTIN is wrong.
func (t *Tags) Overrides() map[string]int64 { return t.assign }

// Products lists the products that the books or the overrides name.
func (t *Tags) Products() []int64 {
	var ids []int64
	for _, row := range t.tags {
		ids = append(ids, row.ProductID)
	}
	return slices.AppendSeq(ids, maps.Values(t.assign))
}

// Move gives a tag its new place; it must be among those of [OpenTags].
func (t *Tags) Move(tag Tag) {
	row := t.tags[tag.EPC]
	if row == nil {
		row = &tagRow{}
		t.tags[tag.EPC] = row
	}
	tag.Version = row.Version + 1
	row.Tag = tag
	t.moved[tag.EPC] = true
}

// SetOrder names the order that a tag was sold in; it must have been moved.
func (t *Tags) SetOrder(epc string, orderID int64) { t.tags[epc].OrderID = &orderID }

var (
	tagColumns = []string{"epc", "version", "product_id", "state", "device_id", "close_event_id", "order_id", "updated_at"}
	tagKey     = []database.Column{database.Text("epc"), database.Int("version")}
	tagValues  = []database.Column{
		database.Int("version"), database.Int("product_id"), database.Code("state"), database.Int("device_id"),
		database.Code("close_event_id"), database.Int("order_id"), database.Time("updated_at"),
	}
)

// Write writes the places that changed. It returns [database.ErrConflict] where another
// writer was first.
func (t *Tags) Write(tx *gorm.DB, now time.Time) error {
	var fresh, known [][]any
	for _, epc := range slices.Sorted(maps.Keys(t.moved)) {
		row := t.tags[epc]
		values := []any{row.ProductID, row.State, row.DeviceID, row.CloseEventID, row.OrderID, now}
		if row.before == 0 {
			fresh = append(fresh, append([]any{epc, row.Version}, values...))
		} else {
			known = append(known, append([]any{epc, row.before, row.Version}, values...))
		}
	}
	for some := range slices.Chunk(known, rowsAtOnce) {
		if err := database.UpdateAll(tx, "epcs", tagKey, tagValues, some); err != nil {
			return err
		}
	}
	err := database.Insert(tx, "epcs", tagColumns, fresh, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("insert into epcs: %w", database.ErrConflict)
	}
	return err
}

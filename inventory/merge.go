package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Draft is a product as somebody wants it to be.
type Draft struct {
	ProductID int64  // 0: the product that has the SKU, or a new one
	SKU       string // looked at where ProductID is 0
	// Change makes the product what it is to be; fresh tells that there is none yet. It may run more than once.
	Change func(p *Product, fresh bool) error
}

// Refused says what is wrong with drafts, by their places in the list.
type Refused map[int]error

// Error names the first.
func (r Refused) Error() string {
	first := slices.Min(slices.Collect(maps.Keys(r)))
	return fmt.Sprintf("%d of the products: number %d: %v", len(r), first+1, r[first])
}

// Merged counts what [Catalogue.Merge] did.
type Merged struct{ Added, Changed, Unchanged int }

// Merge brings many products to what drafts say, all of them or none, in one transaction with a line of the audit log for
// each that changes. Products that no draft names stay as they are. Keys may be swapped between products. It fails with
// [Refused].
func (c *Catalogue) Merge(ctx context.Context, drafts []Draft) (Merged, error) {
	var done Merged
	err := c.db.InTx(ctx, func(tx *gorm.DB) error {
		m, err := openMerge(tx)
		if err != nil {
			return err
		}
		m.apply(drafts)
		if len(m.refused) > 0 {
			return m.refused
		}
		done, err = m.write(tx)
		return err
	})
	if err != nil {
		return Merged{}, fmt.Errorf("merge products: %w", err)
	}
	return done, nil
}

// merge holds the whole catalogue, locked.
type merge struct {
	now     time.Time
	byID    map[int64]*merging
	bySKU   map[string]*merging // as they were
	all     []*merging
	lastID  int64 // the highest of those that are assigned
	refused Refused
}

type merging struct {
	Product
	before Product
	fresh  bool
	draft  int // the one that names it; -1: none
}

// openMerge lets merges and assigned numbers go one at a time, and holds every product: what is unique can then be judged
// in memory.
func openMerge(tx *gorm.DB) (*merge, error) {
	if _, err := nextProductID(tx); err != nil {
		return nil, err
	}
	var list []Product
	if err := tx.Raw(productSelect + " ORDER BY product_id FOR UPDATE").Scan(&list).Error; err != nil {
		return nil, fmt.Errorf("read products: %w", err)
	}
	m := &merge{
		now: database.Now(), byID: make(map[int64]*merging, len(list)), bySKU: make(map[string]*merging, len(list)),
		refused: Refused{},
	}
	for _, p := range list {
		entry := &merging{Product: p, before: p, draft: -1}
		m.all = append(m.all, entry)
		m.byID[p.ProductID], m.bySKU[p.SKU] = entry, entry
	}
	return m, nil
}

func (m *merge) apply(drafts []Draft) {
	for i, d := range drafts {
		if err := m.draft(i, d); err != nil {
			m.refused[i] = err
		}
	}
	for _, entry := range m.all {
		if entry.ProductID < assignBelow {
			m.lastID = max(m.lastID, entry.ProductID)
		}
	}
	for _, entry := range m.all {
		if entry.ProductID == 0 {
			m.lastID++
			entry.ProductID = m.lastID
		}
	}
	m.unique("sku", func(p Product) string { return p.SKU })
	m.unique("gtin", func(p Product) string { return gtin14(p.GTIN) })
}

func (m *merge) draft(i int, d Draft) error {
	entry := m.byID[d.ProductID]
	if d.ProductID == 0 {
		entry = m.bySKU[d.SKU]
	}
	switch {
	case entry == nil:
		entry = &merging{Product: Product{ProductID: d.ProductID, CreatedAt: m.now}, fresh: true}
		m.all = append(m.all, entry)
		if d.ProductID != 0 {
			m.byID[d.ProductID] = entry
		}
	case entry.draft >= 0:
		return fmt.Errorf("product %d is there twice", entry.ProductID)
	}
	entry.draft = i
	if err := d.Change(&entry.Product, entry.fresh); err != nil {
		return err
	}
	return entry.validate(entry.ProductID != 0)
}

// unique refuses the later of two products with one key, where a draft made it so.
func (m *merge) unique(name string, key func(Product) string) {
	holders := make(map[string]*merging, len(m.all))
	for _, entry := range m.all {
		value := key(entry.Product)
		if value == "" {
			continue
		}
		other := holders[value]
		if other == nil {
			holders[value] = entry
			continue
		}
		blamed := max(entry.draft, other.draft)
		if m.refused[blamed] == nil {
			m.refused[blamed] = fmt.Errorf("%s %w", name, ErrDuplicate)
		}
	}
}

func (m *merge) write(tx *gorm.DB) (Merged, error) {
	var added, changed []*merging
	done := Merged{}
	for _, entry := range m.all {
		switch {
		case entry.fresh:
			added = append(added, entry)
		case !entry.same(entry.before):
			changed = append(changed, entry)
		case entry.draft >= 0:
			done.Unchanged++
		}
	}
	slices.SortFunc(added, func(a, b *merging) int { return cmp.Compare(a.ProductID, b.ProductID) })
	done.Added, done.Changed = len(added), len(changed)
	if done.Added+done.Changed == 0 {
		return done, nil
	}
	prices, err := m.newPrices(tx, added, changed)
	if err != nil {
		return done, err
	}
	for _, step := range []func() error{
		func() error { return m.update(tx, changed) },
		func() error { return m.insert(tx, added) },
		func() error {
			return inChunks(tx, "product_prices", []string{"product_id", "valid_from", "price_minor"}, prices)
		},
		func() error { return auditlog.WriteAll(tx, m.entries(added, changed), m.now) },
		func() error { return raise(tx) },
	} {
		if err := step(); err != nil {
			return done, err
		}
	}
	return done, nil
}

var (
	productKey    = []database.Column{database.Int("product_id")}
	productValues = []database.Column{
		database.Text("sku"), database.Text("gtin"), database.Text("gtin14"), database.Text("name"), database.Int("price_minor"),
		database.Int("unit_weight_g"), database.Int("weight_tolerance_g"), database.Time("updated_at"),
	}
)

// update first gives keys of nobody's to the products whose keys change, since two may swap theirs.
func (m *merge) update(tx *gorm.DB, changed []*merging) error {
	nobodys := uuid.NewString()
	var released, rows [][]any
	for _, e := range changed {
		if e.SKU != e.before.SKU || e.GTIN != e.before.GTIN {
			released = append(released, []any{e.ProductID, fmt.Sprintf("%s/%d", nobodys, e.ProductID)})
		}
		rows = append(rows, []any{
			e.ProductID, e.SKU, orNull(e.GTIN), orNull(gtin14(e.GTIN)), e.Name, e.PriceMinor, e.UnitWeightGrams,
			e.WeightToleranceGrams, m.now,
		})
	}
	for some := range slices.Chunk(released, rowsAtOnce) {
		if _, err := database.UpdateEach(tx, "products", productKey, []database.Column{database.Text("sku")}, some); err != nil {
			return err
		}
		ids := make([]any, len(some))
		for i, row := range some {
			ids[i] = row[0]
		}
		if err := tx.Exec("UPDATE products SET gtin = NULL, gtin14 = NULL WHERE product_id IN ?", ids).Error; err != nil {
			return fmt.Errorf("release gtins: %w", err)
		}
	}
	for some := range slices.Chunk(rows, rowsAtOnce) {
		if _, err := database.UpdateEach(tx, "products", productKey, productValues, some); err != nil {
			return takenMeanwhile(err)
		}
	}
	return nil
}

func (m *merge) insert(tx *gorm.DB, added []*merging) error {
	rows := make([][]any, len(added))
	for i, e := range added {
		rows[i] = productRow(e.Product)
	}
	return takenMeanwhile(inChunks(tx, "products", productColumns, rows))
}

// takenMeanwhile: who was not there when the catalogue was read has taken a key. The next run judges it.
func takenMeanwhile(err error) error {
	if database.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", database.ErrConflict, err)
	}
	return err
}

// newPrices are the lines that the price history gets (R8).
func (m *merge) newPrices(tx *gorm.DB, added, changed []*merging) ([][]any, error) {
	var rows [][]any
	for _, e := range added {
		rows = append(rows, []any{e.ProductID, m.now, e.PriceMinor})
	}
	minor, ids := map[int64]int64{}, []int64(nil)
	for _, e := range changed {
		if e.PriceMinor != e.before.PriceMinor {
			minor[e.ProductID], ids = e.PriceMinor, append(ids, e.ProductID)
		}
	}
	for some := range slices.Chunk(ids, rowsAtOnce) {
		var last []Price
		err := tx.Raw(`SELECT product_id, MAX(valid_from) AS valid_from FROM product_prices
			WHERE product_id IN ? GROUP BY product_id`, some).Scan(&last).Error
		if err != nil {
			return nil, fmt.Errorf("read prices: %w", err)
		}
		for _, p := range last {
			rows = append(rows, []any{p.ProductID, after(m.now, p.ValidFrom), minor[p.ProductID]})
		}
	}
	return rows, nil
}

func (m *merge) entries(added, changed []*merging) []auditlog.Entry {
	list := make([]auditlog.Entry, 0, len(added)+len(changed))
	for _, e := range changed {
		list = append(list, auditlog.Entry{Action: "product.patch", Target: e.target(), Before: e.before, After: e.Product})
	}
	for _, e := range added {
		list = append(list, auditlog.Entry{Action: "product.create", Target: e.target(), After: e.Product})
	}
	return list
}

func inChunks(tx *gorm.DB, table string, columns []string, rows [][]any) error {
	for some := range slices.Chunk(rows, rowsAtOnce) {
		if err := database.Insert(tx, table, columns, some, ""); err != nil {
			return err
		}
	}
	return nil
}

// All reads the whole catalogue, ascending by product id.
func (c *Catalogue) All(ctx context.Context) ([]Product, error) {
	var list []Product
	if err := c.db.Read(ctx).Raw(productSelect + " ORDER BY product_id").Scan(&list).Error; err != nil {
		return nil, fmt.Errorf("read products: %w", err)
	}
	return list, nil
}

// RefusedIn finds the [Refused] that an error wraps; nil where there is none.
func RefusedIn(err error) Refused {
	var refused Refused
	errors.As(err, &refused)
	return refused
}

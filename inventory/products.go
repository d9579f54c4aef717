package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound  = errors.New("not found")
	ErrDuplicate = errors.New("is taken by another product")
	ErrInvalid   = errors.New("not valid")
)

// Limits of a product.
const (
	MaxProductID   = 1<<53 - 1
	MaxSKU         = 64  // characters
	MaxProductName = 200 // characters
	MaxPriceMinor  = 1_000_000_000_000
	MaxWeightGrams = 1_000_000

	// assignBelow leaves the numbers above it to those who choose their own.
	assignBelow = 1 << 40
)

// Product is one article of the catalogue. As JSON it is what the audit log keeps.
type Product struct {
	ProductID            int64     `json:"productId"`
	SKU                  string    `json:"sku"`                  // 1 to 64 characters, unique
	Name                 string    `json:"name"`                 // 1 to 200 characters of any script
	GTIN                 string    `json:"gtin,omitempty"`       // 8, 12, 13 or 14 digits as given, unique as a GTIN-14; "" for none
	PriceMinor           int64     `json:"priceMinor"`           // 0 to 10^12
	UnitWeightGrams      *int64    `json:"unitWeightGrams"`      // 1 to 10^6; nil: not weighed
	WeightToleranceGrams *int64    `json:"weightToleranceGrams"` // 0 to 10^6; nil: the default
	CreatedAt            time.Time `json:"-"`
}

// same tells whether nothing that a caller may change differs.
func (p Product) same(q Product) bool {
	return p.SKU == q.SKU && p.Name == q.Name && p.GTIN == q.GTIN && p.PriceMinor == q.PriceMinor &&
		equal(p.UnitWeightGrams, q.UnitWeightGrams) && equal(p.WeightToleranceGrams, q.WeightToleranceGrams)
}

func equal(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (p Product) target() string { return fmt.Sprintf("product %d", p.ProductID) }

// Catalogue is the table of products and their price history. It is safe for concurrent use.
type Catalogue struct{ db *database.DB }

// NewCatalogue returns the catalogue that db holds.
func NewCatalogue(db *database.DB) *Catalogue { return &Catalogue{db} }

const productSelect = `SELECT product_id, sku, name, COALESCE(gtin, '') AS gtin, price_minor,
  unit_weight_g AS unit_weight_grams, weight_tolerance_g AS weight_tolerance_grams, created_at FROM products`

// Create adds a product; a ProductID of 0 has the next free number assigned. It returns [ErrInvalid] for values out of
// range and [ErrDuplicate] where the product id, sku or gtin is taken.
func (c *Catalogue) Create(ctx context.Context, p Product) (Product, error) {
	p.CreatedAt = database.Now()
	if err := p.validate(p.ProductID != 0); err != nil {
		return Product{}, err
	}
	wanted, attempts := p, 0
	err := c.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		attempts = attempt
		p = wanted
		if p.ProductID == 0 {
			var err error
			if p.ProductID, err = nextProductID(tx); err != nil {
				return err
			}
		}
		return insertProduct(tx, p, wanted.ProductID == 0)
	})
	if errors.Is(err, ErrDuplicate) && attempts > 1 { // perhaps the answer to our own COMMIT was lost
		if stored, found := c.created(ctx, wanted); found {
			return stored, nil
		}
	}
	if err != nil {
		return Product{}, fmt.Errorf("create product: %w", err)
	}
	return p, nil
}

// nextProductID lets those who want a number go one at a time, by the lock of a row that always exists.
func nextProductID(tx *gorm.DB) (int64, error) {
	var ignored []string
	if err := tx.Raw("SELECT installation_id FROM installation FOR UPDATE").Scan(&ignored).Error; err != nil {
		return 0, fmt.Errorf("wait for a product id: %w", err)
	}
	var last int64
	err := tx.Raw("SELECT COALESCE(MAX(product_id), 0) FROM products WHERE product_id < ?", int64(assignBelow)).Scan(&last).Error
	if err != nil {
		return 0, fmt.Errorf("read the last product id: %w", err)
	}
	return last + 1, nil
}

var productColumns = []string{
	"product_id", "sku", "gtin", "gtin14", "name", "price_minor", "unit_weight_g", "weight_tolerance_g", "created_at", "updated_at",
}

func productRow(p Product) []any {
	return []any{
		p.ProductID, p.SKU, orNull(p.GTIN), orNull(gtin14(p.GTIN)), p.Name, p.PriceMinor, p.UnitWeightGrams,
		p.WeightToleranceGrams, p.CreatedAt, p.CreatedAt,
	}
}

func insertProduct(tx *gorm.DB, p Product, assigned bool) error {
	err := database.Insert(tx, "products", productColumns, [][]any{productRow(p)}, "")
	if err != nil {
		return duplicateProduct(err, assigned)
	}
	if err := insertPrice(tx, p.ProductID, p.PriceMinor, p.CreatedAt); err != nil {
		return err
	}
	err = auditlog.Write(tx, auditlog.Entry{Action: "product.create", Target: p.target(), After: p}, p.CreatedAt)
	if err != nil {
		return err
	}
	return raise(tx)
}

// duplicateProduct tells which of the three unique keys is taken, by the key's name in the server's text. A number that
// was assigned and is taken now is no fault of the caller's: somebody chose it meanwhile.
func duplicateProduct(err error, assigned bool) error {
	switch {
	case !database.IsDuplicate(err):
		return err
	case strings.Contains(err.Error(), "products_sku"):
		return fmt.Errorf("sku %w", ErrDuplicate)
	case strings.Contains(err.Error(), "products_gtin14"):
		return fmt.Errorf("gtin %w", ErrDuplicate)
	case assigned:
		return database.ErrConflict
	default:
		return fmt.Errorf("productId %w", ErrDuplicate)
	}
}

func insertPrice(tx *gorm.DB, productID, minor int64, from time.Time) error {
	return database.Insert(tx, "product_prices", []string{"product_id", "valid_from", "price_minor"},
		[][]any{{productID, from, minor}}, "")
}

func (c *Catalogue) created(ctx context.Context, wanted Product) (Product, bool) {
	var list []Product
	err := c.db.Read(ctx).Raw(productSelect+" WHERE sku = ? AND name = ? AND price_minor = ? AND created_at = ?",
		wanted.SKU, wanted.Name, wanted.PriceMinor, wanted.CreatedAt).Scan(&list).Error
	found := err == nil && len(list) == 1 && (wanted.ProductID == 0 || list[0].ProductID == wanted.ProductID)
	if !found {
		return Product{}, false
	}
	return list[0], true
}

// Product reads one product, or returns [ErrNotFound].
func (c *Catalogue) Product(ctx context.Context, productID int64) (Product, error) {
	return oneProduct(c.db.Read(ctx), productID, "")
}

// List reads up to limit products with ids below before, the highest first; 0 means from the top.
func (c *Catalogue) List(ctx context.Context, before int64, limit int) ([]Product, error) {
	if before <= 0 {
		before = MaxProductID + 1
	}
	var list []Product
	err := c.db.Read(ctx).Raw(productSelect+" WHERE product_id < ? ORDER BY product_id DESC LIMIT ?", before, limit).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	return list, nil
}

// Patch applies change to a product as it is and keeps the result; a new price is in force from now on and joins the
// history (R8). change may run more than once and must not touch ProductID. Patch returns [ErrNotFound], [ErrInvalid]
// or [ErrDuplicate].
func (c *Catalogue) Patch(ctx context.Context, productID int64, change func(*Product)) (Product, error) {
	var patched Product
	err := c.db.InTx(ctx, func(tx *gorm.DB) error {
		before, err := oneProduct(tx, productID, " FOR UPDATE")
		if err != nil {
			return err
		}
		p := before
		change(&p)
		if err := p.validate(true); err != nil {
			return err
		}
		patched = p
		if p.same(before) {
			return nil
		}
		return updateProduct(tx, before, p)
	})
	if err != nil {
		return Product{}, fmt.Errorf("patch product: %w", err)
	}
	return patched, nil
}

func updateProduct(tx *gorm.DB, before, p Product) error {
	now := database.Now()
	err := auditlog.Write(tx, auditlog.Entry{Action: "product.patch", Target: p.target(), Before: before, After: p}, now)
	if err != nil {
		return err
	}
	err = tx.Exec(`UPDATE products SET sku = ?, gtin = ?, gtin14 = ?, name = ?, price_minor = ?, unit_weight_g = ?,
		weight_tolerance_g = ?, updated_at = ? WHERE product_id = ?`,
		p.SKU, orNull(p.GTIN), orNull(gtin14(p.GTIN)), p.Name, p.PriceMinor, p.UnitWeightGrams, p.WeightToleranceGrams,
		now, p.ProductID).Error
	if err != nil {
		return duplicateProduct(fmt.Errorf("update product %d: %w", p.ProductID, err), false)
	}
	if p.PriceMinor != before.PriceMinor {
		if err := changePrice(tx, p, now); err != nil {
			return err
		}
	}
	return raise(tx)
}

func changePrice(tx *gorm.DB, p Product, now time.Time) error {
	var last time.Time
	err := tx.Raw("SELECT MAX(valid_from) FROM product_prices WHERE product_id = ?", p.ProductID).Scan(&last).Error
	if err != nil {
		return fmt.Errorf("read prices of product %d: %w", p.ProductID, err)
	}
	return insertPrice(tx, p.ProductID, p.PriceMinor, after(now, last))
}

// after is now, or just after last: of two changes in one millisecond, or with a clock that went back, the later one still
// counts.
func after(now, last time.Time) time.Time {
	if now.After(last) {
		return now
	}
	return last.Add(time.Millisecond)
}

func oneProduct(tx *gorm.DB, productID int64, suffix string) (Product, error) {
	var list []Product
	if err := tx.Raw(productSelect+" WHERE product_id = ?"+suffix, productID).Scan(&list).Error; err != nil {
		return Product{}, fmt.Errorf("read product %d: %w", productID, err)
	}
	if len(list) == 0 {
		return Product{}, fmt.Errorf("product %d: %w", productID, ErrNotFound)
	}
	return list[0], nil
}

func (p *Product) validate(hasID bool) error {
	switch {
	case hasID && (p.ProductID < 1 || p.ProductID > MaxProductID):
		return fmt.Errorf("productId %w: give 1 to %d", ErrInvalid, int64(MaxProductID))
	case !between(p.SKU, 1, MaxSKU):
		return fmt.Errorf("sku %w: give 1 to %d characters", ErrInvalid, MaxSKU)
	case !between(p.Name, 1, MaxProductName):
		return fmt.Errorf("name %w: give 1 to %d characters", ErrInvalid, MaxProductName)
	case p.GTIN != "" && !validGTIN(p.GTIN):
		return fmt.Errorf("gtin %w: give 8, 12, 13 or 14 digits with their check digit", ErrInvalid)
	case p.PriceMinor < 0 || p.PriceMinor > MaxPriceMinor:
		return fmt.Errorf("priceMinor %w: give 0 to %d", ErrInvalid, int64(MaxPriceMinor))
	case p.UnitWeightGrams != nil && (*p.UnitWeightGrams < 1 || *p.UnitWeightGrams > MaxWeightGrams):
		return fmt.Errorf("unitWeightGrams %w: give 1 to %d", ErrInvalid, MaxWeightGrams)
	case p.WeightToleranceGrams != nil && (*p.WeightToleranceGrams < 0 || *p.WeightToleranceGrams > MaxWeightGrams):
		return fmt.Errorf("weightToleranceGrams %w: give 0 to %d", ErrInvalid, MaxWeightGrams)
	}
	return nil
}

func between(text string, least, most int) bool {
	n := utf8.RuneCountInString(text)
	return utf8.ValidString(text) && n >= least && n <= most
}

// validGTIN checks length and check digit: weights 3 and 1 from the right, GS1 General Specifications 7.9.1.
func validGTIN(digits string) bool {
	switch len(digits) {
	case 8, 12, 13, 14:
	default:
		return false
	}
	sum := 0
	for i, d := range gtin14(digits) {
		if d < '0' || d > '9' {
			return false
		}
		sum += int(d-'0') * (3 - 2*(i%2))
	}
	return sum%10 == 0
}

// gtin14 pads a GTIN to 14 digits, the form in which all of them compare; "" stays "".
func gtin14(gtin string) string {
	if gtin == "" {
		return ""
	}
	return strings.Repeat("0", max(0, 14-len(gtin))) + gtin
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

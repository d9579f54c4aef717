package spreadsheet

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"doortab/database"
	"doortab/inventory"
)

var productColumns = []string{"productId", "sku", "name", "gtin", "priceMinor", "unitWeightGrams", "weightToleranceGrams"}

// WriteProducts writes the whole catalogue, ascending by product id.
func WriteProducts(ctx context.Context, db *database.DB, to io.Writer) error {
	products, err := inventory.NewCatalogue(db).All(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{productColumns}
	for _, p := range products {
		rows = append(rows, []string{
			whole(p.ProductID), Text(p.SKU), Text(p.Name), p.GTIN, whole(p.PriceMinor), optional(p.UnitWeightGrams),
			optional(p.WeightToleranceGrams),
		})
	}
	return Write(to, rows)
}

// ReadProducts brings the catalogue to what a file says, all of it or nothing. A line names its product by productId, or
// by sku where it has none, and adds it where there is none; products that no line names stay as they are, and so
// does whatever the file has no column for. It fails with [Problems].
func ReadProducts(ctx context.Context, db *database.DB, from io.Reader) (inventory.Merged, error) {
	rows, err := readTable(from, productColumns, nil)
	if err != nil {
		return inventory.Merged{}, err
	}
	drafts := make([]inventory.Draft, len(rows))
	for i, r := range rows {
		if drafts[i], err = r.product(); err != nil { // told together with what the catalogue finds wrong
			unreadable := err
			drafts[i].Change = func(*inventory.Product, bool) error { return unreadable }
		}
	}
	merged, err := inventory.NewCatalogue(db).Merge(ctx, drafts)
	problems := &Problems{}
	for i, wrong := range inventory.RefusedIn(err) {
		problems.add(rows[i].line, wrong)
	}
	if wrong := problems.orNil(); wrong != nil {
		err = wrong
	}
	return merged, err
}

// product is what a row asks for. An empty cell takes an optional value away.
func (r row) product() (inventory.Draft, error) {
	if r.wrong != nil {
		return inventory.Draft{}, r.wrong
	}
	id, numbered, err := r.number("productId")
	if err == nil && numbered && id < 1 {
		err = fmt.Errorf("productId %d: give 1 or more, or leave it empty", id)
	}
	if err != nil {
		return inventory.Draft{}, err
	}
	price, priced, err := r.number("priceMinor")
	if err != nil {
		return inventory.Draft{}, err
	}
	weight, err := r.optional("unitWeightGrams")
	if err != nil {
		return inventory.Draft{}, err
	}
	tolerance, err := r.optional("weightToleranceGrams")
	if err != nil {
		return inventory.Draft{}, err
	}
	change := func(p *inventory.Product, fresh bool) error {
		r.text("sku", &p.SKU)
		r.text("name", &p.Name)
		r.text("gtin", &p.GTIN)
		if _, there := r.cells["priceMinor"]; (there || fresh) && !priced {
			return fmt.Errorf("priceMinor: give a whole number of minor units")
		}
		if priced {
			p.PriceMinor = price
		}
		r.keep("unitWeightGrams", &p.UnitWeightGrams, weight)
		r.keep("weightToleranceGrams", &p.WeightToleranceGrams, tolerance)
		return nil
	}
	return inventory.Draft{ProductID: id, SKU: plainText(r.cells["sku"]), Change: change}, nil
}

func (r row) text(column string, field *string) {
	if cell, there := r.cells[column]; there {
		*field = plainText(cell)
	}
}

func (r row) keep(column string, field **int64, value *int64) {
	if _, there := r.cells[column]; there {
		*field = value
	}
}

func (r row) optional(column string) (*int64, error) {
	value, there, err := r.number(column)
	if err != nil || !there {
		return nil, err
	}
	return &value, nil
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func optional(n *int64) string {
	if n == nil {
		return ""
	}
	return whole(*n)
}

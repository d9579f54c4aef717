package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
)

func grams(n int64) *int64 { return &n }

func cola() inventory.Product {
	return inventory.Product{
		ProductID: 7, SKU: "COLA330", Name: "Cola 330 ml", GTIN: "08719139005740", PriceMinor: 500,
		UnitWeightGrams: grams(345), WeightToleranceGrams: grams(0),
	}
}

func create(t testing.TB, c *inventory.Catalogue, p inventory.Product) inventory.Product {
	t.Helper()
	made, err := c.Create(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func priceAt(t testing.TB, db *database.DB, productID int64, at time.Time) int64 {
	t.Helper()
	prices, err := inventory.ReadPrices(db.Read(t.Context()), []int64{productID}, at)
	if err != nil {
		t.Fatal(err)
	}
	minor, _ := prices.At(productID, at)
	return minor
}

func TestAProductIsReadAsItWasMade(t *testing.T) {
	t.Parallel()
	c := inventory.NewCatalogue(databasetest.New(t))
	made := create(t, c, cola())
	read, err := c.Product(t.Context(), 7)
	if diff := cmp.Diff(made, read); diff != "" || err != nil {
		t.Errorf("%v (-made +read):\n%s", err, diff)
	}
	if _, err := c.Product(t.Context(), 8); !errors.Is(err, inventory.ErrNotFound) {
		t.Errorf("unknown product: %v", err)
	}
}

func TestGTINs(t *testing.T) {
	t.Parallel()
	for gtin, valid := range map[string]bool{
		"40170725": true, "036000291452": true, "4006381333931": true, "00052427185402": true, "02426681845927": true, "": true,
		"40170726": false, "4006381333932": false, "4017072": false, "401707250": false, "0": false, "12345678901": false,
		"4006381333931 ": false, "４０１７０７２５": false, "4017072a": false, "000000000000000": false,
	} {
		p := cola()
		p.GTIN = gtin
		c := inventory.NewCatalogue(databasetest.New(t))
		if _, err := c.Create(t.Context(), p); (err == nil) != valid || err != nil && !errors.Is(err, inventory.ErrInvalid) {
			t.Errorf("gtin %q: %v", gtin, err)
		}
	}
}

func TestAProductThatTakesWhatIsTakenIsRefused(t *testing.T) {
	t.Parallel()
	c := inventory.NewCatalogue(databasetest.New(t))
	create(t, c, cola())
	create(t, c, inventory.Product{ProductID: 8, SKU: "cola330", Name: "a"}) // another sku: case counts
	for name, change := range map[string]func(*inventory.Product){
		"id":            func(p *inventory.Product) { p.ProductID, p.SKU, p.GTIN = 7, "A", "" },
		"sku":           func(p *inventory.Product) { p.SKU, p.GTIN = "COLA330", "" },
		"gtin":          func(p *inventory.Product) { p.GTIN = "08719139005740" },
		"gtin unpadded": func(p *inventory.Product) { p.GTIN = "8719139005740" },
	} {
		p := inventory.Product{ProductID: 9, SKU: "NEW", Name: "a"}
		change(&p)
		if _, err := c.Create(t.Context(), p); !errors.Is(err, inventory.ErrDuplicate) {
			t.Errorf("create with the same %s: %v", name, err)
		}
		if name == "id" {
			continue
		}
		if _, err := c.Patch(t.Context(), 8, change); !errors.Is(err, inventory.ErrDuplicate) {
			t.Errorf("patch to the same %s: %v", name, err)
		}
	}
}

func TestValuesOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	c := inventory.NewCatalogue(databasetest.New(t))
	create(t, c, cola())
	for name, change := range map[string]func(*inventory.Product){
		"negative id":       func(p *inventory.Product) { p.ProductID = -1 },
		"id above":          func(p *inventory.Product) { p.ProductID = inventory.MaxProductID + 1 },
		"no sku":            func(p *inventory.Product) { p.SKU = "" },
		"long sku":          func(p *inventory.Product) { p.SKU = strings.Repeat("a", 65) },
		"broken sku":        func(p *inventory.Product) { p.SKU = "\xff" },
		"no name":           func(p *inventory.Product) { p.Name = "" },
		"long name":         func(p *inventory.Product) { p.Name = strings.Repeat("a", 201) },
		"negative price":    func(p *inventory.Product) { p.PriceMinor = -1 },
		"price above":       func(p *inventory.Product) { p.PriceMinor = inventory.MaxPriceMinor + 1 },
		"weight 0":          func(p *inventory.Product) { p.UnitWeightGrams = grams(0) },
		"tolerance below 0": func(p *inventory.Product) { p.WeightToleranceGrams = grams(-1) },
	} {
		p := inventory.Product{ProductID: 9, SKU: "NEW", Name: "a"}
		change(&p)
		if _, err := c.Create(t.Context(), p); !errors.Is(err, inventory.ErrInvalid) {
			t.Errorf("create with %s: %v", name, err)
		}
		if _, err := c.Patch(t.Context(), 7, change); !errors.Is(err, inventory.ErrInvalid) {
			t.Errorf("patch to %s: %v", name, err)
		}
	}
	if _, err := c.Patch(t.Context(), 8, func(*inventory.Product) {}); !errors.Is(err, inventory.ErrNotFound) {
		t.Errorf("patch of an unknown product: %v", err)
	}
	edge := create(t, c, inventory.Product{
		ProductID: inventory.MaxProductID, SKU: strings.Repeat("水", 64), Name: strings.Repeat("水", 200), PriceMinor: inventory.MaxPriceMinor,
	})
	if next := create(t, c, inventory.Product{SKU: "A", Name: "a"}); edge.ProductID != inventory.MaxProductID || next.ProductID != 8 {
		t.Errorf("after the highest number comes %d", next.ProductID)
	}
}

func TestAPriceIsInForceFromItsChangeOn(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	c := inventory.NewCatalogue(db)
	made := create(t, c, cola())
	const changes = 20 // faster than the clock ticks
	for i := range int64(changes) {
		if _, err := c.Patch(t.Context(), 7, func(p *inventory.Product) { p.PriceMinor = 501 + i }); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Patch(t.Context(), 7, func(p *inventory.Product) { p.Name = "Cola" }); err != nil {
			t.Fatal(err)
		}
	}
	var rows int
	if err := db.Read(t.Context()).Raw("SELECT COUNT(*) FROM product_prices").Scan(&rows).Error; err != nil || rows != changes+1 {
		t.Errorf("%d prices after %d changes, %v", rows, changes, err)
	}
	if first, last := priceAt(t, db, 7, made.CreatedAt), priceAt(t, db, 7, time.Now().Add(time.Second)); first != 500 || last != 520 {
		t.Errorf("price was %d at first and is %d now", first, last)
	}
}

func TestTheLaterOfTwoPricesCountsAlsoWhereAClockWentBack(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	c := inventory.NewCatalogue(db)
	create(t, c, cola())
	ahead := database.Now().Add(time.Minute)
	if err := db.Read(t.Context()).Exec("UPDATE product_prices SET valid_from = ?", ahead).Error; err != nil {
		t.Fatal(err)
	}
	if _, err := c.Patch(t.Context(), 7, func(p *inventory.Product) { p.PriceMinor = 1 }); err != nil {
		t.Fatal(err)
	}
	if got := priceAt(t, db, 7, ahead.Add(time.Second)); got != 1 {
		t.Errorf("price %d", got)
	}
}

func TestPatchesAtTheSameMomentAllCount(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	c := inventory.NewCatalogue(db)
	create(t, c, cola())
	const writers = 12
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			if _, err := c.Patch(context.Background(), 7, func(p *inventory.Product) { p.PriceMinor++ }); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	p, err := c.Product(t.Context(), 7)
	if err != nil || p.PriceMinor != 500+writers {
		t.Errorf("price %d, %v", p.PriceMinor, err)
	}
	if got := priceAt(t, db, 7, time.Now().Add(time.Second)); got != p.PriceMinor {
		t.Errorf("the history says %d, the product %d", got, p.PriceMinor)
	}
}

func TestTheListOfProductsGoesDownFromTheHighest(t *testing.T) {
	t.Parallel()
	c := inventory.NewCatalogue(databasetest.New(t))
	for i := range 5 {
		create(t, c, inventory.Product{SKU: fmt.Sprint(i), Name: "a"})
	}
	var ids []int64
	for before := int64(0); ; before = ids[len(ids)-1] {
		list, err := c.List(t.Context(), before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			ids = append(ids, p.ProductID)
		}
		if len(list) < 2 {
			break
		}
	}
	if diff := cmp.Diff([]int64{5, 4, 3, 2, 1}, ids); diff != "" {
		t.Error(diff)
	}
}

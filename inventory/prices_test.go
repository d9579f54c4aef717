package inventory_test

import (
	"testing"
	"time"

	"doortab/database/databasetest"
	"doortab/inventory"
)

func TestThePriceInForce(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	exec(t, db, "INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, 500), (7, ?, 0), (7, ?, 700), (8, ?, 300)",
		noon, noon.Add(time.Hour), noon.Add(2*time.Hour), noon)
	prices, err := inventory.ReadPrices(db.Read(t.Context()), []int64{7, 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		productID int64
		at        time.Time
		want      int64
		known     bool
	}{
		{"before the product was there", 7, noon.Add(-time.Hour), 500, true},
		{"at the moment of the first", 7, noon, 500, true},
		{"a millisecond before the second", 7, noon.Add(time.Hour - time.Millisecond), 500, true},
		{"free of charge from then on", 7, noon.Add(time.Hour), 0, true},
		{"in another zone", 7, noon.Add(2 * time.Hour).In(time.FixedZone("x", 8*3600)), 700, true},
		{"long after", 7, noon.AddDate(50, 0, 0), 700, true},
		{"no such product", 9, noon, 0, false},
		{"not asked for", 8, noon, 0, false},
	} {
		if got, known := prices.At(c.productID, c.at); got != c.want || known != c.known {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, got, known, c.want, c.known)
		}
	}
	if none, err := inventory.ReadPrices(db.Read(t.Context()), nil); err != nil || len(none) != 0 {
		t.Errorf("of no product: %v, %v", none, err)
	}
}

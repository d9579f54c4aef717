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
	exec(t, db, "INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (7, 'a', 'x', 700, ?, ?)", noon, noon)
	exec(t, db, "INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (8, 'b', 'x', 300, ?, ?)", noon, noon)
	exec(t, db, "INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, 500), (7, ?, 0), (7, ?, 700), (8, ?, 300)",
		noon, noon.Add(time.Hour), noon.Add(2*time.Hour), noon)
	from := func(since time.Time, ids ...int64) inventory.Prices {
		t.Helper()
		prices, err := inventory.ReadPrices(db.Read(t.Context()), ids, since)
		if err != nil {
			t.Fatal(err)
		}
		return prices
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
		for since, prices := range map[string]inventory.Prices{
			"since before all of them": from(noon.AddDate(-1, 0, 0), 7, 9), "since that moment": from(c.at, 7, 9),
		} {
			if got, known := prices.At(c.productID, c.at); got != c.want || known != c.known {
				t.Errorf("%s, read %s: %d, %v; want %d, %v", c.name, since, got, known, c.want, c.known)
			}
		}
	}
	for since, want := range map[time.Duration]int{-time.Hour: 3, 0: 3, time.Hour - time.Millisecond: 3, time.Hour: 2, 3 * time.Hour: 1} {
		if got := from(noon.Add(since), 7); len(got[7]) != want {
			t.Errorf("since %s after noon %d prices are read, want %d", since, len(got[7]), want)
		}
	}
	if none := from(noon); len(none) != 0 {
		t.Errorf("of no product: %v", none)
	}
}

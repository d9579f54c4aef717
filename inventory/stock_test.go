package inventory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
)

func restock(t testing.TB, db *database.DB, deviceID int64, lines ...inventory.RestockLine) {
	t.Helper()
	err := db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
		_, err := inventory.AddRestock(tx, attempt, inventory.RestockRequest{
			DeviceID: deviceID, RestockID: uuid.NewString(), Actor: "test", Lines: lines,
		}, database.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStockHasThePlanogramsParLevel(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	c := inventory.NewCatalogue(db)
	for _, sku := range []string{"A", "B", "C"} {
		create(t, c, inventory.Product{SKU: sku, Name: "a"})
	}
	restock(t, db, 1, inventory.RestockLine{ProductID: 1, Quantity: 5}, inventory.RestockLine{ProductID: 2, Quantity: 6})
	restock(t, db, 1, inventory.RestockLine{ProductID: 1, Quantity: 1})
	restock(t, db, 2, inventory.RestockLine{ProductID: 1, Quantity: 9})
	err := db.Read(t.Context()).Exec(`INSERT INTO lanes (device_id, lane, product_id, capacity, par_level)
		VALUES (1, 1, 1, 10, 4), (1, 2, 1, 10, 3), (1, 3, 3, 10, 8), (2, 1, 2, 10, 5)`).Error
	if err != nil {
		t.Fatal(err)
	}
	rows, err := inventory.ListStock(t.Context(), db, 1, 0, 10)
	want := []inventory.StockRow{{ProductID: 1, Stock: 6, Version: 2, ParLevel: 7}, {ProductID: 2, Stock: 6, Version: 1}}
	if diff := cmp.Diff(want, rows); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	rest, err := inventory.ListStock(t.Context(), db, 1, 1, 10)
	if diff := cmp.Diff(want[1:], rest); diff != "" || err != nil {
		t.Errorf("after product 1: %v (-want +got):\n%s", err, diff)
	}
}

func TestMovementsAreWalkedNewestFirst(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	c := inventory.NewCatalogue(db)
	create(t, c, inventory.Product{SKU: "A", Name: "a"})
	create(t, c, inventory.Product{SKU: "B", Name: "a"})
	for range 3 {
		restock(t, db, 1, inventory.RestockLine{ProductID: 1, Quantity: 1}, inventory.RestockLine{ProductID: 2, Quantity: 2})
	}
	if err := db.Read(t.Context()).Exec("UPDATE stock_movements SET created_at = TIMESTAMPADD(SECOND, version, '2026-11-30')").Error; err != nil {
		t.Fatal(err)
	}
	walk := func(productID int64) (places []inventory.MovementKey) {
		var before *inventory.MovementKey
		for {
			list, err := inventory.ListMovements(t.Context(), db, 1, productID, before, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				if m.Balance != m.Version*m.ProductID || m.Delta != m.ProductID || m.Kind != inventory.Restock || m.Quantity != m.Delta {
					t.Errorf("movement %+v", m)
				}
				places = append(places, inventory.MovementKey{CreatedAt: m.CreatedAt, ProductID: m.ProductID, Version: m.Version})
			}
			if len(list) < 2 {
				return places
			}
			before = &places[len(places)-1]
		}
	}
	key := func(productID, version int64) inventory.MovementKey {
		at := time.Date(2026, 11, 30, 0, 0, int(version), 0, time.UTC)
		return inventory.MovementKey{CreatedAt: at, ProductID: productID, Version: version}
	}
	all := []inventory.MovementKey{key(2, 3), key(1, 3), key(2, 2), key(1, 2), key(2, 1), key(1, 1)}
	if diff := cmp.Diff(all, walk(0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]inventory.MovementKey{key(1, 3), key(1, 2), key(1, 1)}, walk(1)); diff != "" {
		t.Error(diff)
	}
}

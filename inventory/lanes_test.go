package inventory_test

import (
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/fleet"
	"doortab/inventory"
)

func newFleet(t *testing.T, devices int) *database.DB {
	t.Helper()
	db := databasetest.New(t)
	for id := int64(7); id <= 8; id++ {
		if _, err := inventory.NewCatalogue(db).Create(t.Context(), inventory.Product{ProductID: id, SKU: fmt.Sprint(id), Name: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	rows := make([][]any, devices)
	for i := range rows {
		rows[i] = []any{i + 1, "c", fmt.Sprintf("site %03d", i%100), database.Now(), database.Now()}
	}
	err := database.Insert(db.Read(t.Context()), "cabinets", []string{"device_id", "name", "site", "created_at", "updated_at"}, rows, "")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Planograms that come at once are kept one after the other, each whole and each in the history.
func TestPlanogramsOfOneCabinetTakeTurns(t *testing.T) {
	t.Parallel()
	db := newFleet(t, 1)
	const writers, each = 4, 5
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range each {
				n := int64(w*each + i + 1)
				lanes := []inventory.Lane{{Lane: 1, ProductID: 7, Capacity: n}, {Lane: 2, ProductID: 8, Capacity: n}}
				err := db.InTx(t.Context(), func(tx *gorm.DB) error {
					if err := fleet.Hold(tx, 1); err != nil {
						return err
					}
					_, _, err := inventory.ReplaceLanes(tx, 1, lanes, database.Now())
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	lanes, err := inventory.ReadLanes(db.Read(t.Context()), 1)
	if err != nil || len(lanes) != 2 || lanes[0].Capacity != lanes[1].Capacity {
		t.Errorf("%v, %v", lanes, err)
	}
	var history, logged int
	for query, into := range map[string]*int{
		"SELECT COUNT(*) FROM planogram_history": &history, "SELECT COUNT(*) FROM audit_log WHERE action = 'planogram.put'": &logged,
	} {
		if err := db.Read(t.Context()).Raw(query).Scan(into).Error; err != nil {
			t.Fatal(err)
		}
	}
	if history != writers*each || logged != writers*each {
		t.Errorf("%d planograms in the history, %d in the audit log, want %d", history, logged, writers*each)
	}
}

// The list of a large fleet is read in pages, each of which looks at some cabinets only.
func TestAPageOfShortagesReadsSomeCabinets(t *testing.T) {
	t.Parallel()
	const devices = 3000
	db := newFleet(t, devices)
	var lanes [][]any
	for id := 1; id <= devices; id++ {
		lanes = append(lanes, []any{id, 1, 7, 10, 5}, []any{id, 2, 8, 10, 0})
	}
	err := database.Insert(db.Read(t.Context()), "lanes", []string{"device_id", "lane", "product_id", "capacity", "par_level"}, lanes, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Read(t.Context()).Exec("ANALYZE TABLE cabinets, lanes").Error; err != nil {
		t.Fatal(err)
	}
	var after *inventory.ShortageKey
	seen := 0
	for {
		list, err := inventory.ReadShortages(db.Read(t.Context()), "", after, 70)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			place := inventory.ShortageKey{Site: s.Site, DeviceID: s.DeviceID, ProductID: s.ProductID}
			if after != nil && (place.Site < after.Site || place.Site == after.Site && place.DeviceID <= after.DeviceID) {
				t.Fatalf("%v comes after %v", place, *after)
			}
			after = &place
			seen++
		}
		if len(list) < 70 {
			break
		}
	}
	if seen != devices {
		t.Errorf("%d shortages, want one of each cabinet", seen)
	}
	reads := func(do func(*gorm.DB)) int {
		total := 0
		err := db.InTx(t.Context(), func(tx *gorm.DB) error { // one connection, whose counters count
			count := func() (n int) {
				rows := []struct{ Value int }{}
				if err := tx.Raw("SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_key', 'Handler_read_next', " +
					"'Handler_read_rnd_next', 'Handler_read_first')").Scan(&rows).Error; err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					n += row.Value
				}
				return n
			}
			before := count()
			do(tx)
			total = count() - before
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return total
	}
	middle := inventory.ShortageKey{Site: "site 050", DeviceID: 51, ProductID: 7}
	read := reads(func(tx *gorm.DB) {
		if _, err := inventory.ReadShortages(tx, "", &middle, 70); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("a page reads %d rows", read)
	if read > 4000 {
		t.Errorf("a page of 70 of a fleet of %d reads %d rows", devices, read)
	}
}

package databasetest

import (
	"testing"

	"doortab/database"
)

// Raised looks at the catalogue and its mark; what it returns looks again, says whether the mark was raised, and fails the
// test where the catalogue changed and the mark did not, or the other way round.
func Raised(t testing.TB, db *database.DB) func(what string) bool {
	t.Helper()
	before, mark := catalogue(t, db)
	return func(what string) bool {
		t.Helper()
		after, now := catalogue(t, db)
		if (before != after) != (mark != now) {
			t.Errorf("%s: the catalogue changed: %v, its mark went from %d to %d", what, before != after, mark, now)
		}
		return mark != now
	}
}

// catalogue is a checksum of all that lies behind the mark, and the mark.
func catalogue(t testing.TB, db *database.DB) (sum [4]int64, mark int64) {
	t.Helper()
	rows, err := db.SQL().QueryContext(t.Context(), "CHECKSUM TABLE products, product_prices, lanes, epc_overrides")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var table string
	for i := 0; rows.Next(); i++ {
		if err := rows.Scan(&table, &sum[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.Read(t.Context()).Raw("SELECT version FROM marks WHERE name = ?", database.Catalogue).Scan(&mark).Error; err != nil {
		t.Fatal(err)
	}
	return sum, mark
}

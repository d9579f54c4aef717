package database_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
)

type state string

// What is written by a table of a statement or by an insert reads back the same, whatever text or number it is.
func TestValuesOfRows(t *testing.T) {
	t.Parallel()
	db := databasetest.Open(t, databasetest.Empty(t))
	exec(t, db, `CREATE TABLE things (id BIGINT, code VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, name VARCHAR(200), amount BIGINT NULL,
		at DATETIME(3) NULL, document BLOB NULL, PRIMARY KEY (id, code)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`)
	columns := []string{"id", "code", "name", "amount", "at", "document"}
	largest, at := int64(1<<63-1), time.Date(2026, 11, 30, 23, 59, 59, 999_000_000, time.FixedZone("CST", 8*3600))
	rows := [][]any{
		{int64(1), "a", `it's "quoted" \ and` + "\x00 cut\nhere", largest, at, []byte(`{"a":["\\",null]}`)},
		{2, state("A"), "可乐 😀 é ? :name @x", -largest, nil, nil},
		{9007199254740993, "a", "", &largest, at, []byte("[]")},
		{-4, "b", "'; DROP TABLE things; --", (*int64)(nil), at, []byte("?")},
	}
	want := readThings(t, db, func(tx *gorm.DB) error { return database.Insert(tx, "things", columns, rows, "") })
	if want[2][2] != rows[0][2] || want[3][2] != rows[1][2] || want[2][4] != "2026-11-30 15:59:59.999" {
		t.Errorf("inserted %q", want)
	}
	exec(t, db, "DELETE FROM things")
	asText := readThings(t, db, func(tx *gorm.DB) error {
		more := append(slices.Clone(rows), []any{7, "too many to be prepared", "x", 1, nil, nil})
		return errors.Join(database.Insert(tx, "things", columns, more, ""), tx.Exec("DELETE FROM things WHERE id = 7").Error)
	})
	if diff := cmp.Diff(want, asText); diff != "" {
		t.Errorf("(- prepared, + in the text of a statement): %s", diff)
	}
	exec(t, db, "UPDATE things SET name = 'x', amount = 1, at = NULL, document = 'x'")
	var changed int64
	got := readThings(t, db, func(tx *gorm.DB) (err error) {
		changed, err = database.UpdateEach(tx, "things", []database.Column{database.Int("id"), database.Code("code")}, []database.Column{
			database.Text("name"), database.Int("amount"), database.Time("at"), database.Document("document"),
		}, append(rows, []any{7, "no such row", "x", 1, nil, nil}))
		return err
	})
	if diff := cmp.Diff(want, got); diff != "" || changed != int64(len(rows)) {
		t.Errorf("%d rows changed (- inserted, + updated): %s", changed, diff)
	}
}

func readThings(t *testing.T, db *database.DB, write func(tx *gorm.DB) error) (things [][]string) {
	t.Helper()
	if err := db.InTx(t.Context(), write); err != nil {
		t.Fatal(err)
	}
	rows, err := db.SQL().QueryContext(t.Context(), `SELECT id, code, name, COALESCE(amount, 'null'), COALESCE(CAST(at AS CHAR), 'null'),
		COALESCE(document, 'null') FROM things ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		thing := make([]string, 6)
		if err := rows.Scan(&thing[0], &thing[1], &thing[2], &thing[3], &thing[4], &thing[5]); err != nil {
			t.Fatal(err)
		}
		things = append(things, thing)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return things
}

// A row that somebody holds doesn't hold up the update of its neighbours, small as the table is.
func TestUpdateEachLocksItsOwnRowsAlone(t *testing.T) {
	t.Parallel()
	db, dsn := counters(t)
	held, err := databasetest.Open(t, dsn).SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback() }()
	if _, err := held.Exec("SELECT * FROM counters WHERE id = 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = db.InTx(t.Context(), func(tx *gorm.DB) error {
		_, err := database.UpdateEach(tx, "counters", []database.Column{database.Int("id")}, []database.Column{database.Int("n")}, [][]any{{2, 5}})
		return err
	})
	if err != nil || time.Since(began) > database.LockWait || value(t, db, 2) != 5 {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

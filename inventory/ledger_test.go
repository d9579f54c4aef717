package inventory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
)

func key(productID int64) inventory.Key { return inventory.Key{DeviceID: 1001, ProductID: productID} }

// book books changes of cabinet 1001 in one transaction.
func book(t *testing.T, db *database.DB, locking database.Locking, changes ...inventory.Change) ([]inventory.Movement, error) {
	t.Helper()
	var movements []inventory.Movement
	err := db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
		movements = nil
		var keys []inventory.Key
		for _, c := range changes {
			keys = append(keys, c.Key)
		}
		ledger, err := inventory.OpenLedger(tx, keys, max(locking, database.LockingFor(attempt)))
		if err != nil {
			return err
		}
		now := database.Now()
		for _, c := range changes {
			movements = append(movements, ledger.Book(c, now))
		}
		return ledger.Write(tx, now)
	})
	return movements, err
}

func sold(productID, units int64, seq ...int64) inventory.Change {
	c := inventory.Change{Key: key(productID), Kind: inventory.Sale, Quantity: -units, Ref: "e"}
	if len(seq) > 0 {
		c.At = &inventory.Position{Seq: seq[0]}
	}
	return c
}

func brought(productID, units int64) inventory.Change {
	return inventory.Change{Key: key(productID), Kind: inventory.Restock, Quantity: units, Ref: "r"}
}

// reviewed gives units back, of which the books never gave as many as were short.
func reviewed(productID, units, short int64, seq ...int64) inventory.Change {
	c := sold(productID, -units, seq...)
	c.Kind, c.Ref, c.Short = inventory.Review, "1", short
	return c
}

func TestMovements(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		changes []inventory.Change
		want    []string // version, delta, balance, shortfall
		counted int64    // the stock-take's seq, with 5 units in stock of version 1
	}{
		{name: "goods come", changes: []inventory.Change{brought(7, 4)}, want: []string{"1 4 4 0"}},
		{name: "goods go", changes: []inventory.Change{brought(7, 4), sold(7, 3)}, want: []string{"1 4 4 0", "2 -3 1 0"}},
		{name: "all of it goes", changes: []inventory.Change{brought(7, 4), sold(7, 4)}, want: []string{"1 4 4 0", "2 -4 0 0"}},
		{name: "more goes than the books have", changes: []inventory.Change{brought(7, 2), sold(7, 3)}, want: []string{"1 2 2 0", "2 -2 0 1"}},
		{name: "nothing was there", changes: []inventory.Change{sold(7, 3), sold(7, 1)}, want: []string{"1 0 0 3", "2 0 0 1"}},
		{name: "two products", changes: []inventory.Change{sold(8, 1), brought(7, 2)}, want: []string{"1 0 0 1", "1 2 2 0"}},
		{name: "counted already", counted: 10, changes: []inventory.Change{sold(7, 9, 10), sold(7, 1, 11)}, want: []string{"2 0 5 0", "3 -1 4 0"}},
		{name: "without a seq it is never late", counted: 10, changes: []inventory.Change{sold(7, 1)}, want: []string{"2 -1 4 0"}},
		{name: "what was lacking comes back", changes: []inventory.Change{sold(7, 3), reviewed(7, 2, 3)},
			want: []string{"1 0 0 3", "2 0 0 -2"}},
		{name: "more than was lacking comes back", changes: []inventory.Change{brought(7, 1), sold(7, 3), reviewed(7, 3, 2)},
			want: []string{"1 1 1 0", "2 -1 0 2", "3 1 1 -2"}},
		{name: "it comes back to what a count has seen", counted: 10, changes: []inventory.Change{reviewed(7, 3, 2, 10)},
			want: []string{"2 0 5 0"}},
	}
	for _, c := range cases {
		for _, locking := range []database.Locking{database.Optimistic, database.ForUpdate, database.NoWait} {
			t.Run(fmt.Sprint(c.name, " ", locking), func(t *testing.T) {
				t.Parallel()
				db := databasetest.New(t)
				if c.counted > 0 {
					exec(t, db, `INSERT INTO device_stock (device_id, product_id, stock, version, counted_seq, updated_at)
						VALUES (1001, 7, 5, 1, ?, NOW(3))`, c.counted)
				}
				movements, err := book(t, db, locking, c.changes...)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, m := range movements {
					got = append(got, fmt.Sprint(m.Version, m.Delta, m.Balance, m.Shortfall))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				checkWritten(t, db, movements)
			})
		}
	}
}

// checkWritten compares the tables with movements that were booked.
func checkWritten(t *testing.T, db *database.DB, movements []inventory.Movement) {
	t.Helper()
	short := 0
	for _, m := range movements {
		var found int
		scan(t, db, &found, `SELECT COUNT(*) FROM stock_movements WHERE device_id = 1001 AND product_id = ? AND version = ? AND kind = ?
			AND quantity = ? AND delta = ? AND balance = ? AND ref = ?`, m.ProductID, m.Version, m.Kind, m.Quantity, m.Delta, m.Balance, m.Ref)
		if found != 1 {
			t.Errorf("movement %+v is there %d times", m, found)
		}
		if m.Shortfall != 0 {
			short++
		}
		var stock, version int64
		scan(t, db, &version, "SELECT version FROM device_stock WHERE product_id = ?", m.ProductID)
		scan(t, db, &stock, "SELECT stock FROM device_stock WHERE product_id = ?", m.ProductID)
		if version < m.Version || version == m.Version && stock != m.Balance {
			t.Errorf("row has stock %d and version %d after %+v", stock, version, m)
		}
	}
	var kept int
	scan(t, db, &kept, "SELECT COUNT(*) FROM discrepancies WHERE kind = 'shortfall' AND quantity <> 0")
	if kept != short {
		t.Errorf("%d discrepancies, want %d", kept, short)
	}
}

func TestAnotherWriterOfTheRowIsNoticed(t *testing.T) {
	t.Parallel()
	for name, opening := range map[string]int64{"row exists": 5, "row does not exist": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := databasetest.New(t)
			if opening > 0 {
				if _, err := book(t, db, database.Optimistic, brought(7, opening)); err != nil {
					t.Fatal(err)
				}
			}
			var refused error
			err := db.InTx(t.Context(), func(tx *gorm.DB) error {
				ledger, err := inventory.OpenLedger(tx, []inventory.Key{key(7)}, database.Optimistic)
				if err != nil {
					return err
				}
				if _, err := book(t, db, database.Optimistic, brought(7, 1)); err != nil {
					return database.Final(err)
				}
				ledger.Book(sold(7, 1), database.Now())
				refused = ledger.Write(tx, database.Now())
				return database.Final(refused)
			})
			if !errors.Is(refused, database.ErrConflict) || !errors.Is(err, database.ErrConflict) {
				t.Errorf("writing over another writer: %v", refused)
			}
			var stock int64
			scan(t, db, &stock, "SELECT stock FROM device_stock")
			if stock != opening+1 {
				t.Errorf("stock %d, want the other writer's %d", stock, opening+1)
			}
		})
	}
}

func TestARowThatIsHeld(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	if _, err := book(t, db, database.Optimistic, brought(7, 5), brought(8, 5)); err != nil {
		t.Fatal(err)
	}
	tx, err := db.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SELECT * FROM device_stock WHERE product_id = 7 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	open := func(productID int64) error {
		return db.InTx(t.Context(), func(tx *gorm.DB) error {
			_, err := inventory.OpenLedger(tx, []inventory.Key{key(productID)}, database.NoWait)
			return err
		})
	}
	if err := open(7); !database.IsLockWait(err) {
		t.Errorf("a held row without waiting: %v", err)
	}
	if err := open(8); err != nil {
		t.Errorf("the row beside it: %v", err)
	}
}

// A statement takes so many rows at most; more of them make several.
func TestManyRowsAtOnce(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	const products = 2500
	var changes []inventory.Change
	for n := range int64(products) {
		changes = append(changes, brought(products-n, 10))
	}
	for _, locking := range []database.Locking{database.Optimistic, database.Optimistic, database.ForUpdate} {
		if _, err := book(t, db, locking, changes...); err != nil {
			t.Fatal(err)
		}
	}
	var right int
	scan(t, db, &right, "SELECT COUNT(*) FROM device_stock WHERE stock = 30 AND version = 3")
	if right != products {
		t.Errorf("%d rows of %d are right", right, products)
	}
}

// Rows of one step go by another statement than the others; each is still written only where nobody else wrote it.
func TestManyRowsOfDifferentSteps(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	const products = 470
	var filled, changes []inventory.Change
	for n := range int64(products) {
		filled = append(filled, brought(n+1, 10))
		for range 1 + n%7/4 { // four rows of seven have one movement
			changes = append(changes, sold(n+1, 1+n%7/6)) // one of two units, where the row has two
		}
	}
	if _, err := book(t, db, database.Optimistic, filled...); err != nil {
		t.Fatal(err)
	}
	movements, err := book(t, db, database.Optimistic, changes...)
	if err != nil {
		t.Fatal(err)
	}
	var wrong int
	scan(t, db, &wrong, `SELECT COUNT(*) FROM device_stock s JOIN (
			SELECT product_id, SUM(delta) AS stock, MAX(version) AS version FROM stock_movements GROUP BY product_id
		) m ON m.product_id = s.product_id WHERE m.stock <> s.stock OR m.version <> s.version OR s.updated_at IS NULL`)
	if wrong != 0 || len(movements) != len(changes) {
		t.Errorf("%d rows of %d are wrong after %d movements", wrong, products, len(movements))
	}
	err = db.InTx(t.Context(), func(tx *gorm.DB) error {
		var keys []inventory.Key
		for _, c := range changes {
			keys = append(keys, c.Key)
		}
		ledger, err := inventory.OpenLedger(tx, keys, database.Optimistic)
		if err != nil {
			return err
		}
		if _, err := book(t, db, database.Optimistic, brought(1, 1)); err != nil {
			return database.Final(err)
		}
		for _, c := range filled {
			ledger.Book(c, database.Now())
		}
		return database.Final(ledger.Write(tx, database.Now()))
	})
	if !errors.Is(err, database.ErrConflict) {
		t.Errorf("with another writer of one row: %v", err)
	}
}

// Writers in every way of locking, over the same rows in any order, lose nothing.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	const writers, rounds = 6, 20
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for range rounds {
				changes := []inventory.Change{brought(1, 1), brought(2, 1), brought(3, 1), brought(4, 1)}
				random.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
				if _, err := book(t, db, database.Locking(w%2), changes...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	var right, movements int
	scan(t, db, &right, "SELECT COUNT(*) FROM device_stock WHERE stock = ? AND version = ?", writers*rounds, writers*rounds)
	scan(t, db, &movements, "SELECT COUNT(*) FROM stock_movements WHERE balance = version")
	if right != 4 || movements != 4*writers*rounds {
		t.Errorf("%d of 4 rows and %d of %d movements are right", right, movements, 4*writers*rounds)
	}
}

func TestARestock(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	for _, id := range []int64{7, 8} {
		exec(t, db, `INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at)
			VALUES (?, ?, 'x', 1, NOW(3), NOW(3))`, id, fmt.Sprint(id))
	}
	request := inventory.RestockRequest{
		DeviceID: 1001, RestockID: uuid.NewString(), Note: "morning", Actor: "ann",
		Lines: []inventory.RestockLine{{ProductID: 8, Quantity: 3}, {ProductID: 7, Quantity: inventory.MaxRestockUnits}},
	}
	add := func(r inventory.RestockRequest) (movements []inventory.Movement, err error) {
		err = db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) (err error) {
			movements, err = inventory.AddRestock(tx, attempt, r, database.Now())
			return err
		})
		return movements, err
	}
	movements, err := add(request)
	if err != nil {
		t.Fatal(err)
	}
	if len(movements) != 2 || movements[0].ProductID != 7 || movements[0].Balance != 100_000 || movements[1].Balance != 3 ||
		movements[0].Ref != request.RestockID || movements[0].Kind != inventory.Restock {
		t.Errorf("%+v", movements)
	}
	checkWritten(t, db, movements)

	if _, err := add(request); !database.IsDuplicate(err) {
		t.Errorf("the same restock again: %v", err)
	}
	request.RestockID = uuid.NewString()
	request.Lines = append(request.Lines, inventory.RestockLine{ProductID: 9, Quantity: 1})
	if _, err := add(request); !errors.Is(err, inventory.ErrUnknownProduct) {
		t.Errorf("an unknown product: %v", err)
	}
	var restocks, stock int64
	scan(t, db, &restocks, "SELECT COUNT(*) FROM restocks WHERE note = 'morning' AND actor = 'ann'")
	scan(t, db, &stock, "SELECT SUM(stock) FROM device_stock")
	if restocks != 1 || stock != 100_003 {
		t.Errorf("%d restocks and %d units, want the first alone", restocks, stock)
	}
}

func TestLockingByAttempt(t *testing.T) {
	t.Parallel()
	var got []database.Locking
	for attempt := range 6 {
		got = append(got, database.LockingFor(attempt+1))
	}
	o, f := database.Optimistic, database.ForUpdate
	if !slices.Equal(got, []database.Locking{o, o, o, f, f, f}) {
		t.Error(got)
	}
}

func exec(t *testing.T, db *database.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.SQL().ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func scan(t *testing.T, db *database.DB, target any, query string, args ...any) {
	t.Helper()
	if err := db.SQL().QueryRowContext(t.Context(), query, args...).Scan(target); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

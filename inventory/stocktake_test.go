package inventory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
)

// newShelf is a database with products 7 and 8 and a cabinet 1001 whose events have come to a seq; −1: to none.
func newShelf(t *testing.T, lastSeq int64) *database.DB {
	t.Helper()
	db := databasetest.New(t)
	for _, id := range []int64{7, 8} {
		exec(t, db, `INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at)
			VALUES (?, ?, 'x', 1, NOW(3), NOW(3))`, id, fmt.Sprint(id))
	}
	if lastSeq >= 0 {
		exec(t, db, "INSERT INTO cabinet_sequences (device_id, epoch, last_seq) VALUES (1001, 0, ?)", lastSeq)
	}
	return db
}

// count takes stock of product 7. The attempts begin at first: from 4 on rows are locked before they are read.
func count(t *testing.T, db *database.DB, first int, units int64, asOf ...int64) ([]inventory.Movement, error) {
	t.Helper()
	request := inventory.StocktakeRequest{
		DeviceID: 1001, StocktakeID: uuid.NewString(), Actor: "ann", Lines: []inventory.CountedLine{{ProductID: 7, Counted: units}},
	}
	if len(asOf) > 0 {
		request.AsOfSeq = &asOf[0]
	}
	return take(t, db, first, request)
}

func take(t *testing.T, db *database.DB, first int, request inventory.StocktakeRequest) (movements []inventory.Movement, err error) {
	t.Helper()
	err = db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) (err error) {
		movements, err = inventory.AddStocktake(tx, first+attempt-1, request, database.Now())
		return err
	})
	return movements, err
}

func TestWhatACountMakesOfTheBooks(t *testing.T) {
	t.Parallel()
	at := func(c inventory.Change, epoch int, seq int64) inventory.Change {
		c.At = &inventory.Position{Epoch: epoch, Seq: seq}
		return c
	}
	cases := []struct {
		name    string
		lastSeq int64
		booked  []inventory.Change // before the count
		counted int64
		asOf    []int64
		want    string // of the count: delta, balance, difference
		late    []inventory.Change
		stock   int64 // at the end
	}{
		{name: "the books are right", lastSeq: -1, booked: []inventory.Change{brought(7, 5)}, counted: 5, want: "0 5 0", stock: 5},
		{name: "something is missing", lastSeq: -1, booked: []inventory.Change{brought(7, 5)}, counted: 3, want: "-2 3 -2", stock: 3},
		{name: "more than the books have", lastSeq: -1, counted: 3, want: "3 3 3", stock: 3},
		{name: "nothing at all", lastSeq: -1, want: "0 0 0"},
		{
			name: "an event before the count comes late", lastSeq: 10, booked: []inventory.Change{brought(7, 5)}, counted: 4, want: "-1 4 -1",
			late: []inventory.Change{sold(7, 1, 10), sold(7, 2, 3)}, stock: 4,
		},
		{
			name: "events after the count, one before it and one behind", lastSeq: 10,
			booked: []inventory.Change{brought(7, 9), sold(7, 1, 8), sold(7, 2, 10)}, counted: 7, asOf: []int64{9}, want: "-1 5 -1",
			late: []inventory.Change{sold(7, 1, 9), sold(7, 1, 11), sold(7, 1)}, stock: 3,
		},
		{
			name: "staff's door after the count", lastSeq: 10, booked: []inventory.Change{brought(7, 9), at(brought(7, 5), 0, 10)},
			counted: 9, asOf: []int64{9}, want: "0 14 0", stock: 14,
		},
		{
			name: "a sale after the count that the books had too little for", lastSeq: 10,
			booked: []inventory.Change{brought(7, 2), sold(7, 3, 10)}, counted: 5, asOf: []int64{9}, want: "2 2 3", stock: 2,
		},
		{
			name: "fewer counted than were sold since", lastSeq: 10,
			booked: []inventory.Change{brought(7, 5), sold(7, 3, 10)}, counted: 2, asOf: []int64{9}, want: "-2 0 -3", stock: 0,
		},
		{
			name: "a sale that the count before had counted", lastSeq: 10,
			booked: []inventory.Change{brought(7, 5)}, counted: 5, asOf: []int64{10}, want: "0 5 0",
			late: []inventory.Change{sold(7, 2, 9)}, stock: 5,
		},
		{
			name: "before any event has a seq", lastSeq: -1, booked: []inventory.Change{brought(7, 5)}, counted: 4, want: "-1 4 -1",
			late: []inventory.Change{sold(7, 1, 0)}, stock: 3,
		},
		{
			name: "as of the event with seq 0", lastSeq: 0, booked: []inventory.Change{brought(7, 5)}, counted: 4, asOf: []int64{0}, want: "-1 4 -1",
			late: []inventory.Change{sold(7, 1, 0)}, stock: 4,
		},
		{
			name: "a new controller's events", lastSeq: 10, booked: []inventory.Change{brought(7, 5)}, counted: 5, want: "0 5 0",
			late: []inventory.Change{at(sold(7, 1), 1, 1)}, stock: 4,
		},
	}
	for _, c := range cases {
		for _, attempt := range []int{1, database.OptimisticAttempts + 1} {
			t.Run(fmt.Sprint(c.name, " attempt ", attempt), func(t *testing.T) {
				t.Parallel()
				db := newShelf(t, c.lastSeq)
				if _, err := book(t, db, database.Optimistic, c.booked...); err != nil {
					t.Fatal(err)
				}
				movements, err := count(t, db, attempt, c.counted, c.asOf...)
				if err != nil {
					t.Fatal(err)
				}
				m := movements[0]
				if got := fmt.Sprint(m.Delta, m.Balance, m.Difference); got != c.want || m.Kind != inventory.Stocktake || m.Quantity != m.Delta {
					t.Errorf("delta, balance and difference %s, want %s: %+v", got, c.want, m)
				}
				checkDifference(t, db, m)
				if _, err := book(t, db, database.Optimistic, c.late...); err != nil {
					t.Fatal(err)
				}
				var stock int64
				scan(t, db, &stock, "SELECT stock FROM device_stock WHERE product_id = 7")
				if stock != c.stock {
					t.Errorf("stock %d at the end, want %d", stock, c.stock)
				}
			})
		}
	}
}

func checkDifference(t *testing.T, db *database.DB, m inventory.Movement) {
	t.Helper()
	var rows, found int
	scan(t, db, &rows, "SELECT COUNT(*) FROM discrepancies WHERE kind = 'stocktake'")
	scan(t, db, &found, "SELECT COUNT(*) FROM discrepancies WHERE version = ? AND ref = ? AND quantity = ?", m.Version, m.Ref, m.Difference)
	if want := min(1, m.Difference*m.Difference); int64(rows) != want || int64(found) != want {
		t.Errorf("%d differences are kept, %d of them right, want %d", rows, found, want)
	}
}

func TestAReplacedControllersEventsAreBeforeACountSince(t *testing.T) {
	t.Parallel()
	db := newShelf(t, 10)
	if _, err := book(t, db, database.Optimistic, brought(7, 5)); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE cabinet_sequences SET epoch = 1, last_seq = NULL")
	if _, err := count(t, db, 1, 5); err != nil {
		t.Fatal(err)
	}
	old, fresh := sold(7, 1, 11), sold(7, 2)
	fresh.At = &inventory.Position{Epoch: 1, Seq: 1}
	movements, err := book(t, db, database.Optimistic, old, fresh)
	if err != nil || movements[0].Delta != 0 || movements[1].Delta != -2 {
		t.Errorf("%+v, %v", movements, err)
	}
}

func TestAStocktakeThatIsRefused(t *testing.T) {
	t.Parallel()
	db := newShelf(t, 10)
	if _, err := count(t, db, 1, 5, 8); err != nil {
		t.Fatal(err)
	}
	unknown := inventory.StocktakeRequest{
		DeviceID: 1001, StocktakeID: uuid.NewString(), Lines: []inventory.CountedLine{{ProductID: 9, Counted: 1}},
	}
	both := unknown
	both.Lines = []inventory.CountedLine{{ProductID: 8, Counted: 1}, {ProductID: 7, Counted: 1}}
	seven := int64(7)
	both.AsOfSeq = &seven
	for name, c := range map[string]struct {
		take func() ([]inventory.Movement, error)
		want error
	}{
		"beyond the last event":          {func() ([]inventory.Movement, error) { return count(t, db, 1, 5, 11) }, inventory.ErrBeyondSequence},
		"before the last count":          {func() ([]inventory.Movement, error) { return count(t, db, 1, 5, 7) }, inventory.ErrCountedLater},
		"before one product's count":     {func() ([]inventory.Movement, error) { return take(t, db, 1, both) }, inventory.ErrCountedLater},
		"a product that does not exist":  {func() ([]inventory.Movement, error) { return take(t, db, 1, unknown) }, inventory.ErrUnknownProduct},
		"before the last count, locking": {func() ([]inventory.Movement, error) { return count(t, db, 4, 5, 7) }, inventory.ErrCountedLater},
	} {
		if _, err := c.take(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := count(t, db, 1, 5, 8); err != nil {
		t.Errorf("as of the same event again: %v", err)
	}
	var kept, rows int
	scan(t, db, &kept, "SELECT COUNT(*) FROM stocktakes WHERE as_of_seq = 8 AND seq_epoch = 0 AND actor = 'ann'")
	scan(t, db, &rows, "SELECT COUNT(*) FROM device_stock")
	if kept != 2 || rows != 1 {
		t.Errorf("%d stock-takes and %d rows are kept, want 2 and 1", kept, rows)
	}
	exec(t, db, "UPDATE cabinet_sequences SET epoch = 1, last_seq = 3")
	if _, err := count(t, db, 1, 5, 2); err != nil {
		t.Errorf("a new controller's seq is behind the old one's: %v", err)
	}
}

// An event whose transaction is open while a count is booked ends up before it, or late: it is never counted twice.
func TestACountBesideAnEventThatItHasSeen(t *testing.T) {
	t.Parallel()
	inFlight := func(t *testing.T, db *database.DB, meanwhile func(tx *gorm.DB), written func()) (movements []inventory.Movement) {
		t.Helper()
		err := db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
			ledger, err := inventory.OpenLedger(tx, []inventory.Key{key(7)}, database.LockingFor(attempt))
			if err != nil {
				return err
			}
			if attempt == 1 {
				meanwhile(tx)
			}
			now := database.Now()
			movements = []inventory.Movement{ledger.Book(sold(7, 1, 10), now)}
			if err := ledger.Write(tx, now); err != nil {
				return err
			}
			written()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return movements
	}
	t.Run("the count commits first", func(t *testing.T) {
		t.Parallel()
		db := newShelf(t, 10)
		if _, err := book(t, db, database.Optimistic, brought(7, 5)); err != nil {
			t.Fatal(err)
		}
		movements := inFlight(t, db, func(*gorm.DB) {
			if m, err := count(t, db, 1, 4); err != nil || m[0].Difference != -1 {
				t.Errorf("%+v, %v", m, err)
			}
		}, func() {})
		if m := movements[0]; m.Delta != 0 || m.Balance != 4 || m.Version != 3 {
			t.Errorf("the event: %+v", m)
		}
	})
	for _, attempt := range []int{1, database.OptimisticAttempts + 1} {
		t.Run(fmt.Sprint("the event commits first, attempt ", attempt), func(t *testing.T) {
			t.Parallel()
			db := newShelf(t, 10)
			if _, err := book(t, db, database.Optimistic, brought(7, 5)); err != nil {
				t.Fatal(err)
			}
			counted := make(chan string, 1)
			inFlight(t, db, func(*gorm.DB) {}, func() {
				go func() {
					m, err := count(t, db, attempt, 4)
					counted <- fmt.Sprint(m[0].Difference, m[0].Balance, err)
				}()
				waitUntilBlocked(t, db)
			})
			if diff := cmp.Diff("0 4 <nil>", <-counted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// waitUntilBlocked returns when a statement on book stock waits for a lock.
func waitUntilBlocked(t *testing.T, db *database.DB) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for waiting := 0; waiting == 0; {
		select {
		case <-ticker.C:
			scan(t, db, &waiting, `SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE()
				AND (INFO LIKE 'UPDATE JSON_TABLE%' OR INFO LIKE '%FOR UPDATE' OR INFO LIKE 'INSERT INTO device_stock%')`)
		case <-deadline:
			t.Fatal("nobody waits for the row after 20 s")
		}
	}
}

func TestAWriteoff(t *testing.T) {
	t.Parallel()
	db := newShelf(t, -1)
	if _, err := book(t, db, database.Optimistic, brought(7, 2), brought(8, 2)); err != nil {
		t.Fatal(err)
	}
	add := func(lines ...inventory.WriteoffLine) (movements []inventory.Movement, err error) {
		request := inventory.WriteoffRequest{DeviceID: 1001, WriteoffID: uuid.NewString(), Reason: "spoiled", Actor: "ann", Lines: lines}
		err = db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) (err error) {
			movements, err = inventory.AddWriteoff(tx, attempt, request, database.Now())
			return err
		})
		return movements, err
	}
	movements, err := add(inventory.WriteoffLine{ProductID: 8, Quantity: 1}, inventory.WriteoffLine{ProductID: 7, Quantity: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range movements {
		got = append(got, fmt.Sprintf("%d %s %d %d %d %d", m.ProductID, m.Kind, m.Quantity, m.Delta, m.Balance, m.Shortfall))
	}
	if diff := cmp.Diff([]string{"7 writeoff -3 -2 0 1", "8 writeoff -1 -1 1 0"}, got); diff != "" {
		t.Error(diff)
	}
	checkWritten(t, db, movements)
	if _, err := add(inventory.WriteoffLine{ProductID: 9, Quantity: 1}); !errors.Is(err, inventory.ErrUnknownProduct) {
		t.Errorf("an unknown product: %v", err)
	}
	var kept int
	scan(t, db, &kept, "SELECT COUNT(*) FROM writeoffs WHERE reason = 'spoiled' AND actor = 'ann'")
	if kept != 1 {
		t.Errorf("%d write-offs", kept)
	}
}

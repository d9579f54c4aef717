// Package audit proves that the books are whole: invariants I1 to I6 of the design's section 8, from the database alone but for
// what promotions count in Redis.
//
// What is archived is part of them: both parts of a table are read as one. It reads one snapshot, so that it may run while events
// are being settled, and row by row, so that its memory doesn't grow with the tables. It changes nothing.
package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"doortab/database"
)

// MaxViolations is how many violations of one invariant a report lists; beyond it they are only counted.
const MaxViolations = 100

// Report is the outcome of one audit: I1 to I6 in this order.
type Report struct {
	Checks []Check
	Read   []Read // of the tables that may be archived
}

// Check is what was found about one invariant.
type Check struct {
	Name string // "I1" to "I6"
	What string // the invariant in words
	Rows int64  // table rows that were checked against it

	// Violations names table and key of the first MaxViolations, as in
	// "device_stock device=1001 product=7: stock 3, last balance 4".
	Violations []string
	Total      int64 // violations found, those that aren't listed included
	Doubled    int64 // of them, second orders of an event
	Lost       int64 // of them, goods taken off the books and closed door sessions without a settlement
}

func (c *Check) violated(format string, args ...any) {
	c.Total++
	if len(c.Violations) < MaxViolations {
		c.Violations = append(c.Violations, fmt.Sprintf(format, args...))
	}
}

// OK tells whether every invariant holds.
func (r Report) OK() bool {
	for _, c := range r.Checks {
		if c.Total > 0 {
			return false
		}
	}
	return true
}

// Print writes a line for each invariant with its counts, and below it one for each violation that the report lists.
func (r Report) Print(w io.Writer) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	for _, c := range r.Checks {
		line("%s %s: %d rows checked, %d violations", c.Name, c.What, c.Rows, c.Total)
		for _, violation := range c.Violations {
			line("%s %s", c.Name, violation)
		}
		if more := c.Total - int64(len(c.Violations)); more > 0 {
			line("%s and %d more", c.Name, more)
		}
	}
	for _, r := range r.Read {
		line("read %s: %d live, %d archived", r.Table, r.Live, r.Archived)
	}
	return errors.Join(errs...)
}

// Run checks every invariant and reports what it found. It returns an error only where it could not read: violations are no
// error, see [Report.OK].
func Run(ctx context.Context, db *database.DB) (Report, error) { return run(ctx, db, nil) }

// RunWithRedis is [Run] which also checks what is counted in the Redis at a URL.
func RunWithRedis(ctx context.Context, db *database.DB, redisURL string) (Report, error) {
	client, err := openRedis(redisURL)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = client.Close() }() // it was only read
	list, err := readRedis(ctx, db, client)
	if err != nil {
		return Report{}, err
	}
	return run(ctx, db, list)
}

func run(ctx context.Context, db *database.DB, inRedis []counters) (Report, error) {
	// One REPEATABLE READ transaction sees all tables as of its first read.
	tx, err := db.SQL().BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return Report{}, fmt.Errorf("audit: begin a snapshot: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	a := newAuditor(tx)
	for _, step := range []struct {
		name string
		read func(context.Context) error
	}{
		{"stock_movements", a.movements},
		{"device_stock", a.stock},
		{"discrepancies", a.discrepancies},
		{"restocks", a.documents(document{"restocks", "restock_id", kindRestock})},
		{"stocktakes", a.documents(document{"stocktakes", "stocktake_id", kindStocktake})},
		{"writeoffs", a.documents(document{"writeoffs", "writeoff_id", kindWriteoff})},
		{"settlements", a.settlements},
		{"payloads of settlements", a.payloads("settlements", readPayloads)},
		{"settlement_payloads_archive", a.payloads("settlement_payloads_archive", readArchivedPayloads)},
		{"conflict_payloads_archive", a.strayPayloads},
		{"orders", a.orders},
		{"order_lines", a.orderLines},
		{"reviews", a.reviews},
		{"stock_movements of reviews", a.reviewMovements(movementTables.table)},
		{"stock_movements_archive of reviews", a.reviewMovements(movementTables.inWhich(true))},
		{"order_lines of reviews", a.reviewLines("order_lines", "orders")},
		{"order_lines_archive of reviews", a.reviewLines("order_lines_archive", "orders_archive")},
		{"settlement_conflicts", a.conflicts},
		{"promotion_uses", a.uses},
		{"claims", a.claims},
		{"door_sessions", a.doors},
		{"epcs", a.tags},
		{"reservations", a.reservations},
		{"reservation_lines", a.reservationLines},
		{"reserved_stock", a.reservedStock},
		{"promotion_quota", a.quotas},
		{"promotion_users", a.persons(readPersons)},
		{"persons without a counter", a.persons(readUncounted)},
		{"promotion_buckets", a.leases},
		{"counters in Redis", a.checkRedis(inRedis)},
	} {
		if err := step.read(ctx); err != nil {
			return Report{}, fmt.Errorf("audit %s: %w", step.name, err)
		}
	}
	return Report{Checks: []Check{*a.i1, *a.i2, *a.i3, *a.i4, *a.i5, *a.i6}, Read: a.read}, nil
}

type auditor struct {
	tx                     *sql.Tx
	i1, i2, i3, i4, i5, i6 *Check
	read                   []Read

	apart map[corrected]bool // whose lines and movements are known to differ
}

func newAuditor(tx *sql.Tx) *auditor {
	return &auditor{
		tx: tx, apart: map[corrected]bool{},
		i1: &Check{Name: "I1", What: "every settlement has its outcome's rows, every order one settlement"},
		i2: &Check{Name: "I2", What: "stock = sum of deltas = last balance, versions without a gap, balances chain"},
		i3: &Check{Name: "I3", What: "order totals = lines, movements + shortfalls + sales before a count = lines, " +
			"units at a promotion's price = its uses"},
		i4: &Check{Name: "I4", What: "no negative stock, no orphans"},
		i5: &Check{Name: "I5", What: "receipts say what the rows say"},
		i6: &Check{Name: "I6", What: "promotions' counters = what they count"},
	}
}

// each reads the rows of a query into row, one after another, and calls visit for each. The server sends them as it finds
// them, which needs a query that is answered in the order of a primary key, or is over few rows.
func (a *auditor) each(ctx context.Context, query string, row []any, visit func(), args ...any) error {
	rows, err := a.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err below says what matters
	for rows.Next() {
		if err := rows.Scan(row...); err != nil {
			return err
		}
		visit()
	}
	return rows.Err()
}

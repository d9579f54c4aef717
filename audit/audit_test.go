package audit_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/audit"
	"doortab/database"
	"doortab/database/databasetest"
)

// plant is a fault that is written into sound books, and all that an audit says of it.
type plant struct {
	name      string
	sql       []string
	unchecked bool // the schema's constraints would refuse it
	receipt   [3]string
	want      []string
}

func (p plant) into(b books) {
	if p.unchecked {
		b.unchecked(p.sql...)
		return
	}
	for _, statement := range p.sql {
		b.exec(statement)
	}
	if p.receipt[0] != "" {
		b.receiptOf(p.receipt[0], p.receipt[1], p.receipt[2])
	}
}

func findAll(t *testing.T, plants []plant) {
	t.Helper()
	findAllIn(t, books.fill, plants)
}

func findAllIn(t *testing.T, fill func(books), plants []plant) {
	t.Helper()
	t.Parallel()
	b := newBooks(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			b := books{t, b.db}
			fill(b)
			p.into(b)
			report := run(t, b.db)
			if report.OK() {
				t.Error("the report is OK")
			}
			if diff := cmp.Diff(p.want, violations(t, report)); diff != "" {
				t.Errorf("violations (- wanted, + found):\n%s", diff)
			}
		})
	}
}

func run(t *testing.T, db *database.DB) audit.Report {
	t.Helper()
	report, err := audit.Run(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// violations is what Print writes apart from the lines with counts.
func violations(t *testing.T, report audit.Report) []string {
	t.Helper()
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasSuffix(line, " violations\n") && !strings.HasPrefix(line, "read ") {
			list = append(list, strings.TrimSuffix(line, "\n"))
		}
	}
	return list
}

func TestSoundBooksPass(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.fill()
	b.corrected()
	var text strings.Builder
	report := run(t, b.db)
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error("the report isn't OK")
	}
	want := `I1 every settlement has its outcome's rows, every order one settlement: 27 rows checked, 0 violations
I2 stock = sum of deltas = last balance, versions without a gap, balances chain: 41 rows checked, 0 violations
I3 order totals = lines, movements + shortfalls + sales before a count = lines, units at a promotion's price = its uses: 48 rows checked, 0 violations
I4 no negative stock, no orphans: 119 rows checked, 0 violations
I5 receipts say what the rows say: 15 rows checked, 0 violations
I6 promotions' counters = what they count: 0 rows checked, 0 violations
read stock_movements: 31 live, 0 archived
read payloads: 15 live, 0 archived
read orders: 10 live, 0 archived
read order_lines: 14 live, 0 archived
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("printed (- wanted, + found):\n%s", diff)
	}
}

func TestNoBooksPass(t *testing.T) {
	t.Parallel()
	if report := run(t, databasetest.New(t)); !report.OK() || len(report.Checks) != 6 {
		t.Errorf("an empty database: %+v", report)
	}
}

func TestViolationsAreListedUpToABound(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	for product := range int64(audit.MaxViolations + 50) {
		b.stock(1001, product+1, 3, 0, nil)
	}
	report := run(t, b.db)
	stock := report.Checks[1]
	if stock.Total != audit.MaxViolations+50 || len(stock.Violations) != audit.MaxViolations {
		t.Errorf("%d counted, %d listed", stock.Total, len(stock.Violations))
	}
	list := violations(t, report)
	if last := list[len(list)-1]; last != "I2 and 50 more" {
		t.Errorf("the last line is %q", last)
	}
}

// TestAuditBesideWriters: a reader without a snapshot would see stock and movements of different moments.
func TestAuditBesideWriters(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.fill()
	ctx, stop := context.WithCancel(t.Context())
	writer := make(chan error, 1)
	began := make(chan struct{})
	go func() { writer <- restockUntil(ctx, b.db, began) }()
	<-began
	for range 20 {
		if report := run(t, b.db); !report.OK() {
			t.Errorf("sound books: %v", violations(t, report))
			break
		}
	}
	stop()
	if err := <-writer; err != nil {
		t.Error(err)
	}
}

func restockUntil(ctx context.Context, db *database.DB, began chan<- struct{}) error {
	for n := int64(1); ctx.Err() == nil; n++ {
		err := db.InTx(context.WithoutCancel(ctx), func(tx *gorm.DB) error {
			ref := "more-" + strconv.FormatInt(n, 10)
			if err := tx.Exec("INSERT INTO restocks VALUES (1002, ?, '', 'ann', ?)", ref, settledAt).Error; err != nil {
				return err
			}
			err := tx.Exec("INSERT INTO stock_movements VALUES (1002, 7, ?, 'restock', 1, 1, ?, ?, NULL, NULL, ?)", 2+n, 5+n, ref, settledAt).Error
			if err != nil {
				return err
			}
			return tx.Exec("UPDATE device_stock SET stock = ?, version = ? WHERE device_id = 1002 AND product_id = 7", 5+n, 2+n).Error
		})
		if err != nil {
			return err
		}
		if n == 1 {
			close(began)
		}
	}
	return nil
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	t.Run("no schema", func(t *testing.T) {
		t.Parallel()
		db := databasetest.Open(t, databasetest.Empty(t))
		if _, err := audit.Run(t.Context(), db); err == nil || !strings.Contains(err.Error(), "audit stock_movements") {
			t.Errorf("error %v names no table", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := audit.Run(ctx, databasetest.New(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

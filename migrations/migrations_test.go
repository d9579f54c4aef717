package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/migrations"
)

var versions = []int64{1, 2, 3, 4, 5, 6, 7}

var all = []string{
	"api_tokens", "audit_log", "cabinet_sequences", "cabinet_strays", "cabinets", "claims", "conflict_payloads_archive",
	"dead_letters", "device_stock", "discrepancies", "door_sessions", "epc_overrides", "epcs", "idempotency_keys", "installation",
	"lanes", "marks", "order_lines", "order_lines_archive", "order_token_keys", "orders", "orders_archive", "planogram_history",
	"product_prices", "products", "promotion_buckets", "promotion_epochs", "promotion_quota", "promotion_users", "promotion_uses",
	"promotions", "reconciliation_findings", "reconciliations", "reservation_lines", "reservations", "reserved_stock",
	"restocks", "reviews", "settlement_conflicts",
	"settlement_payloads_archive", "settlements", "stock_movements", "stock_movements_archive", "stocktakes", "writeoffs",
}

// backwards lists the versions from the newest down to one.
func backwards(to int64) []int64 {
	down := slices.Clone(versions[to-1:])
	slices.Reverse(down)
	return down
}

func empty(t *testing.T) *database.DB {
	t.Helper()
	return databasetest.Open(t, databasetest.Empty(t))
}

// tables lists the product's own.
func tables(t *testing.T, db *database.DB) []string {
	t.Helper()
	var names []string
	err := db.Read(t.Context()).Raw("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() " +
		"AND table_name NOT LIKE 'goose%'").Scan(&names).Error
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func installation(t *testing.T, db *database.DB) string {
	t.Helper()
	var ids []string
	if err := db.Read(t.Context()).Raw("SELECT installation_id FROM installation").Scan(&ids).Error; err != nil {
		t.Fatal(err)
	}
	if len(ids) != 1 || len(ids[0]) != 36 {
		t.Fatalf("installation has %q, not one UUID", ids)
	}
	return ids[0]
}

func up(t *testing.T, db *database.DB, want ...int64) {
	t.Helper()
	applied, err := migrations.Up(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(applied, want) {
		t.Errorf("up applied %v, not %v", applied, want)
	}
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	db := empty(t)
	up(t, db, versions...)
	if diff := cmp.Diff(all, tables(t, db)); diff != "" {
		t.Errorf("tables (- wanted, + found):\n%s", diff)
	}
	first := installation(t, db)
	up(t, db)
	if again := installation(t, db); again != first {
		t.Errorf("up made the installation %s another one, %s", first, again)
	}

	for _, want := range append(backwards(1), 0) {
		version, err := migrations.Down(t.Context(), db)
		if err != nil || version != want {
			t.Errorf("down took back %d (%v), not %d", version, err, want)
		}
	}
	if left := tables(t, db); len(left) != 0 {
		t.Errorf("down left %v", left)
	}
	up(t, db, versions...)
	if err := migrations.Check(t.Context(), db); err != nil {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	db := empty(t)
	for _, applied := range []bool{false, true} {
		list, err := migrations.List(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		want := []migrations.Status{
			{Version: 1, Name: "00001_main.sql", Applied: applied},
			{Version: 2, Name: "00002_operator.sql", Applied: applied},
			{Version: 3, Name: "00003_archive.sql", Applied: applied},
			{Version: 4, Name: "00004_lean.sql", Applied: applied},
			{Version: 5, Name: "00005_promotions.sql", Applied: applied},
			{Version: 6, Name: "00006_reservations.sql", Applied: applied},
			{Version: 7, Name: "00007_reconciliation.sql", Applied: applied},
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("status (- wanted, + found):\n%s", diff)
		}
		if !applied {
			up(t, db, versions...)
		}
	}
}

func TestCheckNamesTheCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		lacks   string
		prepare func(*testing.T, *database.DB)
	}{
		{"empty schema", "00001_main.sql", func(*testing.T, *database.DB) {}},
		{"older schema", "00007_reconciliation.sql", func(t *testing.T, db *database.DB) {
			up(t, db, versions...)
			if _, err := migrations.Down(t.Context(), db); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := empty(t)
			c.prepare(t, db)
			err := migrations.Check(t.Context(), db)
			if err == nil || !strings.Contains(err.Error(), c.lacks) || !strings.Contains(err.Error(), "doortab migrate up") {
				t.Errorf("error %v doesn't name migration and command", err)
			}
		})
	}
}

func TestCheckPassesOnANewerSchema(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	err := db.Read(t.Context()).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)").Error
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(t.Context(), db); err != nil {
		t.Error(err)
	}
}

// TestDownBringsBackWhatIsArchived: without it the books would not add up. A second run, after one that
// ended half way, finds some tables gone.
func TestDownBringsBackWhatIsArchived(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	exec := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := db.Read(t.Context()).Exec(statement).Error; err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	exec(
		"INSERT INTO orders_archive VALUES (1, 1001, 'e', 42, NULL, 'open', 'CNY', 500, NOW(3))",
		"INSERT INTO order_lines_archive VALUES (1001, 1, 1, 'settlement', 7, 1, 500, 500, '{}')",
		"INSERT INTO stock_movements_archive VALUES (1001, 7, 1, 'sale', -1, -1, 4, 'e', NULL, NULL, NOW(3))",
		`INSERT INTO settlements (device_id, close_event_id, outcome, digest, kind, priced_at, payload, receipt, received_at, settled_at)
			VALUES (1001, 'e', 'settled', '', 'sale', NOW(3), '', '{}', NOW(3), NOW(3))`,
		"INSERT INTO settlement_payloads_archive VALUES (1001, 'e', 'said')",
		"INSERT INTO settlement_conflicts VALUES (1001, 'e', UNHEX(SHA2('x', 256)), '', NOW(3))",
		"INSERT INTO conflict_payloads_archive VALUES (1001, 'e', UNHEX(SHA2('x', 256)), 'said otherwise')",
	)
	for range 2 {
		for _, want := range backwards(3) {
			if version, err := migrations.Down(t.Context(), db); err != nil || version != want {
				t.Fatalf("down took back %d: %v", version, err)
			}
		}
		for _, version := range versions[2:] {
			exec(fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, TRUE)", version))
		}
	}
	for query, want := range map[string]string{
		"SELECT close_event_id FROM orders WHERE order_id = 1":                "e",
		"SELECT origin FROM order_lines WHERE order_id = 1":                   "settlement",
		"SELECT ref FROM stock_movements WHERE version = 1":                   "e",
		"SELECT payload FROM settlements WHERE close_event_id = 'e'":          "said",
		"SELECT payload FROM settlement_conflicts WHERE close_event_id = 'e'": "said otherwise",
	} {
		var got string
		if err := db.Read(t.Context()).Raw(query).Scan(&got).Error; err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", query, got, err, want)
		}
	}
}

// TestManyMigrateAtOnce gives each its own pool, as processes have.
func TestManyMigrateAtOnce(t *testing.T) {
	t.Parallel()
	dsn := databasetest.Empty(t)
	applied := make([][]int64, 4)
	group, ctx := errgroup.WithContext(t.Context())
	for i := range applied {
		db := databasetest.Open(t, dsn)
		group.Go(func() (err error) {
			applied[i], err = migrations.Up(ctx, db)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if together := slices.Concat(applied...); !slices.Equal(together, versions) {
		t.Errorf("all of them together applied %v", together)
	}
	installation(t, databasetest.Open(t, dsn))
}

// TestInterruptedMigration: MySQL commits each DDL statement by itself, so that a migration can end half way.
func TestInterruptedMigration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql string }{
		{"all done but the version", ""},
		{"the last tables are missing", "DROP TABLE dead_letters, api_tokens, idempotency_keys"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := databasetest.New(t)
			first := installation(t, db)
			for _, statement := range []string{"DELETE FROM goose_db_version WHERE version_id > 0", c.sql} {
				if statement == "" {
					continue
				}
				if err := db.Read(t.Context()).Exec(statement).Error; err != nil {
					t.Fatal(err)
				}
			}
			if err := migrations.Check(t.Context(), db); err == nil {
				t.Error("check passes on a migration that didn't end")
			}
			up(t, db, versions...)
			if diff := cmp.Diff(all, tables(t, db)); diff != "" {
				t.Errorf("tables (- wanted, + found):\n%s", diff)
			}
			if again := installation(t, db); again != first {
				t.Errorf("the second run made the installation %s another one, %s", first, again)
			}
		})
	}
}

// TestWaitForAnotherMigration holds the lock as a process does that migrates.
func TestWaitForAnotherMigration(t *testing.T) {
	t.Parallel()
	db := empty(t)
	holder, err := db.SQL().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close() }()
	const name = "CONCAT('doortab-', LEFT(SHA2(DATABASE(), 256), 32))"
	if _, err := holder.ExecContext(t.Context(), "DO GET_LOCK("+name+", 0)"); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := migrations.Up(ctx, db); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, while another one migrates", err)
	}
	if made := tables(t, db); len(made) != 0 {
		t.Errorf("made %v, while another one migrates", made)
	}

	if _, err := holder.ExecContext(t.Context(), "DO RELEASE_LOCK("+name+")"); err != nil {
		t.Fatal(err)
	}
	up(t, db, versions...)
}

func TestUnreachableDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	db := databasetest.Open(t, "root:hunter2@unix(/nowhere/mariadb.sock)/doortab")
	_, upErr := migrations.Up(t.Context(), db)
	_, downErr := migrations.Down(t.Context(), db)
	checkErr := migrations.Check(t.Context(), db)
	for _, err := range []error{upErr, downErr, checkErr} {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v", err)
		}
	}
}

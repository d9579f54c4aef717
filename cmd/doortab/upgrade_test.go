package main

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"doortab/database"
	"doortab/database/databasetest"
)

// nextVersion is what a later version may do to the schema while this one goes on: new tables, columns with a default, keys.
var nextVersion = []string{
	"CREATE TABLE later (id BIGINT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
	"ALTER TABLE device_stock ADD COLUMN later_note VARCHAR(64) NULL",
	"ALTER TABLE settlements ADD COLUMN later_flag BOOLEAN NOT NULL DEFAULT FALSE, ADD KEY later_key (outcome, settled_at)",
	"ALTER TABLE orders ADD COLUMN later_total BIGINT NOT NULL DEFAULT 0 AFTER order_id",
	"ALTER TABLE order_lines ADD COLUMN later_tax BIGINT NOT NULL DEFAULT 0, ALGORITHM=COPY",
	"ALTER TABLE stock_movements ADD KEY later_key (created_at)",
	"INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, TRUE)",
}

// Old code runs on the new schema, and a migration under load costs no event.
func TestMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	const devices = 20
	in, broker := newInstallation(t, devices), mosquitto(t)
	migrating := databasetest.Open(t, in.dsn)
	box := newOutbox(connect(t, connection{url: broker.URL(), clientID: "cabinets"}), 2*time.Second)
	s := in.serve("--mqtt-url=" + broker.URL())
	stop := box.load(150, devices)
	eventually(t, 20*time.Second, "the load is settled", func() bool { return box.answered() > 100 })

	// A report that reads for long: the migration gives up, and what waits behind it goes on.
	report, err := in.db.SQL().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var orders int
	if err := report.QueryRow("SELECT COUNT(*) FROM orders").Scan(&orders); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = migrating.SQL().Exec(nextVersion[3])
	if !database.IsLockWait(err) || time.Since(began) > 2*database.TableWait {
		t.Errorf("a table that is read is altered after %s: %v", time.Since(began), err)
	}
	if err := report.Rollback(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range nextVersion {
		if _, err := migrating.SQL().Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	answered := box.answered()
	eventually(t, 20*time.Second, "it goes on settling on the new schema", func() bool { return box.answered() > answered+100 })
	s.kill()
	in.serve("--mqtt-url=" + broker.URL()) // the old program starts on the new schema too
	if status, said, _ := command(t, "migrate", "up", "--database-dsn="+in.dsn); status != 0 || !strings.Contains(said, "nothing to do") {
		t.Errorf("migrate up of the old program: status %d, %s", status, said)
	}
	events := stop()
	box.drain(time.Minute)
	t.Logf("%d events, the longest wait for a receipt was %s", events, box.longest().Round(time.Millisecond))
	box.consistent()
	in.settledOnce(events)
	if n := in.count("SELECT COUNT(*) FROM dead_letters"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

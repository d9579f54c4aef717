package database_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"doortab/database"
)

// contrary asks for the opposite of what correctness needs.
const contrary = "?parseTime=false&loc=Asia%2FShanghai&interpolateParams=false&multiStatements=true&rejectReadOnly=false" +
	"&time_zone=%27%2B08%3A00%27&sql_mode=%27%27&innodb_lock_wait_timeout=50&charset=latin1&readTimeout=1ms"

func TestSettingsHoldOnEveryConnection(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn + contrary, Pool: 3})
	for range 3 { // at the same time, so that each is another one
		conn, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		checkSettings(t, conn)
	}
}

func checkSettings(t *testing.T, conn *sql.Conn) {
	t.Helper()
	for _, want := range []struct{ query, value string }{
		{"SELECT @@session.time_zone", "+00:00"},
		{"SELECT @@session.innodb_lock_wait_timeout", "2"},
		{"SELECT @@session.lock_wait_timeout", "10"},
		{"SELECT @@session.character_set_client", "utf8mb4"},
		{"SELECT @@session.collation_connection", "utf8mb4_bin"},
		{"SELECT FIND_IN_SET('STRICT_ALL_TABLES', @@session.sql_mode) > 0", "1"},
		{"SELECT FIND_IN_SET('NO_ENGINE_SUBSTITUTION', @@session.sql_mode) > 0", "1"},
	} {
		var got string
		if err := conn.QueryRowContext(t.Context(), want.query).Scan(&got); err != nil {
			t.Errorf("%s: %v", want.query, err)
		} else if got != want.value {
			t.Errorf("%s: %s, not %s", want.query, got, want.value)
		}
	}
	var name, got string
	const isolation = "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')"
	if err := conn.QueryRowContext(t.Context(), isolation).Scan(&name, &got); err != nil || got != "READ-COMMITTED" {
		t.Errorf("%s is %s (%v)", name, got, err)
	}
}

func TestStrictMode(t *testing.T) {
	t.Parallel()
	db, _ := counters(t)
	for name, statement := range map[string]string{
		"too long a text":    "UPDATE counters SET name = 'more than five'",
		"too large a number": "UPDATE counters SET n = 3000000000",
		"no number":          "UPDATE counters SET n = 'x'",
		"no date":            "UPDATE counters SET at = '0000-00-00'",
		"division by zero":   "UPDATE counters SET n = 1 / 0",
	} {
		if err := db.Read(t.Context()).Exec(statement).Error; err == nil || database.ClassOf(err) != database.Permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneStatementAtATime(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn + contrary})
	if err := db.Read(t.Context()).Exec("SELECT 1; DELETE FROM counters").Error; err == nil {
		t.Error("two statements passed as one")
	}
	if value(t, db, 1) != 0 {
		t.Error("the second statement ran")
	}
}

func TestReadCommitted(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn, Pool: 2})
	snapshot, err := db.SQL().BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Rollback(); err != nil { // it must leave nothing behind on its connection
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(tx *gorm.DB) error {
		for want := range 3 {
			var n int
			if err := tx.Raw("SELECT n FROM counters WHERE id = 1").Scan(&n).Error; err != nil {
				return err
			}
			if n != want {
				t.Errorf("read %d after %d was committed", n, want)
			}
			exec(t, db, "UPDATE counters SET n = n + 1 WHERE id = 1")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTimesAreUTCAndCutToTheMillisecond(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	db := open(t, database.Config{DSN: dsn + contrary})
	shanghai := time.FixedZone("CST", 8*3600)
	exec(t, db, "UPDATE counters SET at = ? WHERE id = 1", time.Date(2026, 12, 1, 7, 59, 59, 999_999_999, shanghai))
	var at time.Time
	if err := db.Read(t.Context()).Raw("SELECT at FROM counters WHERE at = ?",
		time.Date(2026, 11, 30, 23, 59, 59, 999_400_000, time.UTC)).Scan(&at).Error; err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 11, 30, 23, 59, 59, 999_000_000, time.UTC); at != want {
		t.Errorf("%s became %s", want, at)
	}
	if now := database.Now(); now.Location() != time.UTC || now.Nanosecond()%int(time.Millisecond) != 0 {
		t.Errorf("now is %s", now)
	}
}

func TestBadDSN(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"none":          "",
		"no DSN at all": "hunter2",
		"cut short":     "root:hunter2@tcp(127.0.0.1:3306",
		"a URL":         "mysql://root:hunter2@127.0.0.1:3306/doortab",
		"no schema":     "root:hunter2@tcp(127.0.0.1:3306)/",
		"bad parameter": "root:hunter2@tcp(127.0.0.1:3306)/doortab?parseTime=hunter2",
	} {
		_, err := database.Open(database.Config{DSN: dsn})
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q shows the password", name, err)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	db := open(t, database.Config{DSN: "root:hunter2@unix(" + t.TempDir() + "/no.sock)/doortab"})
	worked := false
	errs := map[string]error{
		"ping":        db.Ping(t.Context()),
		"transaction": db.InTx(t.Context(), func(*gorm.DB) error { worked = true; return nil }),
	}
	for name, err := range errs {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if worked || database.ClassOf(errs["transaction"]) != database.BackPressure {
		t.Errorf("transaction: worked %t, class %s", worked, database.ClassOf(errs["transaction"]))
	}
}

// TestRefusedUser: an operator must mend it, no event is at fault.
func TestRefusedUser(t *testing.T) {
	t.Parallel()
	_, dsn := counters(t)
	settings, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	settings.User, settings.Passwd = "nobody", "hunter2"
	db := open(t, database.Config{DSN: settings.FormatDSN()})
	err = db.InTx(context.Background(), func(*gorm.DB) error { return nil })
	if database.ClassOf(err) != database.BackPressure || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("class %s: %v", database.ClassOf(err), err)
	}
}

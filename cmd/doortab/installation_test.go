package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/admin"
	"doortab/audit"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/fleet"
	"doortab/inventory"
	"doortab/migrations"
	"doortab/services"
	"doortab/services/servicestest"
)

const (
	firstDevice  = 1001
	products     = 5 // product n costs n yuan
	openingStock = 100_000
)

// installation is a database with a catalogue and a fleet, for the programs of one test.
type installation struct {
	t      *testing.T
	db     *database.DB
	dsn    string
	client *httpClient
}

func newInstallation(t *testing.T, devices int) *installation {
	t.Helper()
	db, dsn := databasetest.NewWithDSN(t)
	return install(t, db, dsn, devices)
}

// newInstallationOn is for a test that stops its database server.
func newInstallationOn(t *testing.T, server *services.MariaDB, devices int) *installation {
	t.Helper()
	root := databasetest.Open(t, server.DSN("mysql"))
	if _, err := root.SQL().Exec("CREATE DATABASE doortab"); err != nil {
		t.Fatal(err)
	}
	dsn := server.DSN("doortab")
	db := databasetest.Open(t, dsn)
	if _, err := migrations.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return install(t, db, dsn, devices)
}

func install(t *testing.T, db *database.DB, dsn string, devices int) *installation {
	t.Helper()
	token, err := admin.CreateToken(t.Context(), db, "tests", admin.Admin)
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{t: t, db: db, dsn: dsn, client: newHTTPClient(t, token.Secret)}
	catalogue := inventory.NewCatalogue(db)
	for id := int64(1); id <= products; id++ {
		product := inventory.Product{ProductID: id, SKU: fmt.Sprint("SKU", id), Name: fmt.Sprint("Product ", id), PriceMinor: 100 * id}
		if _, err := catalogue.Create(t.Context(), product); err != nil {
			t.Fatal(err)
		}
	}
	in.register(devices)
	for n := range devices {
		for id := int64(1); id <= products; id++ {
			in.stock(firstDevice+int64(n), id, openingStock)
		}
	}
	return in
}

// register adds cabinets in one statement, since some tests want many.
func (in *installation) register(devices int) {
	in.t.Helper()
	rows := make([][]any, 0, 1000)
	for n := range devices {
		id := firstDevice + int64(n)
		rows = append(rows, []any{id, fmt.Sprint("Cabinet ", id), "", database.Now(), database.Now()})
		if len(rows) < 1000 && n < devices-1 {
			continue
		}
		err := in.db.InTx(in.t.Context(), func(tx *gorm.DB) error {
			return database.Insert(tx, "cabinets", []string{"device_id", "name", "site", "created_at", "updated_at"}, rows, "")
		})
		if err != nil {
			in.t.Fatal(err)
		}
		rows = rows[:0]
	}
}

func (in *installation) stock(deviceID, productID, units int64) {
	in.t.Helper()
	err := in.db.InTxCounted(in.t.Context(), func(tx *gorm.DB, attempt int) error {
		_, err := inventory.AddRestock(tx, attempt, inventory.RestockRequest{
			DeviceID: deviceID, RestockID: uuid.NewString(), Actor: "tests", Lines: []inventory.RestockLine{{ProductID: productID, Quantity: units}},
		}, database.Now())
		return err
	})
	if err != nil {
		in.t.Fatal(err)
	}
}

// secret gives a cabinet a new secret.
func (in *installation) secret(deviceID int64) string {
	in.t.Helper()
	secret, err := fleet.NewRegistry(in.db).RotateSecret(in.t.Context(), deviceID)
	if err != nil {
		in.t.Fatal(err)
	}
	return secret
}

func (in *installation) exec(statement string, arguments ...any) {
	in.t.Helper()
	if _, err := in.db.SQL().Exec(statement, arguments...); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) count(query string, arguments ...any) (n int) {
	in.t.Helper()
	if err := in.db.SQL().QueryRow(query, arguments...).Scan(&n); err != nil {
		in.t.Fatal(err)
	}
	return n
}

// settledOnce checks that there are so many settlements and orders, and that the books are whole.
func (in *installation) settledOnce(events int) {
	in.t.Helper()
	for _, table := range []string{"settlements", "orders"} {
		if n := in.count("SELECT COUNT(*) FROM " + table); n != events {
			in.t.Errorf("%d rows in %s, want %d", n, table, events)
		}
	}
	in.audit()
}

func (in *installation) audit() {
	in.t.Helper()
	report, err := audit.Run(context.WithoutCancel(in.t.Context()), in.db)
	if err != nil {
		in.t.Fatal(err)
	}
	if !report.OK() {
		var text strings.Builder
		_ = report.Print(&text)
		in.t.Error(text.String())
	}
}

// mosquitto is a broker for one test alone: the workers of two tests on one broker would share their events.
func mosquitto(t *testing.T, lines ...string) *services.Mosquitto {
	t.Helper()
	return servicestest.Start(t, services.Options{Mosquitto: &services.MosquittoOptions{Lines: lines}}).Mosquitto
}

// short takes less of something where the tests are to be quick.
func short[T int | time.Duration](usual, quick T) T {
	if testing.Short() {
		return quick
	}
	return usual
}

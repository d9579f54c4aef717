package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"doortab/archive"
	"doortab/cabinet"
	"doortab/database"
	"doortab/services/servicestest"
	"doortab/settlement"
)

// TestArchiveIsKilledAndRunAgain: by SIGKILL in the middle of its work, and the second run does the rest.
func TestArchiveIsKilledAndRunAgain(t *testing.T) {
	t.Parallel()
	const events = 60
	in := newInstallation(t, 1)
	in.settleSales(events)
	before := time.Now().UTC().Add(time.Millisecond).Format(time.RFC3339Nano)
	args := []string{"archive", "--database-dsn=" + in.dsn, "--before=" + before}

	status, stdout, stderr := command(t, append(args, "--dry-run")...)
	if status != 0 || strings.Join(strings.Fields(stdout), " ") !=
		"orders 60 to archive movements 60 to archive payloads 60 to archive conflicts 0 to archive" {
		t.Errorf("dry run: status %d, %q %q", status, stdout, stderr)
	}
	p := start(t, append(args, "--batch=1", "--pause=20ms")...)
	eventually(t, time.Minute, "some orders in the archive", func() bool { return in.count("SELECT COUNT(*) FROM orders_archive") > 5 })
	p.kill()
	if n := in.count("SELECT COUNT(*) FROM orders"); n == 0 {
		t.Fatal("it was not killed in the middle")
	}
	in.audit()

	status, stdout, stderr = command(t, args...)
	if status != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "movements 60 archived payloads 60 archived conflicts 0 archived") {
		t.Errorf("run again: status %d, %q %q", status, stdout, stderr)
	}
	in.audit()
	for table, want := range map[string]int{"orders": 0, "orders_archive": events, "settlements": events} {
		if n := in.count("SELECT COUNT(*) FROM " + table); n != want {
			t.Errorf("%s: %d rows, want %d", table, n, want)
		}
	}
	if _, stdout, _ = command(t, "audit", "--database-dsn="+in.dsn); !strings.Contains(stdout, "read orders: 0 live, 60 archived\n") {
		t.Errorf("audit says %q", stdout)
	}
}

// settleSales settles sales of one unit of product 1 from the first cabinet.
func (in *installation) settleSales(events int) {
	in.t.Helper()
	service := settlement.New(settlement.Config{DB: in.db, Currency: "CNY"})
	deliveries := make([]settlement.Delivery, events)
	for i := range deliveries {
		deliveries[i] = settlement.Delivery{
			DeviceID: firstDevice, Topic: cabinet.DoorClosedTopic(firstDevice), Payload: sale(firstDevice, fmt.Sprint("e", i), 1, 1),
			ReceivedAt: database.Now(),
		}
	}
	for _, a := range service.Settle(in.t.Context(), deliveries) {
		if a.Err != nil {
			in.t.Fatal(a.Err)
		}
	}
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]archive.Progress{
		"orders: 500 of 2000, 250/s, 6s left": {What: "orders", Moved: 500, Total: 2000},
		"orders: 0 of 2000, 0/s":              {What: "orders", Total: 2000},
		"orders: 2100 of 2000, 1050/s":        {What: "orders", Moved: 2100, Total: 2000}, // some more had come meanwhile
	} {
		if got := progressLine(at, 2*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestServeCountsWhatItRemoves(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	s := in.serve()
	status, text, err := in.client.request("GET", s.http+"/metrics", "")
	if err != nil || status != 200 || !strings.Contains(string(text), `doortab_removed_total{table="door_sessions"} 0`) {
		t.Errorf("metrics: status %d, %v", status, err)
	}
}

func TestArchivingPage(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	in.settleSales(3)
	sh := newShell(t, servicestest.MariaDB(t), in.dsn)
	for _, block := range page(t, "archiving.md", "## Archiving", "sh") {
		said := sh.run(block)
		if !strings.Contains(said, "orders                0 archived") || !strings.Contains(said, "read orders: 3 live, 0 archived") {
			t.Errorf("%s says %s", block, said)
		}
	}
}

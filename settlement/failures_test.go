package settlement_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/settlement"
)

// outcomeTables are all that a settlement may write to.
var outcomeTables = []string{
	"settlements", "stock_movements", "discrepancies", "orders", "order_lines", "reviews", "settlement_conflicts", "dead_letters",
	"cabinet_sequences", "device_stock", "epcs",
}

// For each statement of the transaction a trigger makes it fail for cabinet 1001 alone.
func TestEachStatementThatFailsTakesAllOfItsEventBack(t *testing.T) {
	t.Parallel()
	seq := `"seq":5`
	doubted := event(1001, "bad", seq, items(7, 50, 8, 1, 99, 1)) // every table but conflicts and letters
	cases := []struct {
		name, table, moment, row string // row: what the trigger looks for
		victim                   string
		before                   string // settled first
	}{
		{name: "settlements", table: "settlements", moment: "INSERT", victim: doubted},
		{name: "device_stock update", table: "device_stock", moment: "UPDATE", victim: doubted},
		{name: "device_stock insert", table: "device_stock", moment: "INSERT", row: "NEW.product_id = 8", victim: doubted},
		{name: "stock_movements", table: "stock_movements", moment: "INSERT", victim: doubted},
		{name: "discrepancies", table: "discrepancies", moment: "INSERT", victim: doubted},
		{name: "orders", table: "orders", moment: "INSERT", victim: doubted},
		{name: "order_lines", table: "order_lines", moment: "INSERT", row: "NEW.line = 2", victim: doubted},
		{name: "reviews", table: "reviews", moment: "INSERT", victim: doubted},
		{name: "cabinet_sequences", table: "cabinet_sequences", moment: "INSERT", victim: doubted},
		{name: "settlement_conflicts", table: "settlement_conflicts", moment: "INSERT", before: sale(1001, "bad", 7, 1), victim: doubted},
		{name: "dead_letters", table: "dead_letters", moment: "INSERT", victim: `{"closeEventId":"bad"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 10)
			s.cabinet(1002, 7, 100)
			if c.before != "" {
				s.receipts(1001, c.before)
			}
			if c.row == "" {
				c.row = "TRUE"
			}
			s.exec(fmt.Sprintf(`CREATE TRIGGER broken BEFORE %s ON %s FOR EACH ROW
				IF NEW.device_id = 1001 AND %s THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted'; END IF`, c.moment, c.table, c.row))
			was := s.everythingOf(1001)

			group := deliveriesOf(1002, sale(1002, "g1", 7, 1), sale(1002, "g2", 7, 1), sale(1002, "g3", 7, 1))
			group = slices.Insert(group, 1, deliveriesOf(1001, c.victim)...)
			answers := s.Settle(t.Context(), group)

			if a := answers[1]; a.Err == nil || !a.Unwritable() || !a.Alone() || a.Receipt != nil {
				t.Errorf("the event that fails: %+v", a)
			}
			if diff := cmp.Diff(was, s.everythingOf(1001)); diff != "" {
				t.Errorf("something of it remains:\n%s", diff)
			}
			for _, n := range []int{0, 2, 3} {
				if a := answers[n]; a.Err != nil || a.Receipt.Outcome != cabinet.Settled || a.Receipt.Duplicate {
					t.Errorf("event %d beside it: %+v", n, a)
				}
			}
			s.exec("DROP TRIGGER broken")
			if a := s.settle(1001, c.victim)[0]; a.Err != nil || a.Receipt == nil || a.Receipt.Duplicate {
				t.Errorf("once the trigger is gone: %+v", a)
			}
			if cmp.Equal(was, s.everythingOf(1001)) {
				t.Error("once the trigger is gone, nothing was kept")
			}
			s.audited()
		})
	}
}

func (s *shop) everythingOf(deviceID int64) map[string][]string {
	s.t.Helper()
	all := map[string][]string{}
	for _, table := range outcomeTables {
		all[table] = slices.Sorted(slices.Values(s.rows("SELECT * FROM "+table+" WHERE device_id = ?", deviceID)))
	}
	return all
}

// A panic of ours is parked like any other failure that comes again.
func TestAPanicStandsAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	beforeWrite(t, s.db, "INSERT INTO settlements", func(tx *gorm.DB) {
		if slices.Contains(tx.Statement.Vars, any("e2")) {
			panic("planted")
		}
	})
	answers := s.settle(1001, sale(1001, "e1", 7, 1), sale(1001, "e2", 7, 1), sale(1001, "e3", 7, 1))
	if answers[0].Err != nil || answers[2].Err != nil || !answers[1].Unwritable() {
		t.Errorf("%+v", answers)
	}
	if got := s.rows("SELECT close_event_id FROM settlements ORDER BY 1"); !cmp.Equal(got, []string{"e1", "e3"}) {
		t.Error(got)
	}
	s.audited()
}

// held locks a row from another connection until release is called.
func (s *shop) held(statement string, args ...any) (release func()) {
	s.t.Helper()
	tx, err := s.db.SQL().BeginTx(context.Background(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.Exec(statement, args...); err != nil {
		s.t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

func TestAHeldRowHoldsUpItsOwnEventsAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 100)
	s.cabinet(1002, 7, 100)
	release := s.held("SELECT * FROM device_stock WHERE device_id = 1001 FOR UPDATE")
	var group []settlement.Delivery
	for n := range 20 {
		device := int64(1002)
		if n%4 == 3 {
			device = 1001
		}
		group = append(group, deliveriesOf(device, sale(device, fmt.Sprint("e", n), 7, 1))...)
	}
	group = append(group, group[7]) // and a copy of it

	var answers []settlement.Answer
	within(t, 3*database.LockWait, "a group with five events of one held row", func() { answers = s.Settle(context.Background(), group) })
	for n, a := range answers {
		if held := n%4 == 3 || n == 20; held != (a.Err != nil) || held != a.Alone() || a.Unwritable() {
			t.Errorf("event %d: %+v", n, a)
		}
	}
	within(t, 3*database.LockWait, "its two copies together", func() { answers = s.settle(1001, sale(1001, "e7", 7, 1), sale(1001, "e7", 7, 1)) })
	if !answers[0].Alone() || !answers[1].Alone() {
		t.Errorf("two copies of the held one: %+v", answers)
	}
	release()
	if r := s.receipts(1001, sale(1001, "e7", 7, 1))[0]; r.Outcome != cabinet.Settled || r.Duplicate {
		t.Errorf("after the release: %+v", r)
	}
	s.audited()
}

func TestTheAnswerToCommitIsLost(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"with an order": sale(1001, "e", 7, 1), "empty": event(1001, "e", items()), "staff": event(1001, "e", `"kind":"restock"`, items(7, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 10)
			proxy := newProxy(t, s.dsn)
			far := &shop{t: t, db: databasetest.Open(t, proxy.dsn), dsn: proxy.dsn}
			far.serve(nil)
			proxy.losing.Store(2) // the run after it loses nothing: it finds what the first one kept
			r := far.receipts(1001, payload, payload)
			if proxy.lost.Load() < 1 {
				t.Fatal("no answer was lost")
			}
			if r[0].Duplicate || !r[1].Duplicate {
				t.Errorf("want the first receipt not to be a duplicate, and the second to be one: %+v", r)
			}
			if n := s.count("settlements", "1"); n != 1 {
				t.Errorf("%d settlements", n)
			}
			if n := s.count("stock_movements", "ref = 'e'") + s.count("orders", "1"); n > 2 {
				t.Errorf("%d movements and orders", n)
			}
			proxy.losing.Store(0)
			later := far.receipts(1001, payload)[0]
			if diff := cmp.Diff(r[1], later); diff != "" {
				t.Error(diff)
			}
			s.audited()
		})
	}
}

// proxy stands before MariaDB's socket and can lose the answers to COMMIT.
type proxy struct {
	dsn    string
	losing atomic.Int64 // how many answers to lose
	lost   atomic.Int64
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	begin, end := strings.Index(dsn, "("), strings.Index(dsn, ")")
	socket, mine := dsn[begin+1:end], filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", mine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{dsn: dsn[:begin+1] + mine + dsn[end:]}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client, socket)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn, socket string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var lose atomic.Bool
	go func() {
		defer func() { _ = client.Close() }()
		_, _ = io.Copy(writer(func(data []byte) (int, error) {
			if lose.Load() {
				p.lost.Add(1)
				return 0, io.ErrClosedPipe
			}
			return client.Write(data)
		}), server)
	}()
	_, _ = io.Copy(writer(func(data []byte) (int, error) {
		if strings.HasSuffix(string(data), "COMMIT") && p.losing.Add(-1) >= 0 {
			lose.Store(true)
		}
		return server.Write(data)
	}), client)
}

type writer func([]byte) (int, error)

func (w writer) Write(data []byte) (int, error) { return w(data) }

func TestADatabaseThatIsAwayIsNobodysOwnFault(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, a := range s.Settle(cancelled, deliveriesOf(1001, sale(1001, "e1", 7, 1), sale(1001, "e2", 7, 1))) {
		if a.Err == nil || a.Alone() || a.Receipt != nil {
			t.Errorf("%+v", a)
		}
	}
	if n := s.count("settlements", "1"); n != 0 {
		t.Errorf("%d settlements", n)
	}
}

func TestParkedEventsSettleWhenTheyComeAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	d := deliveriesOf(1001, sale(1001, "e", 7, 1))[0]
	for range 2 {
		if err := s.Park(t.Context(), d, fmt.Errorf("planted at %v \xff", time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.rows("SELECT reason, close_event_id, copies FROM dead_letters"); !cmp.Equal(got, []string{"internal|e|2"}) {
		t.Error(got)
	}
	if r := s.receipts(1001, string(d.Payload))[0]; r.Outcome != cabinet.Settled || r.Duplicate {
		t.Errorf("%+v", r)
	}
}

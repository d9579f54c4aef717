package settlement_test

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
)

// beforeWrite runs do before each statement of db that writes and that pattern, a regular expression, finds.
func beforeWrite(t *testing.T, db *database.DB, pattern string, do func(tx *gorm.DB)) {
	t.Helper()
	statement := regexp.MustCompile(pattern)
	err := db.Read(t.Context()).Callback().Raw().Before("gorm:raw").Register("test:"+pattern, func(tx *gorm.DB) {
		if statement.MatchString(tx.Statement.SQL.String()) {
			do(tx)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

const updateStock = "^UPDATE .*device_stock"

func (s *shop) attempts() []float64 {
	s.t.Helper()
	var list []float64
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		list = append(list, s.metric("doortab_settle_attempts_total", n))
	}
	return list
}

func TestAnOptimisticConflictIsWonByTheSecondAttempt(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 10)
	other := s.another(nil)
	var writes atomic.Int64
	beforeWrite(t, s.db, updateStock, func(*gorm.DB) {
		if writes.Add(1) == 1 {
			other.restock(1001, 7, 5)
		}
	})
	if r := s.receipts(1001, sale(1001, "e", 7, 3))[0]; r.Outcome != cabinet.Settled || r.Duplicate {
		t.Errorf("%+v", r)
	}
	if got := s.attempts(); !cmp.Equal(got, []float64{1, 1, 0, 0, 0}) {
		t.Errorf("attempts %v, want one first and one second", got)
	}
	if got := s.rows("SELECT stock, version FROM device_stock"); !cmp.Equal(got, []string{"12|3"}) {
		t.Errorf("stock and version %v", got)
	}
	s.audited()
}

func TestARowThatAnotherWriterMakesFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001)
	other := s.another(nil)
	var writes atomic.Int64
	beforeWrite(t, s.db, "INSERT INTO device_stock", func(*gorm.DB) {
		if writes.Add(1) == 1 {
			other.restock(1001, 7, 5)
		}
	})
	if r := s.receipts(1001, sale(1001, "e", 7, 3))[0]; len(r.Reasons) > 0 {
		t.Errorf("the restock was not seen: %+v", r)
	}
	if got := s.attempts(); !cmp.Equal(got, []float64{1, 1, 0, 0, 0}) {
		t.Errorf("attempts %v", got)
	}
	if got := s.rows("SELECT stock, version FROM device_stock"); !cmp.Equal(got, []string{"2|2"}) {
		t.Errorf("stock and version %v", got)
	}
	s.audited()
}

// tryLock locks a cabinet's stock, or fails at once where somebody holds it.
func (s *shop) tryLock(deviceID int64) error {
	_, err := s.db.SQL().Exec("SELECT * FROM device_stock WHERE device_id = ? FOR UPDATE NOWAIT", deviceID)
	return err
}

// Three writers come first; the fourth finds the row locked and has to wait.
func TestConflictsAreEndedByTheAttemptThatLocks(t *testing.T) {
	t.Parallel()
	for name, opening := range map[string][]int64{"row exists": {7, 10}, "row does not exist": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, opening...)
			other := s.another(nil)
			waiting := make(chan error, 1)
			compete := func(tx *gorm.DB) {
				switch attempt := s.metric("doortab_settle_attempts_total", "4"); {
				case attempt == 0 && opening == nil:
					// Whoever makes the row and takes it away again, as a rollback does, leaves none to lock.
					_ = tx.AddError(database.ErrConflict)
				case attempt == 0:
					other.restock(1001, 7, 1)
				default:
					if err := other.tryLock(1001); !database.IsLockWait(err) {
						t.Errorf("the row is not locked: %v", err)
					}
					go func() { waiting <- other.tryRestock(1001, 7, 1) }()
				}
			}
			beforeWrite(t, s.db, updateStock, compete)
			beforeWrite(t, s.db, "INTO device_stock \\(", func(tx *gorm.DB) {
				if opening == nil && !strings.Contains(tx.Statement.SQL.String(), "ON DUPLICATE") {
					compete(tx)
				}
			})
			r := s.receipts(1001, sale(1001, "e", 7, 3))[0]
			if err := <-waiting; err != nil {
				t.Errorf("the writer that waited: %v", err)
			}
			if got := s.attempts(); !cmp.Equal(got, []float64{1, 1, 1, 1, 0}) {
				t.Errorf("attempts %v, want one of each up to 4", got)
			}
			stock, movement := []string{"11|6"}, []string{"5|-3|10"}
			if opening == nil {
				stock, movement = []string{"1|2"}, []string{"1|0|0"}
			}
			if got := s.rows("SELECT stock, version FROM device_stock"); !cmp.Equal(got, stock) {
				t.Errorf("stock and version %v, want %v", got, stock)
			}
			if got := s.rows("SELECT version, delta, balance FROM stock_movements WHERE ref = 'e'"); !cmp.Equal(got, movement) {
				t.Errorf("movement %v, want %v (%+v)", got, movement, r)
			}
			s.audited()
		})
	}
}

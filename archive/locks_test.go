package archive_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"doortab/archive"
	"doortab/auditlog"
	"doortab/database"
	"doortab/settlement"
)

// TestACorrectionUnderWayIsWaitedFor: one that changes lines but neither total nor state of the order doesn't touch the
// order's row, so only the lock on the settlement keeps the order from moving without its new lines.
func TestACorrectionUnderWayIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.exec("INSERT INTO products (product_id, sku, name, price_minor, created_at, updated_at) VALUES (9, 'sku9', 'x', 500, NOW(), NOW())")
	s.exec("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (9, '2020-01-01', 500)")
	s.settle(sale(1001, "sold", 2), sale(1001, "sold", 3)) // and a conflict
	cut, ended := moment(), make(chan error, 1)
	swap := settlement.Resolution{
		ReviewID: s.read(1001, "sold").Reviews[0].ReviewID, Decision: settlement.Amend, Note: "x",
		Lines: []settlement.ProposedLine{{ProductID: 9, Quantity: 2}},
	}
	err := s.db.InTxCounted(auditlog.WithActor(t.Context(), "ann"), func(tx *gorm.DB, attempt int) error {
		if _, err := settlement.Resolve(tx, attempt, swap, database.Now()); err != nil {
			return err
		}
		go func() {
			_, err := archive.Run(context.Background(), s.db, archive.Options{Before: cut})
			ended <- err
		}()
		s.untilWaiting(ended)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.audited()
	if o := s.order(1001, "sold"); !o.Archived || len(o.Lines) != 3 {
		t.Errorf("order: %+v", o)
	}
}

// untilWaiting returns when the archive waits for the lock on a settlement, or has ended and so never waited.
func (s *shop) untilWaiting(ended chan error) {
	s.t.Helper()
	for {
		select {
		case err := <-ended:
			s.t.Error("the archive did not wait")
			ended <- err
			return
		default:
		}
		var waiting int // MySQL can't show the list while somebody's statement has bytes that are no text
		err := s.db.Read(context.Background()).Raw(`SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()
			AND command = 'Query' AND info LIKE 'SELECT device_id FROM settlements FORCE INDEX%FOR UPDATE'`).Scan(&waiting).Error
		if err == nil && waiting > 0 {
			return
		}
	}
}

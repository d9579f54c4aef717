package settlement_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/deadletter"
	"doortab/settlement"
)

func (s *shop) letterID() int64 {
	s.t.Helper()
	id, ok := settlement.ParseID(s.rows("SELECT dead_letter_id FROM dead_letters")[0])
	if !ok {
		s.t.Fatal("no dead letter")
	}
	return id
}

func TestADeadLetterIsRetried(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.receipts(1001, sale(1001, "e", 7, 2))
	s.catalogue("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, 900)", receivedAt.Add(1e9)) // after it came first
	id := s.letterID()
	for range 2 {
		if _, err := s.RetryDeadLetter(t.Context(), id); !errors.Is(err, settlement.ErrStillDead) {
			t.Errorf("while the cabinet is unknown: %v", err)
		}
	}
	if got := s.rows("SELECT dead_letter_id, copies FROM dead_letters"); !cmp.Equal(got, []string{settlement.FormatID(id) + "|1"}) {
		t.Errorf("a retry changed what came: %v", got)
	}
	s.cabinet(1001, 7, 5)
	answer, err := s.RetryDeadLetter(t.Context(), id)
	if err != nil || answer.Receipt.Outcome != cabinet.Settled || answer.Receipt.TotalMinor != 1000 {
		t.Errorf("%+v, %v; want it settled at the price of when it came", answer.Receipt, err)
	}
	if n := s.count("dead_letters", "1"); n != 0 {
		t.Errorf("%d dead letters left", n)
	}
	if _, err := s.RetryDeadLetter(t.Context(), id); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("once it is gone: %v", err)
	}
	if again := s.receipts(1001, sale(1001, "e", 7, 2))[0]; !again.Duplicate || again.OrderID != answer.Receipt.OrderID {
		t.Errorf("the cabinet sends it once more: %+v", again)
	}
	s.audited()
}

func TestARetryThatFailsKeepsTheLetter(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.receipts(1001, sale(1001, "e", 7, 2))
	s.cabinet(1001, 7, 5)
	s.exec("CREATE TRIGGER broken BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000'")
	if answer, err := s.RetryDeadLetter(t.Context(), s.letterID()); err == nil || !answer.Unwritable() {
		t.Errorf("%+v, %v", answer, err)
	}
	s.exec("DROP TRIGGER broken")
	if _, err := s.RetryDeadLetter(t.Context(), s.letterID()); err != nil {
		t.Error(err)
	}
	s.audited()
}

func TestALetterThatWasCutCannotBeRetried(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001)
	s.receipts(1001, event(1001, "e", items(), `"note":"`+strings.Repeat("x", cabinet.MaxPayload)+`"`))
	if _, err := s.RetryDeadLetter(t.Context(), s.letterID()); !errors.Is(err, settlement.ErrPayloadCut) {
		t.Error(err)
	}
}

func TestADeadLetterIsDiscarded(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001)
	s.settle(1001, "hello")
	id := s.letterID()
	if err := deadletter.Discard(t.Context(), s.db, id+1); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if err := deadletter.Discard(t.Context(), s.db, id); err != nil {
		t.Error(err)
	}
	if err := deadletter.Discard(t.Context(), s.db, id); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
}
